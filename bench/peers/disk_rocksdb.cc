// RocksDB for disk_bench, in two ways: as tuned for this work, and as FBGEMM sets it up for
// embeddings on SSD.
//
// The write-ahead log is off: our Put is no commit either. Debian's build has no io_uring, so a
// batch is read by a team of threads, each with sorted keys through MultiGet.
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/workers.h"
#include "bench/disk_engine.h"

namespace terrace {
namespace {

struct Setup {
  rocksdb::Options options;
  rocksdb::ReadOptions read;
  int shards = 1;
  int get_threads = 1;
  int put_tasks_a_shard = 1;
};

// Sorted as bytes where sorted as a number.
uint64_t BigEndian(uint64_t key) { return __builtin_bswap64(key); }

rocksdb::Slice AsSlice(const uint64_t& big_endian) {
  return {reinterpret_cast<const char*>(&big_endian), sizeof big_endian};
}

void Require(const rocksdb::Status& status, const char* what) {
  if (!status.ok())
    throw Error(ErrorCode::kIo, fmt::format("RocksDB, {}: {}", what, status.ToString()));
}

class RocksDb : public DiskEngine {
 public:
  RocksDb(const EngineOptions& options, Setup setup)
      : row_bytes_(options.row_bytes),
        dir_(options.dir),
        setup_(std::move(setup)),
        workers_("rocksdb", setup_.get_threads) {
    setup_.options.create_if_missing = true;
    write_.disableWAL = true;
    for (int i = 0; i < setup_.shards; ++i) {
      Shard& shard = shards_.emplace_back();
      shard.path = fmt::format("{}/shard_{}", dir_, i);
      rocksdb::DB* db = nullptr;
      Require(rocksdb::DB::Open(setup_.options, shard.path, &db), "open");
      shard.db.reset(db);
    }
  }
  ~RocksDb() override {
    for (Shard& shard : shards_) {
      // Without a log, what is in memory would be lost.
      (void)shard.db->Flush(rocksdb::FlushOptions());
      (void)shard.db->Close();
    }
  }

  void Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) override {
    Split(keys);
    // Blocks that a MultiGet finds stay in memory until it ends, so it has few keys.
    RunInPieces(kGetPiece, [&](Shard& shard, std::span<const Entry> piece) {
      GetPiece(shard, piece, rows, found);
    });
  }

  void Put(std::span<const uint64_t> keys, const std::byte* rows) override {
    Split(keys);
    const size_t piece = keys.size() / static_cast<size_t>(setup_.put_tasks_a_shard) + 1;
    RunInPieces(piece, [&](Shard& shard, std::span<const Entry> entries) {
      rocksdb::WriteBatch batch(entries.size() * (row_bytes_ + 24));
      for (const Entry& e : entries)
        Require(batch.Put(AsSlice(e.key), RowAt(rows, e.place)), "put");
      Require(shard.db->Write(write_, &batch), "write");
    });
  }

  // The quickest way in: files made outside, then taken over.
  bool loads_sorted() const override { return true; }
  void Load(std::span<const uint64_t> keys, const std::byte* rows) override {
    Split(keys);
    for (Shard& shard : shards_) {
      for (const Entry& e : shard.entries) {
        if (shard.writer == nullptr) StartFile(&shard);
        Require(shard.writer->Put(AsSlice(e.key), RowAt(rows, e.place)), "load");
      }
      if (shard.writer != nullptr && shard.writer->FileSize() > kLoadFile) TakeFile(&shard);
    }
  }
  void FinishLoad() override {
    for (Shard& shard : shards_)
      if (shard.writer != nullptr) TakeFile(&shard);
  }

  void Settle() override {
    for (Shard& shard : shards_) Require(shard.db->Flush(rocksdb::FlushOptions()), "flush");
    for (Shard& shard : shards_)
      while (IsBusy(shard.db.get())) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  std::string Details() const override {
    const auto sum = [&](const char* property) {
      uint64_t all = 0;
      for (const Shard& shard : shards_) {
        uint64_t value = 0;
        if (shard.db->GetIntProperty(property, &value)) all += value;
      }
      return all;
    };
    return fmt::format(", \"index_bytes\": {}, \"memtable_bytes\": {}, \"cache_bytes\": {}",
                       sum("rocksdb.estimate-table-readers-mem"),
                       sum("rocksdb.cur-size-all-mem-tables"), sum("rocksdb.block-cache-usage"));
  }

 private:
  static constexpr size_t kGetPiece = 512;
  static constexpr uint64_t kLoadFile = 64 << 20;

  struct Entry {
    uint64_t key;    // as stored
    uint32_t place;  // in the batch
  };
  struct Shard {
    std::string path;
    std::unique_ptr<rocksdb::DB> db;
    std::vector<Entry> entries;  // of this batch, sorted
    std::unique_ptr<rocksdb::SstFileWriter> writer;
  };

  rocksdb::Slice RowAt(const std::byte* rows, uint32_t place) const {
    return {reinterpret_cast<const char*>(rows) + place * row_bytes_, row_bytes_};
  }

  void Split(std::span<const uint64_t> keys) {
    for (Shard& shard : shards_) shard.entries.clear();
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const uint64_t shard = BelowN(Mix64(keys[i]), shards_.size());
      shards_[shard].entries.push_back({BigEndian(keys[i]), i});
    }
    workers_.Run(setup_.shards, [&](int64_t s, int) {
      std::vector<Entry>& entries = shards_[static_cast<size_t>(s)].entries;
      std::sort(entries.begin(), entries.end(),
                [](const Entry& a, const Entry& b) { return BigEndian(a.key) < BigEndian(b.key); });
    });
  }

  template <typename F>
  void RunInPieces(size_t piece, F f) {
    std::vector<std::pair<Shard*, std::span<const Entry>>> pieces;
    for (Shard& shard : shards_) {
      const std::span<const Entry> all(shard.entries);
      for (size_t i = 0; i < all.size(); i += piece)
        pieces.emplace_back(&shard, all.subspan(i, std::min(piece, all.size() - i)));
    }
    workers_.Run(static_cast<int64_t>(pieces.size()), [&](int64_t i, int) {
      const auto& [shard, entries] = pieces[static_cast<size_t>(i)];
      f(*shard, entries);
    });
  }

  void GetPiece(Shard& shard, std::span<const Entry> piece, std::byte* rows, uint8_t* found) {
    const size_t n = piece.size();
    std::vector<rocksdb::Slice> slices;
    for (const Entry& e : piece) slices.push_back(AsSlice(e.key));
    std::vector<rocksdb::PinnableSlice> values(n);
    std::vector<rocksdb::Status> statuses(n);
    shard.db->MultiGet(setup_.read, shard.db->DefaultColumnFamily(), n, slices.data(),
                       values.data(), statuses.data(), /*sorted_input=*/true);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t place = piece[i].place;
      found[place] = statuses[i].ok();
      if (statuses[i].IsNotFound()) continue;
      Require(statuses[i], "get");
      std::memcpy(rows + place * row_bytes_, values[i].data(), row_bytes_);
    }
  }

  void StartFile(Shard* shard) {
    shard->writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), setup_.options);
    Require(shard->writer->Open(shard->path + "/load.tmp"), "load");
  }
  void TakeFile(Shard* shard) {
    Require(shard->writer->Finish(), "load");
    shard->writer.reset();
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    Require(shard->db->IngestExternalFile({shard->path + "/load.tmp"}, ingest), "ingest");
  }

  static bool IsBusy(rocksdb::DB* db) {
    for (const char* property : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes",
                                 "rocksdb.compaction-pending", "rocksdb.num-running-compactions"}) {
      uint64_t value = 0;
      if (db->GetIntProperty(property, &value) && value > 0) return true;
    }
    return false;
  }

  const size_t row_bytes_;
  const std::string dir_;
  Setup setup_;
  rocksdb::WriteOptions write_;
  std::vector<Shard> shards_;
  Workers workers_;
};

rocksdb::Options CommonOptions() {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.max_open_files = -1;
  return options;
}

// For rows of 64 bytes, read and written at random, all present. The budget is the block cache's:
// indexes and filters live in it, and write buffers are taken from it.
Setup Tuned(const EngineOptions& engine) {
  Setup setup;
  setup.get_threads = engine.threads;
  setup.put_tasks_a_shard = 2;
  rocksdb::Options& options = setup.options = CommonOptions();
  const size_t buffer = std::max<size_t>(engine.memory_bytes / 16, 4 << 20);
  constexpr int kBuffers = 4;
  options.write_buffer_size = buffer;
  options.max_write_buffer_number = kBuffers;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_bytes_for_level_base = 4 * buffer;
  options.target_file_size_base = buffer;
  options.compaction_readahead_size = 2 << 20;
  options.max_background_jobs = 2;
  // Every key that is asked for exists: filters of the last level would be read in vain.
  options.optimize_filters_for_hits = true;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(engine.memory_bytes - kBuffers * buffer, 6,
                                           /*strict_capacity_limit=*/false,
                                           /*high_pri_pool_ratio=*/0.5);
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.block_size = 4096;
  table.block_align = true;  // a block is one page of the device
  table.format_version = 5;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return setup;
}

// As fbgemm_gpu's EmbeddingRocksDB sets RocksDB up (ssd_table_batched_embeddings.h), with the 8
// shards and threads of its benchmark. Its statistics are left out, as they cost time only; its
// write buffers are a quarter of the budget instead of 2 GB.
Setup AsFbgemm(const EngineOptions& engine) {
  constexpr int kShards = 8;
  constexpr int kBuffers = 4;
  Setup setup;
  setup.shards = setup.get_threads = kShards;
  rocksdb::Options& options = setup.options = CommonOptions();
  options.write_buffer_size = engine.memory_bytes / 4 / kShards / kBuffers;
  options.max_write_buffer_number = kBuffers;
  options.min_write_buffer_number_to_merge = 2;
  options.target_file_size_base = uint64_t{2} << 30;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.compaction_options_universal.size_ratio = 10;
  options.compaction_options_universal.min_merge_width = 2;
  options.compaction_options_universal.max_size_amplification_percent = 400;
  options.level0_file_num_compaction_trigger = 8;
  options.level0_slowdown_writes_trigger = 32;
  options.level0_stop_writes_trigger = 64;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(sizeof(uint64_t)));
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = true;
  options.avoid_unnecessary_blocking_io = true;
  options.optimize_filters_for_hits = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.memtable_whole_key_filtering = true;
  options.max_background_jobs = kShards;
  options.env->SetBackgroundThreads(4, rocksdb::Env::HIGH);
  options.env->SetBackgroundThreads(1, rocksdb::Env::LOW);

  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kHashSearch;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.data_block_hash_table_util_ratio = 0.75;
  table.checksum = rocksdb::ChecksumType::kNoChecksum;
  table.format_version = 5;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(16));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  setup.read.verify_checksums = false;
  setup.read.async_io = true;
  return setup;
}

}  // namespace

std::unique_ptr<DiskEngine> OpenRocksDb(const EngineOptions& options) {
  return std::make_unique<RocksDb>(options, Tuned(options));
}

std::unique_ptr<DiskEngine> OpenRocksDbAsFbgemm(const EngineOptions& options) {
  return std::make_unique<RocksDb>(options, AsFbgemm(options));
}

}  // namespace terrace
