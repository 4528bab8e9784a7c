// Merges the logs of a store's partitions into their bases, in the background.
//
// A merge is due when the index of all logs nears its limit, or when the files near twice the bytes
// of the live rows. Both look at the store as a whole and take the partition where a page written
// helps most, so partitions take turns by themselves, and each gathers about twice the log that one
// cap for all would give it. Logs that are mostly garbage are rewritten alone.
// Merges and puts keep pace. A merge advances
// with the rows that are put, so that it ends before it is urgent and never rushes through the
// device; who waits for it lets it run freely. A merge that fails leaves the partition as it was;
// it is tried again later, or when somebody waits. Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "tier/disk_budget.h"
#include "tier/disk_partition.h"

namespace terrace {

class DiskMerger {
 public:
  // `retire` gets the paths of files that the store no longer uses.
  using Retire = std::function<void(const std::vector<std::string>& paths)>;
  DiskMerger(DiskContext* context, const std::vector<std::unique_ptr<DiskPartition>>* partitions,
             const DiskBudget& budget, const DiskOptions& options, Retire retire);
  ~DiskMerger();
  DiskMerger(const DiskMerger&) = delete;
  DiskMerger& operator=(const DiskMerger&) = delete;

  // Returns when there is room for a partition's share of a batch, in the index and on the disk.
  // Throws what merges fail with, or Error(kUsage) when the budget is too small for merges to help.
  void WaitForRoom() EXCLUDES(mu_) {
    if (!HasRoom()) WaitForRoomSlow();
  }
  // `rows` were put or deleted.
  void Advance(int64_t rows) EXCLUDES(mu_);

  // Runs all merges that are due, and those of all partitions with logs if `everything`.
  void Settle(bool everything) EXCLUDES(mu_);
  // No merge begins or goes on after this. For the end of the store, and when it cannot write.
  void Stop() EXCLUDES(mu_);

  int64_t IndexLimit() const;
  void AddTo(DiskStats* stats) const EXCLUDES(mu_);

 private:
  struct Job {
    int partition = -1;
    bool logs_alone = false;
    int64_t paced_rows = 1;  // puts in which it is to be done
    // What puts may use before its start and at its end; 0: it is not for this.
    int64_t index_from = 0, index_to = 0;
    int64_t pages_from = 0, pages_to = 0;
  };
  struct Stopped {};
  // Called as a job advances; they wait where it is ahead of the puts.
  struct Steps {
    ReadProgress read, written;
  };

  bool HasRoom() const {
    return context_.index_bytes < allowed_index_ && context_.pages < allowed_pages_;
  }
  void WaitForRoomSlow() EXCLUDES(mu_);
  // What puts may use until the job has advanced further.
  void Allow(const Job& job, double progress) REQUIRES(mu_);
  void AllowAll() REQUIRES(mu_);
  // Lets jobs run while some are due and `wanted()`, or until one fails; true if it is not wanted
  // any more.
  bool Drive(const std::function<bool()>& wanted) REQUIRES(mu_);
  void Loop() EXCLUDES(mu_);
  // What is most urgent; false if nothing is due.
  bool PickJob(Job* job) REQUIRES(mu_);
  bool PickForIndex(const std::vector<PartitionStats>& all, Job* job) const;
  bool PickForSpace(const std::vector<PartitionStats>& all, Job* job) const;
  // Runs the job that is most urgent, if one is due, on this thread.
  bool RunOne() EXCLUDES(mu_);
  void RunJob(const Job& job) EXCLUDES(mu_);
  void MergeIntoBase(DiskPartition& partition, const DiskPartition::Frozen& frozen,
                     const Steps& steps);
  void RewriteLogs(DiskPartition& partition, const DiskPartition::Frozen& frozen,
                   const Steps& steps);
  // Waits until `done` of `total` pages are allowed.
  void Pace(const Job& job, int64_t start_rows, int64_t done, int64_t total) EXCLUDES(mu_);

  DiskContext& context_;
  const std::vector<std::unique_ptr<DiskPartition>>& partitions_;
  const DiskBudget& budget_;
  const bool background_;
  const Retire retire_;
  const std::function<RowTest()> due_;

  mutable Mutex mu_;
  CondVar work_;                            // for the thread: something to do, or more rows put
  CondVar changed_;                         // for those that wait: a job has ended
  int64_t rows_ GUARDED_BY(mu_) = 0;        // put or deleted
  int64_t total_rows_ GUARDED_BY(mu_) = 0;  // of the store, at most
  int64_t retry_at_ GUARDED_BY(mu_) = 0;    // rows_ at which a failed merge is tried again
  int waiting_ GUARDED_BY(mu_) = 0;         // merges are not paced while somebody waits
  bool running_ GUARDED_BY(mu_) = false;
  bool stop_ GUARDED_BY(mu_) = false;
  std::vector<bool> forced_ GUARDED_BY(mu_);
  std::optional<ErrorCode> failure_ GUARDED_BY(mu_);  // of a merge that nobody has seen yet
  std::string failure_text_ GUARDED_BY(mu_);          // of the last merge
  std::atomic<int64_t> allowed_index_{INT64_MAX}, allowed_pages_{INT64_MAX};  // set under mu_
  std::atomic<int64_t> merges_{0}, log_rewrites_{0}, bytes_read_{0}, bytes_written_{0};
  std::atomic<int64_t> expired_{0};

  std::jthread thread_;
};

}  // namespace terrace
