#include "table/admission_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "table/key_counts.h"

namespace terrace {
namespace {

constexpr double kExact = 1e-9;  // in units

// Units of `weight` if `limit` units make the score.
double InUnits(double weight, const AdmissionConfig& config, uint32_t limit) {
  return std::min<double>(limit, weight / config.score * limit);
}

bool IsWhole(double units) { return std::abs(units - std::nearbyint(units)) <= kExact; }

uint32_t RoundedUp(double units) { return static_cast<uint32_t>(std::ceil(units - kExact)); }

}  // namespace

void AdmissionConfig::Visit(ConfigVisitor& v) {
  v.Enum("by", &by, {"all", "count", "probability", "score"},
         "which keys get a row: all, after `count` occurrences, by chance, or at a score");
  v.Int("count", &count, {0, KeyCounts::kMaxLimit},
        "by count: occurrences in training examples, the one that admits included");
  v.Double("probability", &probability, {0, 1},
           "by probability: that a key without a row gets one, in each batch that has it");
  v.Double("score", &score, {0, 1e9}, "by score: of shows and clicks, where a key gets a row");
  v.Double("show_weight", &show_weight, {0, 1e9}, "by score: of an occurrence without a click");
  v.Double("click_weight", &click_weight, {0, 1e9}, "by score: of an occurrence with a click");
  v.Int("keys", &keys, {0, int64_t{1} << 40},
        "distinct keys to remember at once, for which memory is taken at the start (about 3 bytes "
        "a key; 6 with a count or score of many units); 0: start small and grow");
  v.Int("forget", &forget, {0, UINT32_MAX},
        "ticks: a key that was not seen for so long may be forgotten, and is after twice as long; "
        "0: never");
}

void AdmissionConfig::Check(const std::string& name) const {
  const auto fail = [&](const std::string& what) { throw Error(ErrorCode::kUsage, name + what); };
  const auto check_used = [&](AdmitBy kind, const char* kind_name, const char* field, bool is_set) {
    if (is_set && by != kind)
      fail(fmt::format(".{} is set, but keys are not admitted by {}: set by = \"{}\" or remove {}",
                       field, kind_name, kind_name, field));
  };
  const AdmissionConfig defaults;
  check_used(AdmitBy::kCount, "count", "count", count != 0);
  check_used(AdmitBy::kProbability, "probability", "probability", probability != 0);
  check_used(AdmitBy::kScore, "score", "score", score != 0);
  check_used(AdmitBy::kScore, "score", "show_weight", show_weight != defaults.show_weight);
  check_used(AdmitBy::kScore, "score", "click_weight", click_weight != defaults.click_weight);
  switch (by) {
    case AdmitBy::kAll:
      if (keys != 0 || forget != 0)
        fail(
            fmt::format(".{} is set, but by = \"all\" remembers no keys: choose another `by` or "
                        "remove it",
                        keys != 0 ? "keys" : "forget"));
      return;
    case AdmitBy::kCount:
      if (count == 0) fail(".by is \"count\": set count, from 1 to 65535");
      return;
    case AdmitBy::kProbability:
      if (!(probability > 0)) fail(".by is \"probability\": set probability, above 0 and up to 1");
      return;
    case AdmitBy::kScore:
      break;
  }
  if (!(score > 0)) fail(".by is \"score\": set score, above 0");
  if (show_weight == 0 && click_weight == 0)
    fail(": show_weight and click_weight are both 0, so that no key ever gets a row: raise one");
  for (const double weight : {show_weight, click_weight})
    if (weight > 0 && score / weight > KeyCounts::kMaxLimit)
      fail(
          fmt::format(": a weight of {} is less than score / {} (score is {}), too little to be "
                      "counted: raise the weight, make it 0, or lower the score",
                      weight, KeyCounts::kMaxLimit, score));
}

AdmissionUnits AdmissionUnits::Of(const AdmissionConfig& config) {
  if (config.by == AdmitBy::kCount) return {static_cast<uint32_t>(config.count), 1, 1};
  if (config.by != AdmitBy::kScore) return {};
  const auto whole = [&](uint32_t units_of_score, double weight) {
    const double units = InUnits(weight, config, units_of_score);
    return IsWhole(units) && (units >= 1 - kExact || weight == 0);
  };
  uint32_t most = 1;
  while (most < KeyCounts::kMaxLimit &&
         !(whole(most, config.show_weight) && whole(most, config.click_weight)))
    ++most;
  return {most, RoundedUp(InUnits(config.show_weight, config, most)),
          RoundedUp(InUnits(config.click_weight, config, most))};
}

}  // namespace terrace
