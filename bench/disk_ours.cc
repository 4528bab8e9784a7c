// Terrace's disk store for disk_bench.
#include <fmt/format.h>

#include "bench/disk_engine.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

class Ours : public DiskEngine {
 public:
  explicit Ours(const EngineOptions& options) {
    DiskOptions disk;
    disk.row_bytes = options.row_bytes;
    disk.memory_bytes = options.memory_bytes;
    store_ = DiskStore::Open(options.dir, disk);
  }
  ~Ours() override { store_->Commit(); }

  void Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) override {
    store_->Get(keys, rows, found);
  }
  void Put(std::span<const uint64_t> keys, const std::byte* rows) override {
    store_->Put(keys, rows);
  }
  void Settle() override {
    store_->Commit();
    store_->Settle();
    // Files that only the commit before needed go with the next one.
    store_->Commit();
  }
  std::string Details() const override {
    const DiskStats s = store_->stats();
    return fmt::format(
        ", \"fence_bytes\": {}, \"filter_bytes\": {}, \"index_bytes\": {}, \"buffer_bytes\": {}, "
        "\"index_limit\": {}, \"log_share\": {:.4f}, \"log_keys\": {}, \"merges\": {}, "
        "\"page_reads\": {}, \"log_bytes_written\": {}, \"merge_bytes_written\": {}",
        s.fence_bytes, s.filter_bytes, s.index_bytes, s.buffer_bytes, s.index_limit, s.log_share,
        s.total.log_keys, s.merges, s.page_reads, s.log_bytes_written, s.merge_bytes_written);
  }

 private:
  std::unique_ptr<DiskStore> store_;
};

}  // namespace

std::unique_ptr<DiskEngine> OpenOurs(const EngineOptions& options) {
  return std::make_unique<Ours>(options);
}

}  // namespace terrace
