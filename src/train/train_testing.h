// Small runs for the tests of training.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "train/trainer.h"

namespace terrace {

// A run on generated data, small enough for a fraction of a second; `sets` as on the command line.
inline RunConfig SmallRun(const std::vector<std::string>& sets) {
  ConfigFile file = ConfigFile::Parse(R"(
seed = 7
[data]
format = "synthetic"
threads = 2
shuffle = 700
[data.synthetic]
train_examples = 3000
test_examples = 500
slots = 5
features = 300
values_per_slot = 2
dense = 3
[tables.main]
dim = 4
lr = 0.05
[model]
kind = "deepfm"
hidden = [16, 8]
[train]
batch = 256
slices = 8
threads = 1
)",
                                      "small.toml");
  for (const std::string& set : sets) file.Set(set);
  return RunConfig::Read(file);
}

inline RunReport Train(const RunConfig& config, const std::string& predictions = "") {
  const std::atomic<bool> stop{false};
  RunOptions options;
  options.show_progress = false;
  options.predictions_path = predictions;
  return TrainModel(PosixEnv(), config, options, stop);
}

// What a run with these settings is told, if it is refused.
inline std::string UsageError(const std::vector<std::string>& sets) {
  try {
    Train(SmallRun(sets));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "no error";
}

}  // namespace terrace
