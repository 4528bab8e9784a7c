// Which keys of a table get a row: the config, and what a sighting of a key counts.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace terrace {

enum class AdmitBy { kAll, kCount, kProbability, kScore };

// One [tables.NAME.admission] of the config.
struct AdmissionConfig {
  AdmitBy by = AdmitBy::kAll;
  int64_t count = 0;         // by count: occurrences before a key gets a row
  double probability = 0;    // by probability: in each batch, for a key that has no row
  double score = 0;          // by score: a key with this score gets a row
  double show_weight = 0.1;  // by score: of an occurrence without a click
  double click_weight = 1;   // by score: of one with a click
  int64_t keys = 0;          // remembered at once; 0: start small and grow
  int64_t forget = 0;        // ticks after which a key that was not seen may be forgotten; 0: never

  void Visit(ConfigVisitor& v);
  // Throws Error(kUsage) for what makes no sense together. `name`: "tables.user.admission".
  void Check(const std::string& name) const;
};

// Whole numbers that stand for counts or scores: a key is admitted when its units reach `limit`.
//
// Scores: the largest unit of which the score and both weights are multiples, if that is at least
// score / 65535: then units are exact (score 10, weights 0.1 and 1: units of 0.1, limit 100). Else
// score / 65535, weights rounded up: a key is never late, and early by at most one unit an
// occurrence.
struct AdmissionUnits {
  uint32_t limit = 1;
  uint32_t show = 1;   // of an occurrence without a click, at most `limit`
  uint32_t click = 1;  // of one with a click, at most `limit`

  // Of a config that Check finds good.
  static AdmissionUnits Of(const AdmissionConfig& config);
};

}  // namespace terrace
