// The whole config of a training run.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/config.h"
#include "data/data_config.h"
#include "data/features.h"
#include "model/dense_optimizer.h"
#include "model/model.h"
#include "table/schema.h"
#include "tier/eviction_policy.h"

namespace terrace {

// What time is counted in: batches trained, or the data's timestamps.
enum class ClockKind { kBatches, kTime };
enum class DecayKind { kNone, kLinear, kCosine, kExponential };

// [train.schedule]: a factor on every learning rate, rows' and dense.
struct ScheduleConfig {
  int64_t warmup = 0;  // batches over which the factor grows from 0 to 1
  DecayKind decay = DecayKind::kNone;
  int64_t decay_batches = 0;  // linear, cosine: until `final`; exponential: to halve
  double final_factor = 0;

  void Visit(ConfigVisitor& v);
  void Check() const;
  // Factor of batch `step`, from 1.
  double Factor(int64_t step) const;
};

struct TrainConfig {
  int64_t batch = 4096;
  int64_t epochs = 1;
  int64_t threads = 0;      // 0: all cores
  int64_t slices = 8;       // parts of a batch; changes the order of sums, never with the machine
  int64_t queue = 2;        // batches between two stages
  int64_t max_batches = 0;  // stop after so many; 0: no limit
  int64_t window = 0;       // batches that move between tiers together; 0: from the budget
  int64_t prefetch = 1;     // windows brought to memory ahead of the one in training
  ClockKind clock = ClockKind::kBatches;
  int64_t tick_seconds = 3600;  // of a tick, by the time
  ScheduleConfig schedule;

  void Visit(ConfigVisitor& v);
};

struct EvalConfig {
  int64_t every = 0;           // batches; 0: only at the ends of epochs
  bool each_epoch = true;      // false: only every `every` batches and at the end of the run
  int64_t early_stopping = 0;  // stop after so many evaluations without a better AUC; 0: off
  double min_improvement = 0;  // of AUC, to count as better
  int64_t exact_limit = 20'000'000;

  void Visit(ConfigVisitor& v);
};

struct MemoryTierConfig {
  int64_t budget = 0;  // bytes of the whole process; 0: no limit, or with a disk tier 3/4 of memory
  PolicyKind policy = kDefaultPolicy;

  void Visit(ConfigVisitor& v);
};

struct DiskTierConfig {
  std::string path;        // empty: no disk tier
  int64_t budget = 0;      // bytes of files; 0: no limit
  int64_t memory = 0;      // of the memory budget: for finding rows on disk; 0: a fifth
  int64_t partitions = 0;  // of each table; 0: from its memory

  void Visit(ConfigVisitor& v);
};

// [tiers]
struct TiersConfig {
  MemoryTierConfig memory;
  DiskTierConfig disk;

  void Visit(ConfigVisitor& v);
  void Check() const;
};

// [snapshot]
struct SnapshotConfig {
  std::string dir;         // empty: none are taken
  int64_t every = 0;       // batches; 0: at the end alone
  double seconds = 0;      // also after so long; 0: never
  int64_t keep_last = 3;   // older ones go
  int64_t keep_every = 0;  // but for those of a multiple of so many batches; 0: none
  int64_t memory = 0;      // of the stores behind tables in memory alone; 0: see SaveMemory

  void Visit(ConfigVisitor& v);
  void Check() const;
};

// Memory, at most, of the stores behind tables in memory alone: the more of it, the fewer bytes are
// written twice.
int64_t SaveMemory(const SnapshotConfig& config, const TiersConfig& tiers);

// Memory of the disk tier, a part of tiers.memory.budget.
int64_t DiskTierMemory(const TiersConfig& config);

struct RunConfig {
  int64_t seed = 1;
  DataConfig data;
  std::map<std::string, TableConfig> tables;
  ModelConfig model;
  DenseOptimizerConfig optimizer;
  TrainConfig train;
  EvalConfig eval;
  TiersConfig tiers;
  SnapshotConfig snapshot;

  void Visit(ConfigVisitor& v);

  // Fills in the table "main" if none is named and checks what crosses sections: slots' tables
  // exist, every table is used, there is training data. Throws Error(kUsage).
  void Complete();
  void CheckLives() const;
  void CheckLinearTables(const FeatureSpec& spec) const;
  static RunConfig Read(const ConfigFile& file);
};

}  // namespace terrace
