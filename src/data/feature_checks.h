// What a config may say about features, checked before anything is read.
#pragma once

#include <vector>

#include "data/data_config.h"

namespace terrace {

// The format's name in the config.
const char* FormatName(DataFormat format);

// Checks slots and dense columns, ranges expanded and columns filled in, and the other options of
// [data] against the format. Throws Error(kUsage) that says what to write instead.
void CheckFeatures(const DataConfig& config, const std::vector<SlotConfig>& slots,
                   const std::vector<DenseConfig>& dense);

}  // namespace terrace
