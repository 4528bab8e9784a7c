// terrace data info: what a data file holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/data_config.h"

namespace terrace {

struct InfoOptions {
  std::vector<std::string> files;    // paths or patterns; with a config: instead of its data.train
  std::string config;                // TOML whose [data] section is used; empty: the files tell
  std::optional<DataFormat> format;  // empty: guessed from the first file
  std::string label = "label";
  int64_t max_examples = -1;  // -1: all
  int threads = 1;
};

// Reads the examples once and returns the report. Throws Error(kUsage) if it cannot tell what the
// files hold, Error(kData) if not one row can be read, Error(kInterrupted) once `stop` is set.
std::string DescribeData(Env& env, const InfoOptions& options, const std::atomic<bool>& stop);

}  // namespace terrace
