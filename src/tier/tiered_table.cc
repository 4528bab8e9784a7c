#include "tier/tiered_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "table/schema.h"
#include "tier/disk_page.h"

namespace terrace {
namespace {

// Rows ahead of the one at hand whose cache lines are fetched.
constexpr size_t kAhead = 16;
// An index entry and its share of free space, a pin, a policy's value.
constexpr int64_t kRowMetadata = 8 + 4 + 4;
constexpr int64_t kGrowStep = 4096;

int64_t Count(size_t n) { return static_cast<int64_t>(n); }

}  // namespace

void TieredStats::Add(const TieredStats& other) {
  lookups += other.lookups;
  hits += other.hits;
  from_disk += other.from_disk;
  created += other.created;
  evicted += other.evicted;
  written += other.written;
  eval_reads += other.eval_reads;
  eval_evicted += other.eval_evicted;
  expired += other.expired;
}

int64_t TieredTable::RowBytes(const TableSchema& schema) {
  return schema.layout.stride + kRowMetadata;
}

size_t TieredTable::DiskRowBytes(const TableSchema& schema) {
  return std::max(DiskOptions::kMinRowBytes, static_cast<size_t>(schema.layout.payload_bytes()));
}

TieredTable::TieredTable(MemoryTier* memory, std::unique_ptr<DiskStore> disk, PolicyKind policy,
                         std::function<RowTest()> due)
    : memory_(*memory),
      disk_(std::move(disk)),
      policy_(EvictionPolicy::Make(policy)),
      due_(std::move(due)),
      payload_bytes_(static_cast<size_t>(memory->schema().layout.payload_bytes())),
      disk_row_bytes_(DiskRowBytes(memory->schema())),
      pin_arena_(fmt::format("table '{}': pins", memory->schema().name),
                 (int64_t{std::numeric_limits<uint32_t>::max()} + 1) * 4) {
  TERRACE_CHECK(disk_->row_bytes() == disk_row_bytes_);
  pin_arena_.Grow(4);
}

void TieredTable::Start(int64_t own_rows, int64_t guests, RowRoom* room) {
  TERRACE_CHECK(guests <= own_rows);
  room_ = room;
  own_left_ = own_rows;
  guest_rows_ = Grow(guests);
  for (int64_t p = guest_rows_; p > 0; --p) guest_free_.push_back(static_cast<uint32_t>(p));
}

// Up to `rows` new positions, as far as there is room. They are the last ones.
int64_t TieredTable::Grow(int64_t rows) {
  const int64_t row_bytes = RowBytes(memory_.schema());
  const int64_t own = std::min(rows, own_left_);
  const int64_t shared = std::min(rows - own, room_->bytes / row_bytes);
  own_left_ -= own;
  room_->bytes -= shared * row_bytes;
  handed_ += own + shared;
  memory_.Grow(handed_);
  pin_arena_.Grow((handed_ + 1) * 4);
  policy_->Resize(handed_);
  return own + shared;
}

int64_t TieredTable::most_rows() const {
  return handed_ - guest_rows_ + own_left_ + room_->bytes / RowBytes(memory_.schema());
}

// --- plan ---

void TieredTable::SetPins(std::span<const uint32_t> positions, uint32_t stamp, bool training) {
  uint32_t* const all = pins();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) __builtin_prefetch(&all[positions[i + kAhead]], 1);
    // Of several batches the last one counts, in whatever order they are touched.
    uint32_t& pin = all[positions[i]];
    pin = std::max(pin & ~uint32_t{1}, Pin(stamp, false)) | (pin & 1) | uint32_t{training};
  }
}

void TieredTable::Touch(uint32_t stamp, bool training, TablePlan* plan) {
  SetSize(&plan->row_positions, plan->row_keys.size());
  memory_.Find(plan->row_keys, plan->row_positions);
  ListRows(*plan, {});
  plan->missing = Count(missing_.size());
  SetPins(found_, stamp, training);
}

// What the batch has in memory, and what not, of the part.
void TieredTable::ListRows(const TablePlan& plan, KeyPart part) {
  const size_t rows = plan.row_positions.size();
  SetSize(&found_, rows);
  SetSize(&missing_, rows);
  size_t found = 0;
  for (size_t r = 0; r < rows; ++r) {
    const uint32_t position = plan.row_positions[r];
    found_[found] = position;
    missing_[r - found] = static_cast<uint32_t>(r);
    found += position != 0 ? 1 : 0;
  }
  found_.resize(found);
  missing_.resize(rows - found);
  if (part.parts == 1) return;
  size_t kept = 0;
  for (uint32_t row : missing_) {
    missing_[kept] = row;
    kept += part.Has(MixOfKey(plan.row_keys[row])) ? 1 : 0;
  }
  missing_.resize(kept);
}

// Where the missing rows of the part are now, to new_positions_.
void TieredTable::FindMissing(const TablePlan& plan, KeyPart part) {
  ListRows(plan, part);
  keys_.clear();
  for (uint32_t row : missing_) keys_.push_back(plan.row_keys[row]);
  new_positions_.resize(keys_.size());
  memory_.Find(keys_, new_positions_);
  found_.clear();
}

void TieredTable::TouchMissing(uint32_t stamp, bool training, TablePlan* plan, KeyPart part) {
  if (plan->missing == 0) return;
  FindMissing(*plan, part);
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (new_positions_[i] == 0) continue;
    plan->row_positions[missing_[i]] = new_positions_[i];
    found_.push_back(new_positions_[i]);
  }
  plan->missing -= Count(found_.size());
  SetPins(found_, stamp, training);
  if (training && !part.first()) CountHits(stamp);
}

// Of found_. What is there before the first part is counted with it.
void TieredTable::CountHits(uint32_t stamp) {
  hits_ += Count(found_.size());
  policy_->Use(found_, stamp);
}

void TieredTable::Forget(uint32_t stamp, const TablePlan& plan) {
  for (uint32_t position : plan.row_positions) {
    uint32_t& pin = pins()[position];
    if (position != 0 && pin >> 1 == stamp) pin &= 1;
  }
}

bool TieredTable::MakeFree(int64_t rows, uint32_t done) {
  const auto lack = [&] { return rows - Count(free_.size()) - Count(left_.size()); };
  if (lack() > 0) {
    const int64_t before = handed_;
    Grow(std::max(lack(), kGrowStep));
    for (int64_t p = handed_; p > before; --p) free_.push_back(static_cast<uint32_t>(p));
  }
  if (lack() <= 0) return true;
  victims_.clear();
  policy_->Pick(lack(), {pins(), static_cast<size_t>(handed_) + 1}, Pin(done, true), &victims_);
  keys_.resize(victims_.size());
  for (size_t i = 0; i < victims_.size(); ++i) {
    if (i + kAhead < victims_.size())
      __builtin_prefetch(memory_.row(victims_[i + kAhead]) - RowLayout::kKeyBytes);
    keys_[i] = memory_.key(victims_[i]);
  }
  SortKeys(keys_, &order_, &sorting_);
  for (const KeyItem& item : order_) {
    RowMove move;
    move.position = victims_[item.index];
    move.victim = keys_[item.index];
    move.evict = (pins()[move.position] & 1) != 0;
    left_.push_back(move);
  }
  if (leave_) leave_(std::span(left_).last(victims_.size()));
  memory_.Erase(victims_);
  evicted_ += Count(victims_.size());
  return lack() <= 0;
}

bool TieredTable::Reserve(const TablePlan& plan, uint32_t done, KeyPart part) {
  ReclaimGuests(done);
  ListRows(plan, part);
  return MakeFree(Count(missing_.size()), done);
}

int64_t TieredTable::RoomAfter(uint32_t stamp, bool alone) const {
  int64_t rows = alone ? most_rows() - (handed_ - guest_rows_) : own_left_;
  const uint32_t most = Pin(stamp, true);
  for (const uint32_t *pin = pins() + guest_rows_ + 1, *end = pins() + handed_ + 1; pin < end;
       ++pin)
    rows += *pin <= most ? 1 : 0;
  // Those that evaluation took have no pins.
  for (const Guests& guests : guests_)
    if (guests.stamp > stamp)
      rows -= std::ranges::count_if(guests.positions, [&](uint32_t p) { return p > guest_rows_; });
  return rows;
}

RowMove TieredTable::TakeFree() {
  RowMove move;
  if (!left_.empty()) {
    move = left_.back();
    left_.pop_back();
  } else {
    move.position = free_.back();
    free_.pop_back();
  }
  return move;
}

void TieredTable::Place(uint32_t stamp, TablePlan* plan, RowMoves* moves, KeyPart part) {
  ListRows(*plan, part);
  const size_t missing = missing_.size();
  if (part.first()) {
    lookups_ += Count(plan->row_keys.size());
    CountHits(stamp);
  }

  keys_.resize(missing);
  for (size_t i = 0; i < missing; ++i) keys_[i] = plan->row_keys[missing_[i]];
  // Rows that leave are taken from the last one back. In the same order the rows that come take
  // their places, from the middle of the part on: so a chunk of moves writes to few partitions,
  // which are seldom those that it reads.
  SortKeys(keys_, &order_, &sorting_);
  const auto middle = std::partition_point(
      order_.begin(), order_.end(), [&](const KeyItem& item) { return item.mix < part.Turn(); });
  std::rotate(order_.begin(), middle, order_.end());
  new_positions_.resize(missing);
  for (size_t i = missing; i-- > 0;) {
    RowMove move = TakeFree();
    const uint32_t at = order_[i].index;
    move.key = keys_[at];
    move.fetch = move.create = true;
    new_positions_[at] = plan->row_positions[missing_[at]] = move.position;
    pins()[move.position] = Pin(stamp, true);
    moves->push_back(move);
  }
  memory_.Insert(keys_, new_positions_);
  policy_->Add(new_positions_, stamp);
  plan->missing -= Count(missing);
}

void TieredTable::ListArrivals(std::span<const BatchRows> batches, KeyPart part) {
  arrivals_.clear();
  for (size_t b = 0; b < batches.size(); ++b) {
    if (batches[b].plan == nullptr) continue;
    ListRows(*batches[b].plan, part);
    for (uint32_t row : missing_)
      arrivals_.push_back({MixOfKey(batches[b].plan->row_keys[row]), static_cast<uint32_t>(b)});
  }
  SortItemsFully(&arrivals_, &sorting_);
  // Of the same key the first batch.
  const auto same = [](const KeyItem& a, const KeyItem& b) { return a.mix == b.mix; };
  arrivals_.erase(std::unique(arrivals_.begin(), arrivals_.end(), same), arrivals_.end());
  arrival_counts_.assign(batches.size(), 0);
  for (const KeyItem& item : arrivals_) ++arrival_counts_[item.index];
}

bool TieredTable::ReserveArrivals(size_t batches, uint32_t done) {
  ReclaimGuests(done);
  const auto end = arrival_counts_.begin() + static_cast<ptrdiff_t>(batches);
  return MakeFree(std::accumulate(arrival_counts_.begin(), end, int64_t{0}), done);
}

void TieredTable::PlaceArrivals(std::span<const BatchRows> batches, KeyPart part, RowMoves* moves) {
  if (part.first()) {
    for (const auto& [stamp, plan] : batches) {
      if (plan == nullptr) continue;
      ListRows(*plan, part);
      lookups_ += Count(plan->row_keys.size());
      CountHits(stamp);
    }
  }
  std::erase_if(arrivals_, [&](const KeyItem& item) { return item.index >= batches.size(); });
  const size_t n = arrivals_.size();
  const auto turn = static_cast<size_t>(
      std::partition_point(arrivals_.begin(), arrivals_.end(),
                           [&](const KeyItem& item) { return item.mix < part.Turn(); }) -
      arrivals_.begin());
  moves->resize(n);
  keys_.resize(n);
  new_positions_.resize(n);
  for (size_t i = n; i-- > 0;) {
    const size_t at = turn + i < n ? turn + i : turn + i - n;
    RowMove move = TakeFree();
    move.key = keys_[at] = KeyOfMix(arrivals_[at].mix);
    move.fetch = move.create = true;
    new_positions_[at] = move.position;
    pins()[move.position] = Pin(batches[arrivals_[at].index].stamp, true);
    (*moves)[at] = move;
  }
  memory_.Insert(keys_, new_positions_);
  for (const auto& [stamp, plan] : batches)
    if (plan != nullptr) FindArrivals(stamp, plan, part);
}

// Those that this batch brings have its stamp, others an earlier one.
void TieredTable::FindArrivals(uint32_t stamp, TablePlan* plan, KeyPart part) {
  if (plan->missing == 0) return;
  FindMissing(*plan, part);
  added_.clear();
  for (size_t i = 0; i < new_positions_.size(); ++i) {
    const uint32_t position = new_positions_[i];
    plan->row_positions[missing_[i]] = position;
    (pins()[position] >> 1 == stamp ? added_ : found_).push_back(position);
  }
  plan->missing -= Count(missing_.size());
  SetPins(found_, stamp, true);
  CountHits(stamp);
  policy_->Add(added_, stamp);
}

void TieredTable::ReclaimGuests(uint32_t done) {
  while (!guests_.empty() && guests_.front().stamp <= done) {
    for (uint32_t position : guests_.front().positions)
      (position <= guest_rows_ ? guest_free_ : free_).push_back(position);
    guests_.pop_front();
  }
}

bool TieredTable::ReserveGuests(const TablePlan& plan, uint32_t done, KeyPart part) {
  if (!part.first()) return true;
  ReclaimGuests(done);
  const int64_t lack = guests_set_aside_ + plan.missing - Count(guest_free_.size());
  if (lack <= 0) return true;
  // Earlier test batches give theirs back soon. One that is larger than all guests together takes
  // rows of the training set.
  if (!guests_.empty() || guests_set_aside_ > 0) return false;
  TERRACE_CHECK(part.parts == 1);
  const int64_t before = evicted_;
  const bool enough = MakeFree(lack, done);
  eval_evicted_ += evicted_ - before;
  return enough;
}

void TieredTable::PlaceGuests(uint32_t stamp, TablePlan* plan, RowMoves* moves, KeyPart part) {
  Guests guests;
  guests.stamp = stamp;
  ListRows(*plan, part);
  for (uint32_t row : missing_) {
    RowMove move;
    if (!guest_free_.empty()) {
      move.position = guest_free_.back();
      guest_free_.pop_back();
    } else {
      move = TakeFree();
    }
    move.key = plan->row_keys[row];
    move.fetch = true;
    plan->row_positions[row] = move.position;
    guests.positions.push_back(move.position);
    moves->push_back(move);
  }
  const int64_t placed = Count(missing_.size());
  eval_reads_ += placed;
  plan->missing -= placed;
  // Of later parts' rows, batches of training may bring some.
  guests_set_aside_ = part.first() ? guests_set_aside_ + plan->missing
                                   : std::max<int64_t>(0, guests_set_aside_ - placed);
  if (!guests.positions.empty()) guests_.push_back(std::move(guests));
}

void TieredTable::EndPart(RowMoves* moves, KeyPart part) {
  for (const RowMove& move : left_) {
    moves->push_back(move);
    free_.push_back(move.position);
  }
  left_.clear();
  if (part.last()) guests_set_aside_ = 0;
}

std::vector<bool> TieredTable::Resident() const {
  std::vector<bool> resident(static_cast<size_t>(handed_) + 1, true);
  resident[0] = false;
  for (int64_t p = 1; p <= guest_rows_; ++p) resident[static_cast<size_t>(p)] = false;
  for (uint32_t position : free_) resident[position] = false;
  for (const RowMove& move : left_) resident[move.position] = false;
  for (const Guests& guests : guests_)
    for (uint32_t position : guests.positions) resident[position] = false;
  return resident;
}

int64_t TieredTable::metadata_bytes() const {
  return pin_arena_.size() + policy_->bytes() + Count(4 * free_.capacity());
}

TieredStats TieredTable::stats() const {
  return {lookups_, hits_,       from_disk_,    created_, evicted_,
          written_, eval_reads_, eval_evicted_, expired_};
}

}  // namespace terrace
