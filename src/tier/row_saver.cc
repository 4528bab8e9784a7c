#include "tier/row_saver.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "tier/disk_page.h"

namespace terrace {
namespace {

// The lock is held for so many positions at a time.
constexpr size_t kLookedAt = 64 << 10;
constexpr size_t kCopied = 1 << 10;
constexpr uint64_t kMostPasses = 8;
constexpr size_t kBlockRows = 4 << 10;

bool Test(const std::vector<uint64_t>& bits, uint32_t position) {
  return position / 64 < bits.size() && (bits[position / 64] >> position % 64 & 1) != 0;
}

// Whether it was set before.
bool Set(std::vector<uint64_t>* bits, uint32_t position) {
  if (position / 64 >= bits->size()) bits->resize(std::bit_ceil(position / 64 + size_t{1}));
  uint64_t& word = (*bits)[position / 64];
  const uint64_t bit = uint64_t{1} << position % 64;
  const bool was = (word & bit) != 0;
  word |= bit;
  return was;
}

bool Clear(std::vector<uint64_t>* bits, uint32_t position) {
  if (!Test(*bits, position)) return false;
  (*bits)[position / 64] &= ~(uint64_t{1} << position % 64);
  return true;
}

int64_t CountBits(const std::vector<uint64_t>& bits) {
  int64_t count = 0;
  for (uint64_t word : bits) count += std::popcount(word);
  return count;
}

}  // namespace

RowSaver::RowSaver(std::vector<Table> tables, const Limits& limits)
    : tables_(std::move(tables)),
      limits_(limits),
      orders_(std::make_unique<Mutex[]>(tables_.size())),
      states_(tables_.size()) {}

// --- train ---

void RowSaver::BeforeTraining(size_t table, std::span<const uint32_t> positions) {
  const double start = NowSeconds();
  ++waiting_;
  MutexLock lock(&mu_);
  --waiting_;
  const bool flushing = mode_ != Mode::kNone;
  while (kept_bytes_ > limits_.kept_bytes && mode_ == Mode::kCut && !cancelled_)
    changed_.Wait(&mu_);
  State& state = states_[table];
  if (mode_ != Mode::kNone && state.asked_count > 0) {
    for (uint32_t position : positions) {
      if (!Test(state.asked, position)) continue;
      if (mode_ == Mode::kCut)
        Keep(table, position, tables_[table].memory->key(position), &state.kept);
      Clear(&state.asked, position);
      --state.asked_count;
    }
  }
  for (uint32_t position : positions) state.changed_count += Set(&state.changed, position) ? 0 : 1;
  if (flushing) wait_seconds_ += NowSeconds() - start;
}

void RowSaver::StartFlush() {
  MutexLock lock(&mu_);
  TERRACE_CHECK(mode_ == Mode::kNone);
  mode_ = Mode::kAhead;
  for (State& state : states_) Ask(&state);
}

void RowSaver::BeginCut() {
  MutexLock lock(&mu_);
  TERRACE_CHECK(mode_ != Mode::kCut && cuts_ == cuts_ended_);
  mode_ = Mode::kCut;
  ++cuts_;
  parts_before_cut_ = parts_ended_;
  writes_started_[cuts_ & 1] = writes_ended_[cuts_ & 1] = 0;
  for (size_t t = 0; t < states_.size(); ++t) {
    State& state = states_[t];
    Ask(&state);
    // They will be written too late: after what left for the next windows.
    for (const auto& [position, key] : state.leaving) Keep(t, position, key, &state.kept);
    state.leaving.clear();
  }
}

void RowSaver::Ask(State* state) {
  ++asks_;
  Bits& asked = state->asked;
  asked.resize(std::max(asked.size(), state->changed.size()));
  for (size_t i = 0; i < state->changed.size(); ++i)
    asked[i] |= std::exchange(state->changed[i], 0);
  state->changed_count = 0;
  state->asked_count = CountBits(asked);
}

void RowSaver::Copy(size_t table, uint32_t position, uint64_t key, Copies* to) {
  const size_t bytes = tables_[table].store->row_bytes();
  const auto payload = static_cast<size_t>(tables_[table].memory->schema().layout.payload_bytes());
  to->keys.push_back(key);
  to->rows.resize(to->keys.size() * bytes);
  std::byte* const row = to->rows.data() + to->rows.size() - bytes;
  std::memcpy(row, tables_[table].memory->row(position), payload);
  std::fill(row + payload, row + bytes, std::byte{0});  // padding has one value
}

void RowSaver::Keep(size_t table, uint32_t position, uint64_t key, CopyBlocks* to) {
  if (to->empty() || to->back().keys.size() == kBlockRows) {
    if (spare_.empty()) spare_.emplace_back();
    to->push_back(std::move(spare_.back()));
    spare_.pop_back();
    to->back().keys.clear();
    to->back().rows.clear();
    to->back().keys.reserve(kBlockRows);
    to->back().rows.reserve(kBlockRows * tables_[table].store->row_bytes());
  }
  Copy(table, position, key, &to->back());
  kept_bytes_ += static_cast<int64_t>(tables_[table].store->row_bytes());
}

int64_t RowSaver::changed_rows() const {
  MutexLock lock(&mu_);
  int64_t rows = 0;
  for (const State& state : states_) rows += state.changed_count;
  return rows;
}

int64_t RowSaver::copied_bytes() const {
  MutexLock lock(&mu_);
  return kept_bytes_;
}

double RowSaver::wait_seconds() const {
  MutexLock lock(&mu_);
  return wait_seconds_;
}

// --- plan ---

void RowSaver::Leave(size_t table, std::span<RowMove> victims) {
  ++waiting_;
  MutexLock lock(&mu_);
  --waiting_;
  State& state = states_[table];
  for (RowMove& move : victims) {
    const bool asked = Clear(&state.asked, move.position);
    const bool changed = Clear(&state.changed, move.position);
    state.asked_count -= asked ? 1 : 0;
    state.changed_count -= changed ? 1 : 0;
    move.evict = asked || changed;
    if (asked && mode_ == Mode::kCut) Keep(table, move.position, move.victim, &state.kept);
    // Another cut may begin before the part ends.
    if (move.evict) state.leaving.emplace_back(move.position, move.victim);
  }
}

uint32_t RowSaver::EndPart() {
  MutexLock lock(&mu_);
  for (State& state : states_) state.leaving.clear();
  ++parts_ended_;
  return cuts_;
}

void RowSaver::Remove(size_t table, std::span<const uint32_t> positions) {
  const RowTest unseen = tables_[table].unseen ? tables_[table].unseen() : RowTest();
  MutexLock lock(&mu_);
  State& state = states_[table];
  for (uint32_t position : positions) {
    const bool asked = Clear(&state.asked, position);
    const bool changed = Clear(&state.changed, position);
    state.asked_count -= asked ? 1 : 0;
    state.changed_count -= changed ? 1 : 0;
    // An older value in the store is of no use either.
    const MemoryTier& memory = *tables_[table].memory;
    if ((!asked && !changed) || (unseen && unseen(memory.row(position)))) continue;
    Keep(table, position, memory.key(position), &state.removed);
  }
}

// --- pull, push ---

void RowSaver::PartPulled() {
  MutexLock lock(&mu_);
  ++parts_pulled_;
  changed_.NotifyAll();
}

void RowSaver::WriteStarted(uint32_t cuts) {
  MutexLock lock(&mu_);
  ++writes_started_[cuts & 1];
}

bool RowSaver::WaitForWrite(uint32_t cuts) {
  MutexLock lock(&mu_);
  while (cuts > cuts_ended_ && !cancelled_) changed_.Wait(&mu_);
  return !cancelled_;
}

void RowSaver::WriteEnded(uint32_t cuts) {
  MutexLock lock(&mu_);
  ++writes_ended_[cuts & 1];
  changed_.NotifyAll();
}

// --- save ---

bool RowSaver::WaitForEarlierWrites() {
  MutexLock lock(&mu_);
  if (mode_ != Mode::kCut) return !cancelled_;
  const uint32_t before = (cuts_ - 1) & 1;
  while ((parts_pulled_ < parts_before_cut_ || writes_ended_[before] < writes_started_[before]) &&
         !cancelled_)
    changed_.Wait(&mu_);
  return !cancelled_;
}

bool RowSaver::FlushAll() {
  for (;;) {
    for (size_t t = 0; t < tables_.size(); ++t)
      if (!FlushTable(t)) return false;
    MutexLock lock(&mu_);
    int64_t left = mode_ == Mode::kCut ? kept_bytes_ : 0;
    for (const State& state : states_) left += state.asked_count;
    if (left > 0 && !cancelled_) continue;
    if (mode_ == Mode::kCut || cancelled_) break;
    mode_ = Mode::kNone;
    return true;
  }
  // Nobody keeps copies any more: no row is asked for.
  return WaitForEarlierWrites();
}

bool RowSaver::FlushTable(size_t table) {
  WriteCopies(table, &State::removed);
  WriteCopies(table, &State::kept);
  uint64_t rows = 0;
  {
    MutexLock lock(&mu_);
    if (cancelled_) return false;
    rows = static_cast<uint64_t>(states_[table].asked_count);
  }
  if (rows == 0) return true;
  const auto sorted = static_cast<uint64_t>(limits_.sorted_rows);
  const uint64_t passes = std::clamp<uint64_t>((rows + sorted - 1) / sorted, 1, kMostPasses);
  const uint64_t range = passes == 1 ? 0 : std::numeric_limits<uint64_t>::max() / passes + 1;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    Gather(table, pass * range,
           pass + 1 == passes ? std::numeric_limits<uint64_t>::max() : (pass + 1) * range - 1);
    SortItems(&sorted_, &sorting_);
    const std::span<const KeyItem> all = sorted_;
    for (size_t begin = 0; begin < all.size();) {
      const size_t size = std::min(static_cast<size_t>(limits_.chunk_rows), all.size() - begin);
      WriteRows(table, all.subspan(begin, size));
      begin += size;
      MutexLock lock(&mu_);
      if (cancelled_) return false;
    }
  }
  return true;
}

void RowSaver::GiveWay() const {
  while (waiting_ > 0) std::this_thread::yield();
}

// Positions of the rows that are asked for, of a range of the store.
void RowSaver::Gather(size_t table, uint64_t first_mix, uint64_t last_mix) {
  sorted_.clear();
  const MemoryTier& memory = *tables_[table].memory;
  for (size_t begin = 0;; begin += kLookedAt / 64) {
    GiveWay();
    MutexLock lock(&mu_);
    const Bits& asked = states_[table].asked;
    if (begin >= asked.size()) return;
    const size_t end = std::min(asked.size(), begin + kLookedAt / 64);
    for (size_t i = begin; i < end; ++i) {
      for (uint64_t word = asked[i]; word != 0; word &= word - 1) {
        const auto position =
            static_cast<uint32_t>(64 * i + static_cast<size_t>(std::countr_zero(word)));
        const uint64_t mix = MixOfKey(memory.key(position));
        if (first_mix <= mix && mix <= last_mix) sorted_.push_back({mix, position});
      }
    }
  }
}

void RowSaver::WriteRows(size_t table, std::span<const KeyItem> rows) {
  {
    // Copies wait for train: they go first where there are many.
    bool many = false;
    {
      MutexLock lock(&mu_);
      many = kept_bytes_ > limits_.kept_bytes / 4;
    }
    for (size_t t = 0; many && t < tables_.size(); ++t) WriteCopies(t, &State::kept);
  }
  MutexLock order(&orders_[table]);
  const MemoryTier& memory = *tables_[table].memory;
  chunk_.keys.clear();
  chunk_.rows.clear();
  chunk_positions_.clear();
  int64_t asks = -1;
  for (size_t begin = 0; begin < rows.size(); begin += kCopied) {
    const std::span<const KeyItem> part =
        rows.subspan(begin, std::min(kCopied, rows.size() - begin));
    for (const KeyItem& row : part)
      __builtin_prefetch(memory.row(row.index) - RowLayout::kKeyBytes);
    GiveWay();
    MutexLock lock(&mu_);
    if (asks < 0) asks = asks_;
    for (size_t i = 0; i < part.size(); ++i) {
      const uint32_t position = part[i].index;
      if (!Test(states_[table].asked, position)) continue;
      const uint64_t key = memory.key(position);
      if (MixOfKey(key) != part[i].mix) continue;  // another row by now
      Copy(table, position, key, &chunk_);
      chunk_positions_.push_back(position);
    }
  }
  if (chunk_.keys.empty()) return;
  tables_[table].store->Put(chunk_.keys, chunk_.rows.data());
  MutexLock lock(&mu_);
  written_rows_ += static_cast<int64_t>(chunk_.keys.size());
  // They may have been asked for again since they were copied, with other values.
  if (asks != asks_) return;
  State& state = states_[table];
  for (uint32_t position : chunk_positions_)
    state.asked_count -= Clear(&state.asked, position) ? 1 : 0;
}

void RowSaver::WriteCopies(size_t table, CopyBlocks State::*which) {
  MutexLock order(&orders_[table]);
  CopyBlocks taken;
  {
    MutexLock lock(&mu_);
    std::swap(taken, states_[table].*which);
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    try {
      tables_[table].store->Put(taken[i].keys, taken[i].rows.data());
    } catch (...) {
      // What was not written stays, before what came since.
      MutexLock lock(&mu_);
      CopyBlocks& later = states_[table].*which;
      later.insert(later.begin(), std::move_iterator(taken.begin() + static_cast<ptrdiff_t>(i)),
                   std::move_iterator(taken.end()));
      throw;
    }
    MutexLock lock(&mu_);
    written_rows_ += static_cast<int64_t>(taken[i].keys.size());
    kept_bytes_ -= static_cast<int64_t>(taken[i].rows.size());
    spare_.push_back(std::move(taken[i]));
    changed_.NotifyAll();
  }
}

bool RowSaver::cutting() const {
  MutexLock lock(&mu_);
  return mode_ == Mode::kCut;
}

void RowSaver::EndCut() {
  MutexLock lock(&mu_);
  TERRACE_CHECK(mode_ == Mode::kCut);
  mode_ = Mode::kNone;
  cuts_ended_ = cuts_;
  spare_.clear();
  changed_.NotifyAll();
}

void RowSaver::AbandonCut() {
  MutexLock lock(&mu_);
  mode_ = Mode::kNone;
  cuts_ended_ = cuts_;
  for (State& state : states_) {
    // What was kept has a newer value in memory, or on its way to the store.
    for (const Copies& block : state.kept) kept_bytes_ -= static_cast<int64_t>(block.rows.size());
    state.kept.clear();
    for (size_t i = 0; i < state.asked.size(); ++i) {
      if (state.asked[i] == 0) continue;
      state.changed.resize(std::max(state.changed.size(), state.asked.size()));
      state.changed[i] |= std::exchange(state.asked[i], 0);
    }
    state.asked_count = 0;
    state.changed_count = CountBits(state.changed);
  }
  changed_.NotifyAll();
}

int64_t RowSaver::written_rows() const {
  MutexLock lock(&mu_);
  return written_rows_;
}

void RowSaver::Cancel() {
  MutexLock lock(&mu_);
  cancelled_ = true;
  changed_.NotifyAll();
}

int64_t RowSaver::bytes() const {
  MutexLock lock(&mu_);
  auto bytes = static_cast<size_t>(kept_bytes_);
  for (const State& state : states_)
    bytes +=
        8 * (state.changed.capacity() + state.asked.capacity()) + 16 * state.leaving.capacity();
  return static_cast<int64_t>(bytes);
}

}  // namespace terrace
