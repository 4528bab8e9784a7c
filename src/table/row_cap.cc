#include "table/row_cap.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace terrace {
namespace {

// Levels of all floats, and room for the base to lag behind.
constexpr int32_t kLevels = 4096 + 2048;
constexpr int32_t kLag = 1024;
// Rows that go at once: so many that it does not happen in every batch.
constexpr int64_t kSlackShare = 64;

}  // namespace

RowCap::RowCap(const LifeRules* rules) : rules_(*rules) {
  TERRACE_CHECK(rules_.config().max_rows > 0);
}

size_t RowCap::Place(int32_t level) const {
  return static_cast<size_t>(std::clamp(level - base_, 0, kLevels - 1));
}

// Old levels sink with time until nothing tells them apart.
void RowCap::RaiseBase(uint32_t tick) {
  const int32_t base = rules_.LevelShift(tick) - kLag;
  if (base < base_ + kLag) return;
  const auto low = static_cast<size_t>(std::min(base - base_, kLevels - 1));
  for (auto& [unused, stretch] : stretches_) {
    std::vector<int64_t>& counts = stretch.counts;
    const auto first = counts.begin() + static_cast<ptrdiff_t>(low);
    *first = std::accumulate(counts.begin(), first + 1, int64_t{0});
    std::fill(std::move(first, counts.end(), counts.begin()), counts.end(), 0);
  }
  base_ = base;
}

void RowCap::DropUnseen(uint32_t tick) {
  const int64_t unseen = rules_.config().unseen;
  if (unseen == 0) return;
  while (!stretches_.empty()) {
    const auto first = stretches_.begin();
    const int64_t last_tick = (int64_t{first->first} + 1) * stretch_ticks_ - 1;
    if (last_tick + unseen >= tick) return;
    rows_ -= first->second.rows;
    stretches_.erase(first);
  }
}

void RowCap::JoinStretches() {
  std::map<uint32_t, Stretch> joined;
  for (auto& [number, stretch] : stretches_) {
    Stretch& to = joined[number / 2];
    to.rows += stretch.rows;
    if (to.counts.empty()) {
      to.counts.swap(stretch.counts);
      continue;
    }
    for (size_t place = 0; place < kLevels; ++place) to.counts[place] += stretch.counts[place];
  }
  stretches_.swap(joined);
  stretch_ticks_ *= 2;
}

void RowCap::Step(uint32_t tick, std::span<const RowUse> uses, std::vector<CapMark>* caps) {
  RaiseBase(tick);
  DropUnseen(tick);
  while (stretches_.size() >= kMost && !stretches_.contains(StretchOf(tick))) JoinStretches();
  Stretch& now = stretches_[StretchOf(tick)];
  now.counts.resize(kLevels);
  for (const RowUse& use : uses) {
    ++now.counts[Place(use.is)];
    ++now.rows;
    ++rows_;
    if (use.was == RowUse::kNever) continue;
    Stretch& before = stretches_.at(StretchOf(use.was_seen));
    --before.counts[Place(use.was)];
    --before.rows;
    --rows_;
  }
  if (rows_ > rules_.config().max_rows) Enforce(tick, caps);
}

void RowCap::Enforce(uint32_t tick, std::vector<CapMark>* caps) {
  const int64_t most = rules_.config().max_rows;
  int64_t surplus = rows_ - (most - most / kSlackShare);
  const auto go = [&](Stretch* stretch, size_t place) {
    const int64_t rows = std::exchange(stretch->counts[place], 0);
    stretch->rows -= rows;
    rows_ -= rows;
    surplus -= rows;
  };
  const auto rows_at = [&](size_t place) {
    int64_t rows = 0;
    for (const auto& [unused, stretch] : stretches_) rows += stretch.counts[place];
    return rows;
  };
  size_t place = 0;  // the first that does not go as a whole; lower levels are counted with it too
  for (; place < kLevels && (place == 0 || rows_at(place) <= surplus); ++place)
    for (auto& [unused, stretch] : stretches_) go(&stretch, place);
  CapMark mark{tick, base_ + static_cast<int32_t>(place), 0};
  for (auto& [number, stretch] : stretches_) {
    if (surplus <= 0 || place == kLevels) break;
    go(&stretch, place);
    mark.seen = (number + 1) * stretch_ticks_;
  }
  // Earlier marks that say no more than this one.
  std::erase_if(*caps, [&mark](const CapMark& cap) {
    return cap.level < mark.level || (cap.level == mark.level && cap.seen <= mark.seen);
  });
  caps->push_back(mark);
}

void RowCap::Save(std::string* to) const {
  AppendValue(to, stretch_ticks_);
  AppendValue(to, base_);
  AppendValue(to, uint64_t{stretches_.size()});
  for (const auto& [number, stretch] : stretches_) {
    AppendValue(to, number);
    // Most levels have no rows.
    const auto used = std::count_if(stretch.counts.begin(), stretch.counts.end(),
                                    [](int64_t count) { return count != 0; });
    AppendValue(to, static_cast<uint64_t>(used));
    for (size_t place = 0; place < stretch.counts.size(); ++place) {
      if (stretch.counts[place] == 0) continue;
      AppendValue(to, static_cast<uint32_t>(place));
      AppendValue(to, stretch.counts[place]);
    }
  }
}

void RowCap::Load(std::string_view* saved) {
  const auto check = [](bool right) {
    if (!right)
      throw Error(ErrorCode::kCorruption,
                  "the rows counted for life.max_rows make no sense; restore an older snapshot");
  };
  const auto ticks = TakeValue<uint32_t>(saved);
  const auto base = TakeValue<int32_t>(saved);
  const auto stretches = TakeValue<uint64_t>(saved);
  check(ticks > 0 && stretches <= kMost);
  std::map<uint32_t, Stretch> loaded;
  int64_t rows = 0;
  for (uint64_t i = 0; i < stretches; ++i) {
    Stretch& stretch = loaded[TakeValue<uint32_t>(saved)];
    check(loaded.size() == i + 1);
    stretch.counts.resize(kLevels);
    const auto used = TakeValue<uint64_t>(saved);
    check(used <= kLevels);
    for (uint64_t u = 0; u < used; ++u) {
      const auto place = TakeValue<uint32_t>(saved);
      check(place < kLevels);
      stretch.counts[place] = TakeValue<int64_t>(saved);
      check(stretch.counts[place] > 0 && stretch.counts[place] <= INT64_MAX / 2 - stretch.rows);
      stretch.rows += stretch.counts[place];
    }
    check(stretch.rows <= INT64_MAX / 2 - rows);
    rows += stretch.rows;
  }
  stretch_ticks_ = ticks;
  base_ = base;
  stretches_.swap(loaded);
  rows_ = rows;
}

}  // namespace terrace
