// The life of a row: what is counted of its use, and when it is due to go.
//
// A row that is due reads as absent, wherever it is and whether or not anybody has removed it: who
// trains it starts it anew, who evaluates sees the default row. Once due it stays so until it is
// trained again, so tiers may drop it whenever they like, and results do not depend on when.
//
// Time is counted in ticks: batches, or the data's timestamps (train.clock). It never goes back.
// Plain values and pure functions; any thread may call.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/config.h"

namespace terrace {

// [tables.NAME.life] of the config.
struct LifeConfig {
  bool statistics = false;  // kept without any rule that needs them
  double decay = 1;         // of show and click, each decay_ticks
  int64_t decay_ticks = 1000;
  double show_weight = 0.1;  // score = show_weight * (show - click) + click_weight * click
  double click_weight = 1;
  int64_t unseen = 0;          // ticks without use after which a row is due; 0: never
  double min_score = 0;        // below it a row is due; 0: never
  int64_t score_ticks = 1000;  // without use, before min_score counts
  int64_t max_rows = 0;        // beyond it the rows of the lowest score are due; 0: no cap

  bool expires() const { return unseen > 0 || min_score > 0 || max_rows > 0; }
  bool counts() const { return statistics || expires(); }

  void Visit(ConfigVisitor& v);
  // Throws Error(kUsage) for rules that make no sense together. `name` is the table's.
  void Check(const std::string& name) const;
};

// At the end of a row. All zero in a row that was never trained.
struct RowStats {
  float show = 0;     // uses in training examples, decayed
  float click = 0;    // sum of their labels
  uint32_t seen = 0;  // tick of the last use

  static RowStats Read(const std::byte* at) {
    RowStats stats;
    std::memcpy(&stats, at, sizeof(stats));
    return stats;
  }
  void Write(std::byte* at) const { std::memcpy(at, this, sizeof(*this)); }
};
static_assert(sizeof(RowStats) == 12);

// Of the rows last seen at `tick` or before, those below `level` are due, and of those on it the
// ones last seen before `seen`.
struct CapMark {
  uint32_t tick = 0;
  int32_t level = 0;
  uint32_t seen = 0;
};

// A table's rules.
class LifeRules {
 public:
  explicit LifeRules(const LifeConfig& config);

  const LifeConfig& config() const { return config_; }
  // What is left after so many ticks.
  float Decay(uint32_t ticks) const { return ticks < kDecays ? decays_[ticks] : FarDecay(ticks); }
  // As of its last use.
  float Score(const RowStats& stats) const {
    return show_weight_ * (stats.show - stats.click) + click_weight_ * stats.click;
  }
  // A use at `tick` by examples with this sum of labels.
  void Use(uint32_t tick, float shows, float clicks, RowStats* stats) const {
    const float kept = Decay(tick - stats->seen);
    stats->show = stats->show * kept + shows;
    stats->click = stats->click * kept + clicks;
    stats->seen = tick;
  }
  // The score in sixteenths of a power of two, as if all rows had been seen at the same tick: it
  // changes with use only.
  int32_t Level(const RowStats& stats) const;
  // Of a row that is seen now, at the least.
  int32_t LevelShift(uint32_t tick) const;

 private:
  static constexpr uint32_t kDecays = 64;
  float FarDecay(uint32_t ticks) const;

  const LifeConfig config_;
  const float show_weight_, click_weight_;
  double halvings_ = 0;  // powers of two that a tick takes
  float decays_[kDecays];
};

// What is due at tick `now`.
struct DueRule {
  const LifeRules* rules = nullptr;  // null: nothing ever is
  uint32_t now = 0;
  std::vector<CapMark> caps;

  // `stats` of a row that was trained before. One that was trained after `now` is not.
  bool Due(const RowStats& stats) const;
  // Of these, the rows that were not seen for too long: older copies of such a row are due as well.
  bool Unseen(const RowStats& stats) const {
    return rules != nullptr && rules->config().unseen > 0 && stats.seen <= now &&
           now - stats.seen > static_cast<uint64_t>(rules->config().unseen);
  }
  bool Due(const std::byte* at) const { return Due(RowStats::Read(at)); }
};

}  // namespace terrace
