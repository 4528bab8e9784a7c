#include "table/lifecycle.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/error.h"

namespace terrace {
namespace {

constexpr int kMantissaBits = 19;  // of a float's 23, below a sixteenth of a power of two

}  // namespace

void LifeConfig::Visit(ConfigVisitor& v) {
  v.Bool("statistics", &statistics,
         "keep show, click and last use in each row (12 bytes), also where no rule needs them");
  v.Double("decay", &decay, {1e-6, 1}, "factor on show and click each decay_ticks without use");
  v.Int("decay_ticks", &decay_ticks, {1, UINT32_MAX}, "see decay; ticks: train.clock");
  v.Double("show_weight", &show_weight, {0, 1e6},
           "score = show_weight * (show - click) + click_weight * click");
  v.Double("click_weight", &click_weight, {0, 1e6}, "see show_weight");
  v.Int("unseen", &unseen, {0, UINT32_MAX},
        "a row goes when it was not used for more ticks; 0: never");
  v.Double("min_score", &min_score, {0, 1e30},
           "a row goes when its score is lower and it was not used for score_ticks; 0: never");
  v.Int("score_ticks", &score_ticks, {0, UINT32_MAX}, "see min_score");
  v.Int("max_rows", &max_rows, {0},
        "when a table has more rows those of the lowest score go; 0: no limit");
}

void LifeConfig::Check(const std::string& name) const {
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::kUsage, fmt::format("[tables.{}.life]: {}", name, what));
  };
  if (max_rows > 0 && min_score > 0)
    fail("max_rows lets the lowest scores go already: set it, or min_score, not both");
  if ((min_score > 0 || max_rows > 0) && show_weight == 0 && click_weight == 0)
    fail("show_weight and click_weight are 0, so every score is 0: set one of them");
  if (min_score > 0 && unseen > 0 && score_ticks >= unseen)
    fail(
        "a row that is not used for score_ticks went after `unseen` before: lower score_ticks, or "
        "remove min_score");
  if (decay < 1 && !counts())
    fail("decay is set, but nothing is counted: set statistics = true, or remove decay");
}

LifeRules::LifeRules(const LifeConfig& config)
    : config_(config),
      show_weight_(static_cast<float>(config.show_weight)),
      click_weight_(static_cast<float>(config.click_weight)),
      halvings_(-std::log2(config.decay) / static_cast<double>(config.decay_ticks)) {
  for (uint32_t ticks = 0; ticks < kDecays; ++ticks) decays_[ticks] = FarDecay(ticks);
}

float LifeRules::FarDecay(uint32_t ticks) const {
  return static_cast<float>(std::exp2(-halvings_ * ticks));
}

int32_t LifeRules::LevelShift(uint32_t tick) const {
  return static_cast<int32_t>(std::floor(16 * halvings_ * tick));
}

// A positive float's bits grow with its logarithm.
int32_t LifeRules::Level(const RowStats& stats) const {
  const float score = std::max(Score(stats), 0.0f);
  return static_cast<int32_t>(std::bit_cast<uint32_t>(score) >> kMantissaBits) +
         LevelShift(stats.seen);
}

bool DueRule::Due(const RowStats& stats) const {
  if (rules == nullptr || stats.seen > now) return false;
  const LifeConfig& config = rules->config();
  const uint32_t unseen = now - stats.seen;
  if (Unseen(stats)) return true;
  if (config.min_score > 0 && unseen > static_cast<uint64_t>(config.score_ticks) &&
      rules->Score(stats) * rules->Decay(unseen) < static_cast<float>(config.min_score))
    return true;
  if (caps.empty()) return false;
  const int32_t level = rules->Level(stats);
  for (const CapMark& cap : caps)
    if (stats.seen <= cap.tick &&
        (level < cap.level || (level == cap.level && stats.seen < cap.seen)))
      return true;
  return false;
}

}  // namespace terrace
