// The report of `terrace data info`, as text.
#pragma once

#include <cstdint>
#include <string>

#include "base/env.h"
#include "cli/data_info_stats.h"
#include "data/data_config.h"

namespace terrace {

struct InfoSource {
  DataConfig data;  // as it was read
  int64_t skipped_rows = 0;
  std::string first_bad_row;  // what is wrong with it
};

std::string RenderInfo(Env& env, const InfoSource& source, const DataStats& stats);

// A curve of `width` block characters: the logarithms of the counts at ranks that grow by a
// constant factor.
std::string RankSparkline(const std::vector<int64_t>& sorted_counts, int width);

}  // namespace terrace
