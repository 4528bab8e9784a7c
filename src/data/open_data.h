// Opens the config's data as a stream of batches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/batch.h"
#include "data/data_config.h"
#include "data/features.h"

namespace terrace {

enum class DataPart { kTrain, kTest };

struct OpenDataOptions {
  DataPart part = DataPart::kTrain;
  uint64_t seed = 0;          // of the shuffle; test data is never shuffled
  int64_t epoch = 0;          // another order each epoch
  int64_t max_examples = -1;  // stop after so many; -1: all
};

// A BatchSource that also tells how far it is.
class DataStream : public BatchSource {
 public:
  virtual int64_t skipped_rows() const = 0;
  // Share of the input consumed, 0..1, or -1 where the size is unknown (standard input).
  virtual double progress() const = 0;
  // Memory of examples that were read and not yet delivered, at most so far.
  virtual int64_t buffer_bytes() const = 0;
  // Examples of the whole stream if known in advance (synthetic), else -1.
  virtual int64_t total_examples() const = 0;
};
std::unique_ptr<DataStream> OpenData(Env& env, const DataConfig& config, const FeatureSpec& spec,
                                     const OpenDataOptions& options);

// Measures mean and standard deviation of the dense columns with standardise = true on the first
// data.standardise_rows rows of the training data. Does nothing if there is no such column.
void MeasureDenseColumns(Env& env, const DataConfig& config, FeatureSpec* spec);

}  // namespace terrace
