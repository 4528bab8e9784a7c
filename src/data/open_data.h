// Opens the config's data as a stream of batches.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
  int64_t max_examples = -1;  // stop after so many, from the start of the data; -1: all
  // Go on where a stream was that gave this position; empty: at the start.
  std::string position = {};
  // False: examples that are to be scored. Labels may be missing and are not looked at. Each line
  // of text but headers gives one example; where none can be read from it (it is empty, or it is
  // bad and data.on_bad_row = "skip") that has no keys and the label kNoExample. What a pipe has
  // delivered is handed on without waiting for more.
  bool labels = true;
  // Once it is set, who waits for standard input finds its end; the stream sets it when it goes.
  // Null: the stream cannot go before its input ends.
  std::shared_ptr<std::atomic<bool>> cancelled = {};
  size_t block_bytes = size_t{1} << 20;  // of text, for a thread to parse at a time
};

// A BatchSource that also tells how far it is.
class DataStream : public BatchSource {
 public:
  // Rows left out as bad, in the input behind what was delivered.
  virtual int64_t skipped_rows() const = 0;
  // Share of the input consumed, 0..1, or -1 where the size is unknown (standard input).
  virtual double progress() const = 0;
  // Memory of examples that were read and not yet delivered, at most so far.
  virtual int64_t buffer_bytes() const = 0;
  // Examples of the whole stream if known in advance (synthetic), else -1.
  virtual int64_t total_examples() const = 0;
  // Where the stream is after the last Next, for OpenDataOptions::position: some numbers and the
  // names of files. For Next's thread.
  virtual std::string position() const = 0;
};

// With a position the stream goes on exactly as the one that gave it would have: batches, counts,
// limits and progress, whatever the threads. Throws Error(kCorruption) if it is damaged and
// Error(kUsage) if seed, epoch, data.shuffle or the files read so far are others; files may have
// grown, and more may follow. Standard input has to be given from its start again.
std::unique_ptr<DataStream> OpenData(Env& env, const DataConfig& config, const FeatureSpec& spec,
                                     const OpenDataOptions& options);

// Measures mean and standard deviation of the dense columns with standardise = true on the first
// data.standardise_rows rows of the training data. Does nothing if there is no such column.
void MeasureDenseColumns(Env& env, const DataConfig& config, FeatureSpec* spec);

// What was measured, to be kept with a model. Loading finds columns by name; it throws
// Error(kUsage) if one with standardise = true is not there, Error(kCorruption) if `stats` is
// damaged, and then leaves `spec` as it was.
std::string SaveDenseStats(const FeatureSpec& spec);
void LoadDenseStats(std::string_view stats, FeatureSpec* spec);

}  // namespace terrace
