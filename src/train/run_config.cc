#include "train/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"

namespace terrace {

void ScheduleConfig::Visit(ConfigVisitor& v) {
  v.Int("warmup", &warmup, {0}, "batches over which the learning rates grow from 0");
  v.Enum("decay", &decay, {"none", "linear", "cosine", "exponential"},
         "how the learning rates fall after the warm-up");
  v.Int("decay_batches", &decay_batches, {0},
        "linear, cosine: batches until final_factor; exponential: batches to halve");
  v.Double("final_factor", &final_factor, {0, 1}, "the factor never falls below this");
}

void ScheduleConfig::Check() const {
  if (decay != DecayKind::kNone && decay_batches == 0)
    throw Error(
        ErrorCode::kUsage,
        "train.schedule.decay needs train.schedule.decay_batches: over how many batches the "
        "learning rates fall");
}

double ScheduleConfig::Factor(int64_t step) const {
  if (step <= warmup) return static_cast<double>(step) / static_cast<double>(warmup + 1);
  if (decay == DecayKind::kNone) return 1;
  const double passed = static_cast<double>(step - warmup) / static_cast<double>(decay_batches);
  const double to_end = std::min(1.0, passed);
  switch (decay) {
    case DecayKind::kNone:
      break;
    case DecayKind::kLinear:
      return 1 - (1 - final_factor) * to_end;
    case DecayKind::kCosine:
      return final_factor + (1 - final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * to_end));
    case DecayKind::kExponential:
      return std::max(final_factor, std::exp2(-passed));
  }
  return 1;
}

void TrainConfig::Visit(ConfigVisitor& v) {
  v.Int("batch", &batch, {1, 1 << 20}, "examples a batch");
  v.Int("epochs", &epochs, {1}, "passes over the training data");
  v.Int("threads", &threads, {0, 1024}, "threads that train; 0: one a core. Never changes results");
  v.Int("slices", &slices, {1, 1024}, "fixed parts of a batch: the unit of work and of exact sums");
  v.Int("queue", &queue, {1, 1024}, "batches that may wait between two stages");
  v.Int("max_batches", &max_batches, {0}, "stop after so many batches; 0: no limit");
  v.Int("window", &window, {0, 4096},
        "batches whose rows move between tiers together; 0: from the memory budget. Never changes "
        "results");
  v.Int("prefetch", &prefetch, {1, 64},
        "windows brought to memory while an earlier one is trained. Never changes results");
  v.Enum("clock", &clock, {"batches", "time"},
         "ticks of the rows' life: batches trained, or data.timestamp");
  v.Int("tick_seconds", &tick_seconds, {1, INT32_MAX},
        "clock = time: units of data.timestamp that are a tick");
  v.Table("schedule", &schedule, "Learning-rate schedule, of rows and dense part alike");
}

void EvalConfig::Visit(ConfigVisitor& v) {
  v.Int("every", &every, {0}, "evaluate after every so many batches; 0: never within an epoch");
  v.Bool("each_epoch", &each_epoch, "evaluate at the end of each epoch, not only of the run");
  v.Int("early_stopping", &early_stopping, {0},
        "stop after so many evaluations without a better AUC; 0: off");
  v.Double("min_improvement", &min_improvement, {0, 1}, "of AUC, to count as better");
  v.Int("exact_limit", &exact_limit, {0},
        "test examples up to which AUC is exact and GAUC known; beyond it AUC is bucketed");
}

void MemoryTierConfig::Visit(ConfigVisitor& v) {
  v.Bytes("budget", &budget,
          "memory that the whole process may take; 0: no limit, or 3/4 of the machine's with a "
          "disk tier");
  v.Enum("policy", &policy, {"lru", "lru-lfu", "clock", "next-use"},
         "which rows leave memory; `terrace bench policies` compares them. Never changes results");
}

void DiskTierConfig::Visit(ConfigVisitor& v) {
  v.String("path", &path,
           "directory on an SSD for the rows that memory does not hold; one run at a time; empty: "
           "no disk tier");
  v.Bytes("budget", &budget, "bytes its files may take, about twice the rows'; 0: no limit");
  v.Bytes("memory", &memory, "part of tiers.memory.budget that finds rows on disk; 0: a fifth");
  v.Int("partitions", &partitions, {0, 4096},
        "parts of a table's files, merged one by one; a power of two; 0: from its memory");
}

void TiersConfig::Visit(ConfigVisitor& v) {
  v.Table("memory", &memory, "Rows in memory");
  v.Table("disk", &disk, "Rows on an SSD, for models larger than memory");
}

void TiersConfig::Check() const {
  if (!disk.path.empty()) {
    if (disk.partitions > 0 && !std::has_single_bit(static_cast<uint64_t>(disk.partitions)))
      throw Error(ErrorCode::kUsage,
                  fmt::format("tiers.disk.partitions is {}; use a power of two", disk.partitions));
    if (memory.budget > 0 && disk.memory >= memory.budget)
      throw Error(ErrorCode::kUsage,
                  fmt::format("tiers.disk.memory ({}) is a part of tiers.memory.budget ({}): make "
                              "it smaller, or raise the budget",
                              ShortBytes(static_cast<double>(disk.memory)),
                              ShortBytes(static_cast<double>(memory.budget))));
    return;
  }
  if (disk.budget > 0 || disk.memory > 0 || disk.partitions > 0)
    throw Error(ErrorCode::kUsage,
                "[tiers.disk] has settings but no path: set tiers.disk.path to a directory on an "
                "SSD, or remove them");
}

void SnapshotConfig::Visit(ConfigVisitor& v) {
  v.String("dir", &dir,
           "directory for snapshots, of this run alone; best on the file system of "
           "tiers.disk.path; empty: none are taken");
  v.Int("every", &every, {0}, "take one after every so many batches; 0: at the end alone");
  v.Double("seconds", &seconds, {0}, "take one when the last is so long ago; 0: never");
  v.Int("keep_last", &keep_last, {1}, "older ones are removed");
  v.Int("keep_every", &keep_every, {0},
        "but for those after a multiple of so many batches; 0: none of them");
  v.Bytes("memory", &memory,
          "without a disk tier: memory to write rows with, at most; 0: a sixteenth of "
          "tiers.memory.budget, or of 3/4 of the machine's");
}

void SnapshotConfig::Check() const {
  if (!dir.empty() || (every == 0 && seconds == 0 && keep_every == 0 && memory == 0)) return;
  throw Error(ErrorCode::kUsage,
              "[snapshot] has settings but no dir: set snapshot.dir to a directory for this run's "
              "snapshots, or remove them");
}

int64_t SaveMemory(const SnapshotConfig& config, const TiersConfig& tiers) {
  if (config.memory > 0) return config.memory;
  const int64_t all = tiers.memory.budget > 0 ? tiers.memory.budget : MachineMemoryBytes() / 4 * 3;
  return std::clamp<int64_t>(all / 16, 64 << 20, int64_t{4} << 30);
}

int64_t DiskTierMemory(const TiersConfig& config) {
  return config.disk.memory > 0 ? config.disk.memory : config.memory.budget / 5;
}

void RunConfig::Visit(ConfigVisitor& v) {
  v.Int("seed", &seed, {0}, "of everything random: initial values, shuffle, dropout");
  v.Table("data", &data, "Which files, and how columns become features");
  v.Map("tables", &tables, "Rows of one layout: their size, optimizer and first value");
  v.Table("model", &model, "The network");
  v.Table("optimizer", &optimizer, "The optimizer of the dense part");
  v.Table("train", &train, "The training loop");
  v.Table("eval", &eval, "Evaluation on the test data");
  v.Table("tiers", &tiers, "Where rows live");
  v.Table("snapshot", &snapshot, "Copies of the whole state, to go on from and to serve");
}

void RunConfig::Complete() {
  if (tables.empty()) tables["main"] = TableConfig{};
  if (tables.size() == 1 && !tables.contains("main")) {
    for (SlotConfig& slot : data.slots)
      if (slot.table == SlotConfig{}.table) slot.table = tables.begin()->first;
  }
  const FeatureSpec spec = FeatureSpec::Resolve(data);
  std::vector<std::string> names;
  for (const auto& [name, unused] : tables) names.push_back(name);
  for (const Slot& slot : spec.slots) {
    for (const std::string& table : {slot.config.table, slot.config.linear_table}) {
      if (table.empty() || tables.contains(table)) continue;
      const std::string nearest = NearestName(table, names);
      throw Error(ErrorCode::kUsage,
                  fmt::format("slot `{}` uses table `{}`, which the config does not have{}",
                              slot.config.name, table,
                              nearest.empty() ? fmt::format("; add [tables.{}]", table)
                                              : fmt::format("; did you mean `{}`?", nearest)));
    }
  }
  for (const std::string& name : names) {
    if (std::find(spec.group_names.begin(), spec.group_names.end(), name) == spec.group_names.end())
      throw Error(ErrorCode::kUsage,
                  fmt::format("no slot uses [tables.{}]; remove it, or name it in a slot: "
                              "slots = [{{name = \"...\", table = \"{}\"}}]",
                              name, name));
  }
  if (data.format != DataFormat::kSynthetic && data.train.empty())
    throw Error(ErrorCode::kUsage,
                "data.train is empty; name the training files, e.g. --set data.train=train.tsv.gz");
  train.schedule.Check();
  tiers.Check();
  snapshot.Check();
  CheckLives();
  CheckLinearTables(spec);
}

void RunConfig::CheckLinearTables(const FeatureSpec& spec) const {
  for (const Slot& slot : spec.slots) {
    const std::string& linear = slot.config.linear_table;
    if (linear.empty()) continue;
    const std::string where =
        fmt::format("slot `{}` has linear_table = \"{}\"", slot.config.name, linear);
    if (!UsesLinear(model.kind))
      throw Error(ErrorCode::kUsage, where +
                                         ", but this model.kind has no linear weights; leave it "
                                         "out, or choose fm, widedeep or deepfm");
    if (!UsesVectors(model.kind))
      throw Error(ErrorCode::kUsage, where +
                                         ", but model.kind = \"lr\" has linear weights alone; name "
                                         "one table, as `table`");
    if (tables.at(linear).dim > 0)
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}, but tables.{}.dim is {}, and a linear_table's rows are linear "
                              "weights alone; set it to 0, or name another table",
                              where, linear, tables.at(linear).dim));
    if (tables.at(slot.config.table).dim == 0)
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}, but tables.{}.dim is 0: its rows would be empty; give it a dim, "
                              "or leave linear_table out",
                              where, slot.config.table));
  }
}

void RunConfig::CheckLives() const {
  bool ticks = false;
  for (const auto& [name, table] : tables) {
    const LifeConfig& life = table.life;
    life.Check(name);
    table.admission.Check("tables." + name + ".admission");
    ticks = ticks || life.counts() || table.admission.forget > 0;
    // A row whose key is forgotten would stay and neither be read nor learn.
    if (table.admission.forget > 0 && (life.unseen == 0 || life.unseen > table.admission.forget))
      throw Error(ErrorCode::kUsage,
                  fmt::format("tables.{0}.admission.forget is {1}: keys that were not seen for so "
                              "long are forgotten, so their rows must go before; set "
                              "tables.{0}.life.unseen to {1} or less",
                              name, table.admission.forget));
    if (life.max_rows > 0 && train.clock == ClockKind::kTime)
      throw Error(ErrorCode::kUsage,
                  fmt::format("tables.{}.life.max_rows counts rows batch by batch: it needs "
                              "train.clock = \"batches\"",
                              name));
  }
  if (train.clock == ClockKind::kTime && data.timestamp.empty())
    throw Error(ErrorCode::kUsage,
                "train.clock is \"time\", but the data has no time: name the column in "
                "data.timestamp, or set train.clock = \"batches\"");
  if (train.clock == ClockKind::kTime && !ticks)
    throw Error(ErrorCode::kUsage,
                "train.clock is \"time\", but no table counts it: remove it, or set "
                "[tables.NAME.life]");
}

RunConfig RunConfig::Read(const ConfigFile& file) {
  RunConfig config;
  file.Read([&](ConfigVisitor& v) { config.Visit(v); });
  config.Complete();
  return config;
}

}  // namespace terrace
