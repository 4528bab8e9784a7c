#include "tier/eviction_policy.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"
#include "tier/row_arena.h"

namespace terrace {
namespace {

// The hand looks at so many rows that may leave for each that does: with 4 there are 2 % more
// misses, with 16 hardly fewer.
constexpr int64_t kLookedAt = 8;
// The values of so many rows ahead are on their way to the cache.
constexpr size_t kAhead = 16;

constexpr uint32_t kRanks = 4096;  // the lowest leave first
using Histogram = std::array<uint32_t, kRanks + 1>;

// So many positions from `first` on; behind the last one of the tier comes position 1.
struct Stretch {
  int64_t first = 1;
  int64_t size = 0;

  int64_t End(int64_t rows) const { return (first + size - 1) % rows + 1; }
  // Calls f(begin, end) for each straight part of it.
  template <typename F>
  void ForEachPart(int64_t rows, F f) const {
    const int64_t straight = std::min(size, rows + 1 - first);
    f(first, first + straight);
    if (straight < size) f(int64_t{1}, size - straight + 1);
  }
};

// What all policies share. `Value` is a row's; 0: absent. A policy P has
//   Value Added(now), Value Used(Value, now);
//   void Look(stretch): called before the hand moves, with the stretch that is before it;
//   uint32_t Rank(Value), below kRanks; of an absent row's value it means nothing;
//   Value Passed(Value): of a row that the hand has passed; of an absent one 0.
template <typename P, typename Value>
class HandPolicy : public EvictionPolicy {
 public:
  void Resize(int64_t rows) override {
    arena_.Grow((rows + 1) * int64_t{sizeof(Value)});
    rows_ = std::max(rows, rows_);
  }

  void Add(std::span<const uint32_t> positions, uint32_t now) override {
    now_ = std::max(now_, now);
    ForEachValue(positions, [&](Value* value) { *value = self().Added(now); });
  }

  void Use(std::span<const uint32_t> positions, uint32_t now) override {
    now_ = std::max(now_, now);
    ForEachValue(positions, [&](Value* value) { *value = self().Used(*value, now); });
  }

  void Pick(int64_t n, std::span<const uint32_t> pins, uint32_t done,
            Array<uint32_t>* victims) override {
    if (n <= 0 || rows_ == 0) return;
    TERRACE_CHECK(static_cast<int64_t>(pins.size()) > rows_);
    const int64_t wanted = n > rows_ / kLookedAt ? rows_ : n * kLookedAt;
    self().Look({hand_, wanted});
    Histogram counts = {};
    const Stretch stretch = CountRanks(wanted, pins, done, &counts);
    // All ranks below `last` leave, and of `last` so many.
    uint32_t last = 0;
    int64_t of_last = n;
    for (; last < kRanks && counts[last] < of_last; ++last) of_last -= counts[last];
    if (last == kRanks) of_last = 0;  // fewer than n may leave
    stretch.ForEachPart(rows_, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        // Few pass the first test: pins of the others are not looked at again.
        const uint32_t rank = self().Rank(values_[p]);
        if (rank > last || !MayLeave(p, pins, done)) continue;
        if (rank == last && of_last-- <= 0) continue;
        victims->push_back(static_cast<uint32_t>(p));
        values_[p] = 0;
      }
      for (int64_t p = begin; p < end; ++p) values_[p] = self().Passed(values_[p]);
    });
    hand_ = stretch.End(rows_);
  }

  int64_t bytes() const override { return arena_.size(); }

 protected:
  uint32_t now() const { return now_; }
  int64_t rows() const { return rows_; }
  Value value(int64_t position) const { return values_[position]; }

 private:
  P& self() { return static_cast<P&>(*this); }

  template <typename F>
  void ForEachValue(std::span<const uint32_t> positions, F f) {
    const size_t n = positions.size(), with_more = n - std::min(n, kAhead);
    for (size_t i = 0; i < with_more; ++i) {
      __builtin_prefetch(&values_[positions[i + kAhead]], 1);
      f(&values_[positions[i]]);
    }
    for (size_t i = with_more; i < n; ++i) f(&values_[positions[i]]);
  }

  bool MayLeave(int64_t p, std::span<const uint32_t> pins, uint32_t done) const {
    return static_cast<int>(values_[p] != 0) & static_cast<int>(pins[p] <= done);
  }

  // Counts from the hand on, until so many rows that may leave were seen, or the whole tier.
  Stretch CountRanks(int64_t wanted, std::span<const uint32_t> pins, uint32_t done,
                     Histogram* counts) {
    Stretch seen{hand_, 0};
    for (int64_t found = 0; found < wanted && seen.size < rows_;) {
      const Stretch next{seen.End(rows_), std::min(wanted - found, rows_ - seen.size)};
      next.ForEachPart(rows_, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p += kBlock)
          found += CountBlock(p, std::min(p + kBlock, end), pins, done, counts);
      });
      seen.size += next.size;
    }
    return seen;
  }

  // Which rows may leave is not predictable, so they are listed without a branch, and counted then.
  int64_t CountBlock(int64_t begin, int64_t end, std::span<const uint32_t> pins, uint32_t done,
                     Histogram* counts) {
    std::array<uint16_t, kBlock> ranks;
    size_t found = 0;
    for (int64_t p = begin; p < end; ++p) {
      ranks[found] = static_cast<uint16_t>(self().Rank(values_[p]));
      found += MayLeave(p, pins, done) ? 1 : 0;
    }
    for (size_t i = 0; i < found; ++i) ++(*counts)[ranks[i]];
    return static_cast<int64_t>(found);
  }

  static constexpr int64_t kBlock = 1024;  // positions

  RowArena arena_{"eviction policy", int64_t{sizeof(Value)} << 32};
  Value* const values_ = reinterpret_cast<Value*>(arena_.data());  // by position; 0 is not used
  int64_t rows_ = 0;
  int64_t hand_ = 1;
  uint32_t now_ = 0;  // the last batch so far
};

// Least recently used, to the batch: of rows that the hand looks at, those whose last use is the
// oldest leave, whatever their order within a batch. Beyond 4,095 batches all are alike.
class LruPolicy final : public HandPolicy<LruPolicy, uint32_t> {
 public:
  static uint32_t Added(uint32_t now) { return now; }
  static uint32_t Used(uint32_t, uint32_t now) { return now; }
  void Look(const Stretch&) const {}
  uint32_t Rank(uint32_t last_use) const {
    return kRanks - 1 - std::min(now() - last_use, kRanks - 1);
  }
  static uint32_t Passed(uint32_t last_use) { return last_use; }
};

// The two caches of "Distributed Hierarchical GPU Parameter Server for Massive Scale Deep Learning
// Ads Systems" (Zhao et al., MLSys 2020): rows in use are in an LRU cache, what falls out of it
// goes to an LFU cache, and what falls out of that leaves. Each has half of the rows. A row's value
// is the batch of its last use (24 bits, modulo) and its number of uses (8 bits, at most 255).
class LruLfuPolicy final : public HandPolicy<LruLfuPolicy, uint32_t> {
 public:
  static uint32_t Added(uint32_t now) { return now << 8 | 1; }
  static uint32_t Used(uint32_t value, uint32_t now) {
    return now << 8 | std::min((value & 0xff) + 1, 0xffu);
  }

  // Finds the age at which rows of the stretch fall out of the LRU cache.
  void Look(const Stretch& stretch) {
    Histogram ages = {};
    int64_t present = 0;
    stretch.ForEachPart(rows(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        if (value(p) == 0) continue;
        ++ages[std::min(Age(value(p)), kRanks)];
        ++present;
      }
    });
    int64_t room = present / 2;
    for (lfu_age_ = 0; lfu_age_ < kRanks && ages[lfu_age_] <= room; ++lfu_age_)
      room -= ages[lfu_age_];
  }

  // In the LFU cache by uses, then by age in powers of two; above it the LRU cache, by age.
  uint32_t Rank(uint32_t value) const {
    constexpr uint32_t kHalf = kRanks / 2, kAges = 16;
    const uint32_t age = Age(value);
    if (age < lfu_age_) return kRanks - 1 - std::min(age, kHalf - 1);
    const uint32_t uses = std::min(value & 0xff, kHalf / kAges - 1);
    const auto old = static_cast<uint32_t>(std::bit_width(age));
    return uses * kAges + kAges - 1 - std::min(old, kAges - 1);
  }
  static uint32_t Passed(uint32_t value) { return value; }

 private:
  uint32_t Age(uint32_t value) const { return (now() - (value >> 8)) & 0xffffff; }

  uint32_t lfu_age_ = 0;  // in batches, of the stretch
};

// Counts uses, up to four, in steps of 64; each time the hand passes, a row loses 1 for each use
// that it has. So the memory of uses fades with the pace at which rows are replaced: one use is
// forgotten while the tier is replaced eight times. Rows that were used once are the first to
// leave, the oldest of them first.
class ClockPolicy final : public HandPolicy<ClockPolicy, uint8_t> {
 public:
  static uint8_t Added(uint32_t) { return kUse; }
  static uint8_t Used(uint8_t value, uint32_t) {
    return static_cast<uint8_t>(std::min(value + kUse, 0xff));
  }
  void Look(const Stretch&) const {}
  static uint32_t Rank(uint8_t value) { return value; }
  static uint8_t Passed(uint8_t value) {
    return static_cast<uint8_t>(
        std::max(value - (value + kUse - 1) / kUse, std::min<int>(value, 1)));
  }

 private:
  static constexpr int kUse = 64;
};

}  // namespace

const char* PolicyName(PolicyKind kind) {
  constexpr const char* kNames[] = {"lru", "lru-lfu", "clock", "next-use"};
  return kNames[static_cast<size_t>(kind)];
}

std::unique_ptr<EvictionPolicy> EvictionPolicy::Make(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kLru:
      return std::make_unique<LruPolicy>();
    case PolicyKind::kLruLfu:
      return std::make_unique<LruLfuPolicy>();
    case PolicyKind::kClock:
    case PolicyKind::kNextUse:
      break;
  }
  return std::make_unique<ClockPolicy>();
}

}  // namespace terrace
