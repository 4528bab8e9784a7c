// terrace data gen: a file of synthetic examples.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/env.h"
#include "data/compress.h"
#include "data/data_config.h"
#include "data/open_data.h"

namespace terrace {

struct GenOptions {
  std::string path;  // "-": standard output
  DataFormat format = DataFormat::kCriteo;
  Compression compression = Compression::kNone;
  DataPart part = DataPart::kTrain;
  int64_t examples = 0;
  SyntheticConfig synthetic;  // its numbers of examples are not used
  int threads = 1;
};

struct GenReport {
  int64_t examples = 0;
  int64_t text_bytes = 0;
  int64_t file_bytes = 0;  // compressed
  double label_rate = 0;
  double best_auc = 0;  // of the hidden model's probabilities on these examples
  double seconds = 0;
};

// The format that the path's name stands for, a compression's ending aside: .csv, .libsvm (.svm),
// .libffm (.ffm), and criteo for all others.
DataFormat FormatOfPath(const std::string& path);

// Writes the file, whose bytes depend on the options but for `threads`. A file appears whole or not
// at all. Throws Error(kInterrupted) once `stop` is set.
GenReport GenerateFile(Env& env, const GenOptions& options, const std::atomic<bool>& stop);

// What was written and how to train on it, for people.
std::string DescribeGenerated(const GenOptions& options, const GenReport& report);

}  // namespace terrace
