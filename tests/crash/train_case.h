// Runs for the crash tests of training: a config and data drawn from a number, and, for each start
// of the run, settings that may change from one to the next.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/random.h"
#include "train/random_runs_testing.h"
#include "train/resume.h"
#include "train/train_testing.h"

namespace terrace {

// Writes run.toml and some files of examples to `dir`. The run takes a fraction of a second.
class TrainCase {
 public:
  TrainCase(uint64_t number, const std::string& dir) : random_(number, 11), dir_(dir) {
    case_ = MakeCase(number);
    case_.model = Joined({"data.format=csv", "data.dense=[\"x\", \"y\", \"z\"]",
                          "data.train=" + dir + "/train-*.csv", "data.test=" + dir + "/test.csv"},
                         case_.model);
    const auto batch = static_cast<uint64_t>(SmallRun(case_.model).train.batch);
    const uint64_t epoch_batches = 100 + Pick(batch <= 64 ? 300 : 100);
    case_.examples = std::max<uint64_t>(batch, 17) * epoch_batches;
    // Many more rows than fit into the smallest budget of memory, most times.
    if (Pick(4) > 0) case_.features = 30000 + Pick(100000);
    const uint64_t files = 2 + Pick(4);
    for (uint64_t i = 0; i < files; ++i)
      WriteExamples(case_, 8 * number + i, case_.examples / files + 1,
                    fmt::format("{}/train-{}.csv", dir, i));
    WriteExamples(case_, 8 * number + 7, case_.test_examples, dir + "/test.csv");
    for (const std::string& set :
         {fmt::format("train.epochs={}", 2), fmt::format("eval.every={}", 20 + Pick(60)),
          fmt::format("train.max_batches={}", batch == 1 ? 600 : 0)})
      case_.model.push_back(set);
    config_ = SmallRun(case_.model);
    batches_ = batch == 1 ? 600 : 2 * epoch_batches;
    WriteFileAtomically(PosixEnv(), dir + "/run.toml", ConfigText(config_));
  }

  // Of one start of the run.
  struct Start {
    std::vector<std::string> sets;
    bool tiered = false;
    double spare = 0;  // of the memory budget, beyond the smallest
    int64_t keep_last = 0, keep_every = 0;
  };
  // `other`: a directory on another file system than the case's, perhaps.
  Start Draw(const std::string& other) {
    Start start;
    start.keep_last = static_cast<int64_t>(1 + Pick(3));
    if (Pick(4) == 0) start.keep_every = static_cast<int64_t>(10 + Pick(50));
    start.sets = {"snapshot.dir=" + snapshots(),
                  fmt::format("snapshot.every={}", 3 + Pick(batches_ / 12)),
                  fmt::format("snapshot.keep_last={}", start.keep_last),
                  fmt::format("snapshot.keep_every={}", start.keep_every),
                  "snapshot.memory=16MB",
                  fmt::format("train.threads={}", 1 + Pick(3)),
                  fmt::format("data.threads={}", 1 + Pick(3))};
    start.tiered = Pick(3) > 0;
    if (!start.tiered) return start;
    start.sets = Joined(start.sets, case_.tiers);
    start.sets.push_back(fmt::format("tiers.disk.memory={}", DiskMemory()));
    start.sets.push_back(fmt::format("train.window={}", 1 + Pick(8)));
    start.sets.push_back("tiers.disk.path=" + (Pick(5) == 0 ? other : dir_) + "/rows");
    start.spare = Pick(2) == 0 ? 0 : static_cast<double>(Pick(30)) / 100;
    return start;
  }
  // About the least that the disk tier does with.
  int64_t DiskMemory() const { return static_cast<int64_t>(config_.tables.size()) * (7 << 20); }
  uint64_t Pick(uint64_t n) { return random_.Next() % n; }
  std::string snapshots() const { return dir_ + "/snapshots"; }
  std::string Describe() const { return fmt::format("{}", fmt::join(case_.model, " ")); }

 private:
  RandomStream random_;
  const std::string dir_;
  TierCase case_;
  RunConfig config_;
  uint64_t batches_ = 0;
};

}  // namespace terrace
