// The model of a snapshot at work: evaluated on test data, or scoring examples without labels. The
// snapshot is not changed, and nothing is written beside it.
//
// Rows are in memory where they fit, else they stay in the snapshot's files, from which batches
// fetch what they use: the same pipeline as in training, and the same bits.
//
// Threads: the caller's is the train stage, as in TrainModel. Failure: what Snapshot and TrainModel
// throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "train/run_config.h"
#include "train/trainer.h"

namespace terrace {

// The snapshot's config with `sets` ("key=value") laid over it, made ready for the functions below.
// What may be set: where examples are and how they are read, train.batch and threads, tiers. Throws
// Error(kUsage) that lists the settings that are the model's.
RunConfig ReadEvalConfig(const Snapshot& snapshot, const std::vector<std::string>& sets);

struct EvalOptions {
  std::string predictions_path;  // scores of the test examples; empty: not written
  bool show_progress = true;
  // For tests: rows of each table in memory, the others in the snapshot's files, whatever the
  // budget.
  int64_t memory_rows = 0;
};

// Of the snapshot's model on data.test. The report has one evaluation, the counts of the run up to
// the snapshot, and the digest of the model. `stop` ends it between batches: then there is no
// evaluation.
RunReport EvaluateSnapshot(const Snapshot& snapshot, const RunConfig& config,
                           const EvalOptions& options, const std::atomic<bool>& stop);

struct PredictReport {
  int64_t examples = 0;
  int64_t without_example = 0;  // lines that gave "nan"
};

// Scores the examples of data.test, whose labels may be missing. `write` gets one line for each
// line of text but headers, in their order, a batch at a time, as soon as it is scored: a
// probability, or "nan" for a line that has no example (OpenDataOptions::labels).
PredictReport PredictSnapshot(const Snapshot& snapshot, const RunConfig& config,
                              const EvalOptions& options,
                              const std::function<void(std::string_view lines)>& write,
                              const std::atomic<bool>& stop);

}  // namespace terrace
