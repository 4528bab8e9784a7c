// RocksDB for disk_bench, in two ways: as tuned for this work, and as FBGEMM sets it up for
// embeddings on SSD.
//
// The write-ahead log is off: our Put is no commit either. Debian's build has no io_uring, so a
// batch is read by a team of threads, each with sorted keys through MultiGet.
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/workers.h"
#include "bench/disk_engine.h"
#include "bench/peers/disk_rocksdb_setup.h"

namespace terrace {
namespace {

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
  using SetUp = RocksDbTeam(const EngineOptions&, rocksdb::Options*, rocksdb::ReadOptions*);

  RocksDb(const EngineOptions& options, SetUp* set_up)
      : row_bytes_(options.row_bytes),
        team_(set_up(options, &options_, &read_)),
        workers_("rocksdb", team_.get_threads) {
    options_.create_if_missing = true;
    write_.disableWAL = true;
    for (int i = 0; i < team_.shards; ++i) {
      Shard& shard = shards_.emplace_back();
      shard.path = fmt::format("{}/shard_{}", options.dir, i);
      rocksdb::DB* db = nullptr;
      Require(rocksdb::DB::Open(options_, shard.path, &db), "open");
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
    // A write goes to one memtable whole, however large it makes it.
    const size_t share = keys.size() / static_cast<size_t>(team_.put_tasks_a_shard) + 1;
    const size_t piece = std::min(share, kPutPiece);
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
      if (shard.writer != nullptr && shard.writer->FileSize() > team_.load_file_bytes)
        EndFile(&shard);
    }
  }
  void FinishLoad() override {
    rocksdb::IngestExternalFileOptions ingest;
    ingest.move_files = true;
    for (Shard& shard : shards_) {
      if (shard.writer != nullptr) EndFile(&shard);
      if (!shard.files.empty())
        Require(shard.db->IngestExternalFile(shard.files, ingest), "ingest");
      shard.files.clear();
    }
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
  static constexpr size_t kPutPiece = 10'000;

  struct Entry {
    uint64_t key;    // as stored
    uint32_t place;  // in the batch
  };
  struct Shard {
    std::string path;
    std::unique_ptr<rocksdb::DB> db;
    std::vector<Entry> entries;  // of this batch, sorted
    std::unique_ptr<rocksdb::SstFileWriter> writer;
    std::vector<std::string> files;  // made by writers
  };

  rocksdb::Slice RowAt(const std::byte* rows, uint32_t place) const {
    return {reinterpret_cast<const char*>(rows) + place * row_bytes_, row_bytes_};
  }

  void Split(std::span<const uint64_t> keys) {
    for (Shard& shard : shards_) shard.entries.clear();
    for (uint32_t i = 0; i < keys.size(); ++i) {
      // Keys are random numbers; ascending ones fill one shard after another.
      const uint64_t shard = BelowN(keys[i], shards_.size());
      shards_[shard].entries.push_back({BigEndian(keys[i]), i});
    }
    workers_.Run(team_.shards, [&](int64_t s, int) {
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
    shard.db->MultiGet(read_, shard.db->DefaultColumnFamily(), n, slices.data(), values.data(),
                       statuses.data(), /*sorted_input=*/true);
    for (size_t i = 0; i < n; ++i) {
      const uint32_t place = piece[i].place;
      found[place] = statuses[i].ok();
      if (statuses[i].IsNotFound()) continue;
      Require(statuses[i], "get");
      std::memcpy(rows + place * row_bytes_, values[i].data(), row_bytes_);
    }
  }

  void StartFile(Shard* shard) {
    shard->files.push_back(fmt::format("{}/load_{}", shard->path, shard->files.size()));
    shard->writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), options_);
    Require(shard->writer->Open(shard->files.back()), "load");
  }
  static void EndFile(Shard* shard) {
    Require(shard->writer->Finish(), "load");
    shard->writer.reset();
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
  rocksdb::Options options_;
  rocksdb::ReadOptions read_;
  const RocksDbTeam team_;
  rocksdb::WriteOptions write_;
  std::vector<Shard> shards_;
  Workers workers_;
};

}  // namespace

std::unique_ptr<DiskEngine> OpenRocksDb(const EngineOptions& options) {
  return std::make_unique<RocksDb>(options, SetUpTuned);
}

std::unique_ptr<DiskEngine> OpenRocksDbAsFbgemm(const EngineOptions& options) {
  return std::make_unique<RocksDb>(options, SetUpAsFbgemm);
}

}  // namespace terrace
