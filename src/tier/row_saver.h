// Brings stores to the state of their tables after an exact batch, while training goes on.
//
// Of each row in memory two bits say where it stands. `changed`: its value is not in the store.
// `asked`: nor is it, and a flush will write the value it had when the flush began. A flush takes
// all changed rows and writes them in the order of the store. There are two kinds:
// - StartFlush writes ahead: who changes a row that is still asked for takes it out of the flush,
//   for it will have to be written again anyway.
// - BeginCut asks for the exact state between two batches: who changes such a row, or takes its
//   place, keeps a copy first. Rows that leave memory after it wait with being written until the
//   cut has ended. So the stores hold, at one moment between FlushAll and EndCut, what the tables
//   held when the cut began.
// A flush ahead makes the cut short.
//
// Threads: `train` calls BeforeTraining, StartFlush and BeginCut, between batches; `plan` Leave,
// EndPart and Remove; `pull` and `push` as below; one more thread (`save`) FlushAll, EndCut and
// AbandonCut. A row is copied under the lock only while it is asked for, and trained or overwritten
// only after it is not: nobody sees half a row.
// Failure: what a store throws comes from FlushAll; the rows are asked for still, and AbandonCut
// makes them changed ones again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/mutex.h"
#include "tier/disk_store.h"
#include "tier/key_sort.h"
#include "tier/memory_tier.h"
#include "tier/tiered_table.h"

namespace terrace {

class RowSaver {
 public:
  struct Table {
    MemoryTier* memory = nullptr;
    DiskStore* store = nullptr;
    // Asked now and then, for rows of no use any more, nor any older value of them. Null: none are.
    std::function<RowTest()> unseen;
  };
  struct Limits {
    int64_t kept_bytes = 64 << 20;    // of copies; who needs more waits
    int64_t chunk_rows = 16 << 10;    // written at once
    int64_t sorted_rows = 256 << 10;  // at least, as a flush goes on
  };

  RowSaver(std::vector<Table> tables, const Limits& limits);

  // --- train ---
  // These rows, of a batch, will change.
  void BeforeTraining(size_t table, std::span<const uint32_t> positions) EXCLUDES(mu_);
  // Starts to write changed rows ahead. Not while a flush or cut is under way.
  void StartFlush() EXCLUDES(mu_);
  // The stores shall get the state of now. A flush that is under way becomes part of it.
  void BeginCut() EXCLUDES(mu_);
  int64_t changed_rows() const EXCLUDES(mu_);
  int64_t copied_bytes() const EXCLUDES(mu_);  // that wait to be written
  double wait_seconds() const EXCLUDES(mu_);   // of train, for copies to be written

  // --- plan ---
  // These rows leave memory: says of each whether it has to be written.
  void Leave(size_t table, std::span<RowMove> victims) EXCLUDES(mu_);
  // The moves of a window's part are complete. Returns the number of cuts before that.
  uint32_t EndPart() EXCLUDES(mu_);
  // These rows of a table in memory alone are due, and go.
  void Remove(size_t table, std::span<const uint32_t> positions) EXCLUDES(mu_);

  // --- pull, push ---
  void PartPulled() EXCLUDES(mu_);
  // Rows of a part that ended after `cuts` cuts are copied / may now be written / are written.
  void WriteStarted(uint32_t cuts) EXCLUDES(mu_);
  bool WaitForWrite(uint32_t cuts) EXCLUDES(mu_);  // false: cancelled
  void WriteEnded(uint32_t cuts) EXCLUDES(mu_);
  // Held while rows of the table are written, so that older values never come last.
  Mutex* order(size_t table) { return &orders_[table]; }

  // --- save ---
  // Writes all rows that are asked for. In a cut waits for what left before it, too: then the
  // stores hold the state of its beginning until EndCut. False: cancelled.
  bool FlushAll() EXCLUDES(mu_);
  bool cutting() const EXCLUDES(mu_);
  void EndCut() EXCLUDES(mu_);
  void AbandonCut() EXCLUDES(mu_);
  int64_t written_rows() const EXCLUDES(mu_);

  // Wakes all who wait, for good.
  void Cancel() EXCLUDES(mu_);
  int64_t bytes() const EXCLUDES(mu_);  // of memory

 private:
  enum class Mode { kNone, kAhead, kCut };
  using Bits = std::vector<uint64_t>;
  struct Copies {
    Array<uint64_t> keys;
    Array<std::byte> rows;
  };
  // In blocks, so that none is ever copied to a larger place.
  using CopyBlocks = std::vector<Copies>;
  struct State {
    Bits changed, asked;
    int64_t changed_count = 0, asked_count = 0;
    CopyBlocks kept;     // of a cut: values of its beginning
    CopyBlocks removed;  // rows that went, to be written with the next flush
    // Changed rows that left for the part in planning.
    std::vector<std::pair<uint32_t, uint64_t>> leaving;
  };

  // Lets others have the lock first: `save` takes it again and again.
  void GiveWay() const;
  void Ask(State* state) REQUIRES(mu_);
  void Copy(size_t table, uint32_t position, uint64_t key, Copies* to) REQUIRES(mu_);
  void Keep(size_t table, uint32_t position, uint64_t key, CopyBlocks* to) REQUIRES(mu_);
  bool WaitForEarlierWrites() EXCLUDES(mu_);
  bool FlushTable(size_t table) EXCLUDES(mu_);
  void WriteCopies(size_t table, CopyBlocks State::*which) EXCLUDES(mu_);
  void WriteRows(size_t table, std::span<const KeyItem> rows) EXCLUDES(mu_);
  void Gather(size_t table, uint64_t first_mix, uint64_t last_mix) EXCLUDES(mu_);

  const std::vector<Table> tables_;
  const Limits limits_;
  std::unique_ptr<Mutex[]> orders_;  // locked before mu_

  // Of `save`.
  Array<KeyItem> sorted_, sorting_;
  Copies chunk_;
  std::vector<uint32_t> chunk_positions_;

  std::atomic<int> waiting_{0};  // who is not `save` and wants the lock

  mutable Mutex mu_;
  CondVar changed_;
  Mode mode_ GUARDED_BY(mu_) = Mode::kNone;
  std::vector<State> states_ GUARDED_BY(mu_);
  int64_t asks_ GUARDED_BY(mu_) = 0;        // so far, by table
  int64_t kept_bytes_ GUARDED_BY(mu_) = 0;  // of rows in all blocks
  CopyBlocks spare_ GUARDED_BY(mu_);
  uint32_t cuts_ GUARDED_BY(mu_) = 0;        // begun
  uint32_t cuts_ended_ GUARDED_BY(mu_) = 0;  // or abandoned
  int64_t parts_ended_ GUARDED_BY(mu_) = 0, parts_pulled_ GUARDED_BY(mu_) = 0;
  int64_t parts_before_cut_ GUARDED_BY(mu_) = 0;
  // By the lowest bit of `cuts`.
  int64_t writes_started_[2] GUARDED_BY(mu_) = {}, writes_ended_[2] GUARDED_BY(mu_) = {};
  double wait_seconds_ GUARDED_BY(mu_) = 0;
  int64_t written_rows_ GUARDED_BY(mu_) = 0;
  bool cancelled_ GUARDED_BY(mu_) = false;
};

}  // namespace terrace
