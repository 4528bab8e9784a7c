// LMDB for disk_bench. It maps its file and has no cache of its own: the page cache serves it,
// which the run's cgroup bounds. A put batch is one transaction that is not synced: our Put is no
// commit either. Reads are page faults, so a batch is read by a team of threads.
#include <fmt/format.h>
#include <lmdb.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/workers.h"
#include "bench/disk_engine.h"

namespace terrace {
namespace {

void Require(int error, const char* what) {
  if (error != 0)
    throw Error(ErrorCode::kIo, fmt::format("LMDB, {}: {}", what, mdb_strerror(error)));
}

constexpr size_t kPageBytes = 4096;

MDB_val Val(const void* data, size_t size) { return {size, const_cast<void*>(data)}; }

class Lmdb : public DiskEngine {
 public:
  explicit Lmdb(const EngineOptions& options)
      : row_bytes_(options.row_bytes),
        transaction_keys_(options.memory_bytes / 4 / kPageBytes),
        workers_("lmdb", options.threads) {
    Require(mdb_env_create(&env_), "create");
    // Address space only: several times the rows.
    Require(mdb_env_set_mapsize(
                env_, (options.rows * (row_bytes_ + 64) * 3) / 4096 * 4096 + (size_t{1} << 30)),
            "map size");
    // Without WRITEMAP, which has the system write changed pages one at a time when memory is
    // short.
    constexpr unsigned kFlags = MDB_NOSYNC | MDB_NORDAHEAD | MDB_NOTLS;
    Require(mdb_env_open(env_, options.dir.c_str(), kFlags, 0644), "open");
    MDB_txn* txn = nullptr;
    Require(mdb_txn_begin(env_, nullptr, 0, &txn), "begin");
    Require(mdb_dbi_open(txn, nullptr, MDB_INTEGERKEY | MDB_CREATE, &dbi_), "open");
    Require(mdb_txn_commit(txn), "commit");
  }
  ~Lmdb() override {
    mdb_env_sync(env_, 1);
    mdb_env_close(env_);
  }

  void Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) override {
    Sort(keys);
    ForEachPiece(entries_, [&](MDB_txn* txn, std::span<const Entry> piece) {
      GetPiece(txn, piece, rows, found);
    });
  }

  void Put(std::span<const uint64_t> keys, const std::byte* rows) override {
    Sort(keys);
    Write(rows, 0);
  }

  bool loads_sorted() const override { return true; }
  void Load(std::span<const uint64_t> keys, const std::byte* rows) override {
    Sort(keys);
    Write(rows, MDB_APPEND);
  }

  void Settle() override { Require(mdb_env_sync(env_, 1), "sync"); }

 private:
  struct Entry {
    uint64_t key;
    uint32_t place;  // in the batch
  };

  void Sort(std::span<const uint64_t> keys) {
    entries_.resize(keys.size());
    for (uint32_t i = 0; i < keys.size(); ++i) entries_[i] = {keys[i], i};
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }

  // Calls f(transaction for reading, piece) for the pieces of `entries` on the team's threads.
  template <typename F>
  void ForEachPiece(std::span<const Entry> entries, F f) {
    constexpr size_t kPiece = 512;
    const size_t pieces = (entries.size() + kPiece - 1) / kPiece;
    workers_.Run(static_cast<int64_t>(pieces), [&](int64_t i, int) {
      const size_t begin = static_cast<size_t>(i) * kPiece;
      MDB_txn* txn = nullptr;
      Require(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn), "begin");
      f(txn, entries.subspan(begin, std::min(kPiece, entries.size() - begin)));
      mdb_txn_abort(txn);
    });
  }

  void GetPiece(MDB_txn* txn, std::span<const Entry> piece, std::byte* rows, uint8_t* found) {
    for (const Entry& e : piece) {
      MDB_val key = Val(&e.key, sizeof e.key);
      MDB_val row;
      const int error = mdb_get(txn, dbi_, &key, &row);
      found[e.place] = error == 0;
      if (error == MDB_NOTFOUND) continue;
      Require(error, "get");
      std::memcpy(rows + e.place * row_bytes_, row.mv_data, row_bytes_);
    }
  }

  // Brings the pages of keys into memory, many at a time: the one writer would wait for each.
  void Touch(std::span<const Entry> entries) {
    ForEachPiece(entries, [&](MDB_txn* txn, std::span<const Entry> piece) {
      for (const Entry& e : piece) {
        MDB_val key = Val(&e.key, sizeof e.key);
        MDB_val row;
        const int error = mdb_get(txn, dbi_, &key, &row);
        if (error != MDB_NOTFOUND) Require(error, "get");
      }
    });
  }

  void Write(const std::byte* rows, unsigned flags) {
    const std::span<const Entry> all(entries_);
    for (size_t i = 0; i < all.size(); i += transaction_keys_) {
      const auto piece = all.subspan(i, std::min(transaction_keys_, all.size() - i));
      if (flags == 0) Touch(piece);
      WriteOnce(piece, rows, flags);
    }
  }

  void WriteOnce(std::span<const Entry> piece, const std::byte* rows, unsigned flags) {
    MDB_txn* txn = nullptr;
    Require(mdb_txn_begin(env_, nullptr, 0, &txn), "begin");
    MDB_cursor* cursor = nullptr;
    Require(mdb_cursor_open(txn, dbi_, &cursor), "cursor");
    for (const Entry& e : piece) {
      MDB_val key = Val(&e.key, sizeof e.key);
      MDB_val row = Val(rows + e.place * row_bytes_, row_bytes_);
      Require(mdb_cursor_put(cursor, &key, &row, flags), "put");
    }
    mdb_cursor_close(cursor);
    Require(mdb_txn_commit(txn), "commit");
  }

  const size_t row_bytes_;
  const size_t transaction_keys_;  // a key changes a page, which stays in memory until the commit
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  std::vector<Entry> entries_;
  Workers workers_;
};

}  // namespace

std::unique_ptr<DiskEngine> OpenLmdb(const EngineOptions& options) {
  return std::make_unique<Lmdb>(options);
}

}  // namespace terrace
