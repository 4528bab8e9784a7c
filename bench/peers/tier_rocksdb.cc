#include "bench/peers/tier_rocksdb.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"
#include "base/workers.h"
#include "bench/disk_engine.h"
#include "bench/peers/disk_rocksdb_setup.h"

namespace terrace {
namespace {

// Blocks that a MultiGet finds stay in memory until it ends, so it has few keys.
constexpr size_t kGetPiece = 512;
// A write goes to one memtable whole, however large it makes it.
constexpr size_t kPutPiece = 10'000;
constexpr size_t kScanRows = 4096;

void Require(const rocksdb::Status& status, const char* what) {
  if (!status.ok())
    throw Error(ErrorCode::kIo, fmt::format("RocksDB, {}: {}", what, status.ToString()));
}

[[noreturn]] void Refuse(const char* what) {
  throw Error(ErrorCode::kUsage, fmt::format("RocksDB as a disk tier has no {}", what));
}

// Keys of a batch in RocksDB's order, which is that of big-endian numbers.
class SortedKeys {
 public:
  explicit SortedKeys(std::span<const uint64_t> keys) : places_(keys.size()), bytes_(keys.size()) {
    std::iota(places_.begin(), places_.end(), 0);
    std::sort(places_.begin(), places_.end(),
              [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    for (size_t i = 0; i < keys.size(); ++i) bytes_[i] = __builtin_bswap64(keys[places_[i]]);
  }
  size_t size() const { return places_.size(); }
  rocksdb::Slice key(size_t i) const {
    return {reinterpret_cast<const char*>(&bytes_[i]), sizeof bytes_[i]};
  }
  size_t place(size_t i) const { return places_[i]; }  // in the batch

  template <typename F>
  void RunInPieces(Workers* workers, size_t piece, F f) const {
    workers->Run(static_cast<int64_t>((size() + piece - 1) / piece), [&](int64_t i, int) {
      const size_t begin = static_cast<size_t>(i) * piece;
      f(begin, std::min(begin + piece, size()));
    });
  }

 private:
  std::vector<uint32_t> places_;
  std::vector<uint64_t> bytes_;
};

class RocksDbTier : public DiskStore {
 public:
  RocksDbTier(const std::string& dir, const DiskOptions& options) : row_bytes_(options.row_bytes) {
    EngineOptions engine;
    engine.row_bytes = row_bytes_;
    engine.memory_bytes = options.memory_bytes;
    rocksdb::Options db_options;
    const RocksDbTeam team = SetUpTuned(engine, &db_options, &read_);
    TERRACE_CHECK(team.shards == 1);
    db_options.create_if_missing = true;
    write_.disableWAL = true;
    rocksdb::DB* db = nullptr;
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    Require(rocksdb::DB::Open(db_options, dir, &db), "open");
    db_.reset(db);
    getters_ = std::make_unique<Workers>("rocks-get", team.get_threads);
    putters_ = std::make_unique<Workers>("rocks-put", team.put_tasks_a_shard);
  }
  ~RocksDbTier() override { (void)db_->Close(); }

  size_t row_bytes() const override { return row_bytes_; }
  int partitions() const override { return 1; }
  int PartitionOf(uint64_t) const override { return 0; }

  size_t Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) override {
    const SortedKeys sorted(keys);
    {
      MutexLock lock(&getters_mu_);
      sorted.RunInPieces(getters_.get(), kGetPiece, [&](size_t begin, size_t end) {
        GetPiece(sorted, begin, end, rows, found);
      });
    }
    const auto count = static_cast<size_t>(std::count(found, found + keys.size(), 1));
    got_ += static_cast<int64_t>(keys.size());
    found_ += static_cast<int64_t>(count);
    return count;
  }

  void Put(std::span<const uint64_t> keys, const std::byte* rows) override {
    const SortedKeys sorted(keys);
    const size_t share = keys.size() / static_cast<size_t>(putters_->threads()) + 1;
    sorted.RunInPieces(putters_.get(), std::min(share, kPutPiece), [&](size_t begin, size_t end) {
      rocksdb::WriteBatch batch((end - begin) * (row_bytes_ + 24));
      for (size_t i = begin; i < end; ++i) {
        const auto* row = reinterpret_cast<const char*>(rows + sorted.place(i) * row_bytes_);
        Require(batch.Put(sorted.key(i), {row, row_bytes_}), "put");
      }
      Require(db_->Write(write_, &batch), "write");
    });
    put_ += static_cast<int64_t>(keys.size());
  }

  void Scan(int first, int end, const ScanSink& sink) override {
    if (first >= end) return;
    std::vector<uint64_t> keys;
    std::vector<std::byte> rows;
    rocksdb::ReadOptions read = read_;
    read.fill_cache = false;
    read.readahead_size = 2 << 20;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(read));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      uint64_t key = 0;
      std::memcpy(&key, at->key().data(), sizeof key);
      keys.push_back(__builtin_bswap64(key));
      const auto* row = reinterpret_cast<const std::byte*>(at->value().data());
      rows.insert(rows.end(), row, row + row_bytes_);
      if (keys.size() < kScanRows) continue;
      sink(keys, rows.data());
      keys.clear();
      rows.clear();
    }
    Require(at->status(), "scan");
    if (!keys.empty()) sink(keys, rows.data());
  }

  void Settle() override {
    Require(db_->Flush(rocksdb::FlushOptions()), "flush");
    while (IsBusy()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  DiskStats stats() const override {
    DiskStats stats;
    stats.row_bytes = row_bytes_;
    stats.engine = "RocksDB";
    stats.got = got_;
    stats.found = found_;
    stats.put = put_;
    stats.index_bytes = Property("rocksdb.block-cache-usage");
    stats.buffer_bytes = Property("rocksdb.cur-size-all-mem-tables");
    stats.total.file_bytes = Property("rocksdb.total-sst-files-size");
    return stats;
  }

  void Delete(std::span<const uint64_t>) override { Refuse("Delete"); }
  void Commit() override { Refuse("Commit"); }
  void Snapshot(const std::string&) override { Refuse("Snapshot"); }
  void Merge() override { Refuse("Merge"); }

 private:
  void GetPiece(const SortedKeys& keys, size_t begin, size_t end, std::byte* rows, uint8_t* found) {
    const size_t n = end - begin;
    std::vector<rocksdb::Slice> slices;
    for (size_t i = begin; i < end; ++i) slices.push_back(keys.key(i));
    std::vector<rocksdb::PinnableSlice> values(n);
    std::vector<rocksdb::Status> statuses(n);
    db_->MultiGet(read_, db_->DefaultColumnFamily(), n, slices.data(), values.data(),
                  statuses.data(), /*sorted_input=*/true);
    for (size_t i = 0; i < n; ++i) {
      const size_t place = keys.place(begin + i);
      found[place] = statuses[i].ok();
      if (statuses[i].IsNotFound()) continue;
      Require(statuses[i], "get");
      std::memcpy(rows + place * row_bytes_, values[i].data(), row_bytes_);
    }
  }

  int64_t Property(const char* name) const {
    uint64_t value = 0;
    return db_->GetIntProperty(name, &value) ? static_cast<int64_t>(value) : 0;
  }
  bool IsBusy() const {
    for (const char* name : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes",
                             "rocksdb.compaction-pending", "rocksdb.num-running-compactions"})
      if (Property(name) > 0) return true;
    return false;
  }

  const size_t row_bytes_;
  rocksdb::ReadOptions read_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::DB> db_;
  Mutex getters_mu_;  // one get at a time: it has the whole team
  std::unique_ptr<Workers> getters_, putters_;
  std::atomic<int64_t> got_{0}, found_{0}, put_{0};
};

}  // namespace

std::unique_ptr<DiskStore> OpenRocksDbTier(const std::string& dir, const DiskOptions& options) {
  return std::make_unique<RocksDbTier>(dir, options);
}

}  // namespace terrace
