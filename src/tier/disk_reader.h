// Reads the pages a batch needs, and finds its rows on them.
//
// DiskReaders is a small pool of batch readers with their scratch: as many gets as there are
// readers run at once, others wait. Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "tier/disk_budget.h"
#include "tier/disk_partition.h"

namespace terrace {

// Calls f(partition, items) for each partition that has some.
template <typename F>
void ForEachPartition(const PageLayout& layout, std::span<const KeyItem> items, F f) {
  for (size_t begin = 0, end; begin < items.size(); begin = end) {
    const int partition = layout.PartitionOf(items[begin].mix);
    for (end = begin + 1; end < items.size(); ++end)
      if (layout.PartitionOf(items[end].mix) != partition) break;
    f(partition, items.subspan(begin, end - begin));
  }
}

// What one batch works with, kept from batch to batch.
struct BatchScratch {
  std::thread::id maker;
  std::unique_ptr<BatchReader> reader;
  Array<KeyItem> items, sorting;
  PageRequests requests;
  std::vector<PageRead> reads;
  std::vector<size_t> first_request;  // of each read
};

class DiskReaders {
 public:
  DiskReaders(Env& env, const DiskBudget& budget) : env_(env), budget_(budget) {}

  // Holds one for as long as it lives.
  class Lease {
   public:
    explicit Lease(DiskReaders* pool) : pool_(*pool), scratch_(pool->Take()) {}
    ~Lease() { pool_.Give(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    BatchScratch* operator->() const { return scratch_.get(); }
    BatchScratch& operator*() const { return *scratch_; }

   private:
    DiskReaders& pool_;
    std::unique_ptr<BatchScratch> scratch_;
  };

  // Reads the pages of scratch->requests and copies the rows found; sets found[] of each request.
  void ReadRows(const PageLayout& layout, BatchScratch* scratch, std::byte* rows, uint8_t* found);

  void AddTo(DiskStats* stats) const EXCLUDES(mu_);

 private:
  std::unique_ptr<BatchScratch> Take() EXCLUDES(mu_);
  void Give(std::unique_ptr<BatchScratch> scratch) EXCLUDES(mu_);

  Env& env_;
  const DiskBudget& budget_;
  mutable Mutex mu_;
  CondVar free_changed_;
  std::vector<std::unique_ptr<BatchScratch>> free_ GUARDED_BY(mu_);
  int made_ GUARDED_BY(mu_) = 0;
  const char* engine_ GUARDED_BY(mu_) = "";
  std::atomic<int64_t> page_reads_{0}, pages_read_{0};
};

}  // namespace terrace
