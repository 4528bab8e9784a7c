// A table in two tiers: a bounded number of its rows in memory, all others on disk.
//
// Batches have stamps 1, 2, 3 ... in the order they are trained; `done` is the last one trained.
// They are planned in windows of consecutive batches, in three steps: Touch finds and pins the rows
// that are in memory, for every batch of the window before anything else; Reserve makes room for
// the others by choosing rows that leave; Place gives each its position. What has to be carried is
// written down as moves, which another thread carries out while later windows are planned and
// earlier ones trained. The second and third step may be done in parts, one range of the disk's
// order after the other: more rows are free to leave when the later parts' turn comes.
//
// Why this is exact:
// - A row that a batch not yet trained uses is pinned: who trains it sees every earlier update.
// - No row leaves and comes back within one window: its batches are touched before rows leave.
// - Rows of a window are read from disk after what left for earlier windows was written there.
// - A row that is in no tier starts with a value that is a function of its key.
//
// Evaluation pins what it finds in memory, and reads other rows to guest positions, which no key
// leads to: it changes neither tier.
//
// Threads: `plan` calls all but the functions of `pull` and `push` below. Several may pull
// different moves of one window at once. Stats may be read by any.
// Failure: what the disk store throws comes from Fetch and Write; the table must not be used then.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "tier/disk_store.h"
#include "tier/eviction_policy.h"
#include "tier/key_sort.h"
#include "tier/memory_tier.h"
#include "tier/plan.h"

namespace terrace {

// What happens at one position: a row leaves, a row comes, or both.
struct RowMove {
  uint64_t key = 0;     // of the row that comes
  uint64_t victim = 0;  // of the row that leaves
  uint32_t position = 0;
  bool evict = false;   // the row that leaves has changed since it was last on disk
  bool fetch = false;   // a row comes
  bool create = false;  // and gets its first value if it is on no disk; else it becomes zero
};
using RowMoves = Array<RowMove>;

// Of a window of as many batches or more.
inline constexpr uint32_t kWindowParts = 4;

// A range of the disk's order, of several that are about as large.
struct KeyPart {
  uint32_t index = 0, parts = 1;

  bool first() const { return index == 0; }
  bool last() const { return index + 1 == parts; }
  bool Has(uint64_t mix) const { return ((mix >> 32) * parts) >> 32 == index; }
  // Where in it, if rows that leave come in the disk's order from 0 on, these are far from it: of
  // several parts, so that rows of this one leave at its end; of one, in its middle.
  uint64_t Turn() const {
    const uint64_t halves = parts == 1 ? 1 : 2 * (parts - 1 - index);  // of a part's share
    const auto whole = static_cast<unsigned __int128>(1) << 64;
    return static_cast<uint64_t>((whole * index + whole * halves / (parts == 1 ? 2 : 2 * parts)) /
                                 parts);
  }
};

// Moves are carried out in chunks by so many threads: while one finds its rows' pages or copies
// rows, the other keeps the device busy. Chunks are large enough for a long queue, and small enough
// that neither waits long for the other where a window begins or ends.
inline constexpr int64_t kMostChunkRows = 4 << 10;
inline constexpr int kPullThreads = 2;

// Rows on their way to the disk.
struct WriteBack {
  int table = 0;
  uint32_t cuts = 0;  // of the stores, before their window ended (row_saver.h)
  Array<uint64_t> keys;
  Array<std::byte> rows;
};

// Rows on their way to memory; of one thread, kept from chunk to chunk.
struct FetchBuffers {
  Array<uint64_t> keys;
  Array<std::byte> rows;
  Array<uint8_t> found;
};

// Bytes that tables may still take for rows; shared between them.
struct RowRoom {
  int64_t bytes = 0;
};

struct TieredStats {
  int64_t lookups = 0;       // distinct keys of training batches
  int64_t hits = 0;          // of these, in memory
  int64_t from_disk = 0;     // read back for training
  int64_t created = 0;       // on no tier before
  int64_t evicted = 0;       // left the memory tier
  int64_t written = 0;       // of these, written to the disk tier
  int64_t eval_reads = 0;    // keys that evaluation asked the disk tier for
  int64_t eval_evicted = 0;  // rows that left because a test batch alone is larger than its share
  int64_t expired = 0;       // left when they were due

  void Add(const TieredStats& other);
};

class TieredTable {
 public:
  // `memory` is empty and outlives the table. `due`: asked now and
  // then, for rows of no use any more, nor any older value of them. Null: none are.
  TieredTable(MemoryTier* memory, std::unique_ptr<DiskStore> disk, PolicyKind policy,
              std::function<RowTest()> due = {});

  // Bytes of memory that a row in memory takes, with its share of the index.
  static int64_t RowBytes(const TableSchema& schema);
  static size_t DiskRowBytes(const TableSchema& schema);

  // Before the first batch: this table may always hold `own_rows`, more as long as `room` lasts.
  // `guests` of its own rows are for evaluation.
  void Start(int64_t own_rows, int64_t guests, RowRoom* room);

  // Asked whenever rows leave memory: which of them have to be written (RowMove::evict). Without it
  // those that were trained since they came.
  using Leave = std::function<void(std::span<RowMove> victims)>;
  void set_leave(Leave leave) { leave_ = std::move(leave); }

  // --- plan ---
  // Finds the rows that are in memory and pins them up to batch `stamp`. `training`: they will
  // change.
  void Touch(uint32_t stamp, bool training, TablePlan* plan);
  // Looks again for the part's missing rows: earlier batches may have brought them.
  void TouchMissing(uint32_t stamp, bool training, TablePlan* plan, KeyPart part = {});
  // Takes the pins of a touched batch back, as if it was not known yet.
  void Forget(uint32_t stamp, const TablePlan& plan);
  // Makes room for the part's missing rows; false if too many rows are pinned. What left until then
  // is free.
  bool Reserve(const TablePlan& plan, uint32_t done, KeyPart part = {});
  // Gives these rows their positions, for training. Reserve returned true.
  void Place(uint32_t stamp, TablePlan* plan, RowMoves* moves, KeyPart part = {});
  // The same for several batches of training at once, which is faster and keeps moves in order:
  // rows of the part that are missing ...
  struct BatchRows {
    uint32_t stamp = 0;
    TablePlan* plan = nullptr;  // null: not of a batch
  };
  // ... are listed: each is brought by the first batch that has it ...
  void ListArrivals(std::span<const BatchRows> batches, KeyPart part);
  int64_t arrivals(size_t batch) const { return arrival_counts_[batch]; }
  // ... get room, all of the first `batches`; if there is not enough, free_rows() tells ...
  bool ReserveArrivals(size_t batches, uint32_t done);
  // ... and get positions.
  void PlaceArrivals(std::span<const BatchRows> batches, KeyPart part, RowMoves* moves);
  int64_t free_rows() const { return std::ssize(free_) + std::ssize(left_); }
  // For evaluation. With the first part guests are set aside for the others: there can be
  // several only where no more than guests() are missing.
  bool ReserveGuests(const TablePlan& plan, uint32_t done, KeyPart part = {});
  void PlaceGuests(uint32_t stamp, TablePlan* plan, RowMoves* moves, KeyPart part = {});
  // At the end of a part: rows that left and whose place nobody took yet.
  void EndPart(RowMoves* moves, KeyPart part = {});
  // So many rows can come when all batches up to `stamp` are trained, as things are; `alone`: all
  // that is left of the shared room is for this table.
  int64_t RoomAfter(uint32_t stamp, bool alone) const;
  // Puts moves in the order of the disk.
  void Sort(RowMoves* moves);

  int64_t handed_rows() const { return handed_; }  // positions in use, guests and free ones too
  int64_t guests() const { return guest_rows_; }
  int64_t most_rows() const;  // as things are
  bool grows() const { return most_rows() > handed_ - guest_rows_; }

  // --- pull ---
  // Copies rows that leave, before Fetch of the same moves takes their place. Rows that are due
  // are not copied.
  void CopyVictims(std::span<const RowMove> moves, WriteBack* out);
  // Brings rows: from the disk, or first values.
  void Fetch(std::span<const RowMove> moves, FetchBuffers* buffers);

  // --- push ---
  void Write(const WriteBack& rows);

  TieredStats stats() const;
  const MemoryTier& memory() const { return memory_; }
  DiskStore& disk() { return *disk_; }
  int64_t metadata_bytes() const;  // pins, policy, free lists

  // Of each position, whether a row is there. When no thread works on the table.
  std::vector<bool> Resident() const;

 private:
  struct Guests {
    uint32_t stamp;
    std::vector<uint32_t> positions;
  };

  // A pin is a stamp, and in the lowest bit whether the row has changed since it was on disk.
  static uint32_t Pin(uint32_t stamp, bool dirty) { return stamp << 1 | uint32_t{dirty}; }
  uint32_t* pins() const { return reinterpret_cast<uint32_t*>(pin_arena_.data()); }
  void SetPins(std::span<const uint32_t> positions, uint32_t stamp, bool training);
  void ListRows(const TablePlan& plan, KeyPart part);
  void FindMissing(const TablePlan& plan, KeyPart part);
  void CountHits(uint32_t stamp);
  void FindArrivals(uint32_t stamp, TablePlan* plan, KeyPart part);
  int64_t Grow(int64_t rows);
  bool MakeFree(int64_t rows, uint32_t done);
  void SortPart(std::span<RowMove> moves);
  void ReclaimGuests(uint32_t done);
  RowMove TakeFree();

  MemoryTier& memory_;
  const std::unique_ptr<DiskStore> disk_;
  const std::unique_ptr<EvictionPolicy> policy_;
  const std::function<RowTest()> due_;
  Leave leave_;
  const size_t payload_bytes_;
  const size_t disk_row_bytes_;

  // Of `plan`.
  RowArena pin_arena_;
  RowRoom* room_ = nullptr;
  int64_t own_left_ = 0;  // rows
  int64_t handed_ = 0;    // positions 1 ... handed_ exist
  std::vector<uint32_t> free_;
  std::vector<RowMove> left_;  // rows that left in this window, whose place is not taken yet
  std::vector<uint32_t> guest_free_;
  std::deque<Guests> guests_;
  int64_t guest_rows_ = 0;        // positions 1 ... guest_rows_
  int64_t guests_set_aside_ = 0;  // of those that are free, for later parts
  Array<uint32_t> victims_, new_positions_;
  Array<uint32_t> found_, missing_;  // of ListRows: positions, and rows of the plan's part
  Array<uint64_t> keys_;
  Array<KeyItem> order_, sorting_;
  Array<KeyItem> arrivals_;              // in order; the index is that of the batch that brings it
  std::vector<int64_t> arrival_counts_;  // by batch
  Array<uint32_t> added_;
  RowMoves sorted_;

  std::atomic<int64_t> lookups_{0}, hits_{0}, from_disk_{0}, created_{0}, evicted_{0}, written_{0},
      eval_reads_{0}, eval_evicted_{0}, expired_{0};
};

}  // namespace terrace
