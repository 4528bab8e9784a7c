// Guesses what a data file holds.
#pragma once

#include <optional>
#include <string>

#include "base/env.h"
#include "data/data_config.h"

namespace terrace {

// A [data] section that reads every column of the file; `format`, if given, is not guessed. The
// rules, on the first rows of the (decompressed) file:
//   criteo   40 columns between tabs, the first of them a number
//   libffm   label field:index:value ...          libsvm   label index:value ...
//   tsv      a header with tabs                   csv      a header with commas
// In csv and tsv a column whose values are all numbers, some with a decimal point, is dense; any
// other one is a slot, with many values a cell if one of them holds a "|". Dense columns are read
// as they are, an empty cell as kMissingMark (cli/data_info_stats.h).
//
// Throws Error(kUsage) if the file is of no known kind, Error(kIo) if it cannot be read.
DataConfig DetectData(Env& env, const std::string& path, std::optional<DataFormat> format,
                      const std::string& label);

}  // namespace terrace
