// Keeps a table near a number of rows: says from which score down rows have to go, of equal ones
// those that were not seen for the longest time.
//
// Counts the rows that are alive by the level of their score and the time of their last use, as
// training uses them, so that it never has to look for them in any tier. What it says depends on
// the stream of batches alone.
// Belongs to the train stage's thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "table/lifecycle.h"

namespace terrace {

// A use of a row. `was`: before, or never.
struct RowUse {
  static constexpr int32_t kNever = INT32_MIN;
  int32_t was = kNever;  // level
  uint32_t was_seen = 0;
  int32_t is = 0;
};

class RowCap {
 public:
  // `rules` has max_rows, and outlives this.
  explicit RowCap(const LifeRules* rules);

  // The uses of a batch, in any order. Adds to `caps` where rows have to go.
  void Step(uint32_t tick, std::span<const RowUse> uses, std::vector<CapMark>* caps);

  // Alive, about: some that were not seen too long are in it.
  int64_t rows() const { return rows_; }

  void Save(std::string* to) const;
  // Takes what Save wrote off the front. Throws Error(kCorruption); then nothing has changed.
  void Load(std::string_view* saved);

 private:
  // Rows that were last seen within a stretch of ticks, by level. There are at most kMost of them:
  // when time goes on two become one.
  static constexpr size_t kMost = 64;
  struct Stretch {
    std::vector<int64_t> counts;
    int64_t rows = 0;
  };

  uint32_t StretchOf(uint32_t seen) const { return seen / stretch_ticks_; }
  size_t Place(int32_t level) const;
  void RaiseBase(uint32_t tick);
  void JoinStretches();
  void DropUnseen(uint32_t tick);
  void Enforce(uint32_t tick, std::vector<CapMark>* caps);

  const LifeRules& rules_;
  uint32_t stretch_ticks_ = 1;
  std::map<uint32_t, Stretch> stretches_;
  int32_t base_ = 0;  // level of the first count; lower ones are counted there
  int64_t rows_ = 0;
};

}  // namespace terrace
