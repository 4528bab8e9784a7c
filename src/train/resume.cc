#include "train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "checkpoint/dense_part.h"

namespace terrace {
namespace {

bool StartsWith(const std::string& key, std::string_view prefix) {
  return key.compare(0, prefix.size(), prefix) == 0;
}

bool EndsWith(const std::string& key, std::string_view suffix) {
  return key.size() >= suffix.size() &&
         key.compare(key.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// Never changes what a batch does to the model.
bool IsFree(const std::string& key) {
  for (const char* prefix : {"tiers.", "snapshot.", "eval."})
    if (StartsWith(key, prefix)) return true;
  for (const char* name : {"train.threads", "train.queue", "train.window", "train.prefetch",
                           "train.epochs", "train.max_batches", "data.threads", "data.train",
                           "data.test", "data.standardise_rows", "data.synthetic.test_examples"})
    if (key == name) return true;
  return EndsWith(key, ".admission.keys");
}

// Changes how training goes on, not what the model is.
bool IsTunable(const std::string& key) {
  if (StartsWith(key, "train.schedule.")) return true;
  if (!StartsWith(key, "tables.") && !StartsWith(key, "optimizer.")) return false;
  for (const char* suffix : {".lr", ".l2", ".clip_norm", ".life.unseen", ".life.min_score",
                             ".life.score_ticks", ".ftrl_l1", ".ftrl_l2"})
    if (EndsWith(key, suffix)) return true;
  return false;
}

// What the ranges and defaults of data.slots and data.dense stand for.
RunConfig WithResolvedColumns(RunConfig config) {
  const FeatureSpec spec = FeatureSpec::Resolve(config.data);
  config.data.slots.clear();
  for (const Slot& slot : spec.slots) config.data.slots.push_back(slot.config);
  config.data.dense.clear();
  for (const DenseColumn& column : spec.dense) config.data.dense.push_back(column.config);
  return config;
}

template <typename T>
std::vector<std::string> NamesIn(const std::vector<T>& list) {
  std::vector<std::string> names;
  for (const T& element : list) names.push_back(element.name);
  return names;
}

// In these formats a slot is a place in the line, whatever its name.
void CheckPlaces(const DataConfig& was, const DataConfig& is,
                 std::vector<std::string>* differences) {
  if (was.format != DataFormat::kLibffm && was.format != DataFormat::kSynthetic) return;
  const std::vector<std::string> old = NamesIn(was.slots), now = NamesIn(is.slots);
  if (now.size() > old.size() && !std::equal(old.begin(), old.end(), now.begin()))
    differences->push_back(
        fmt::format("data.slots: was {}, is {}; with this format new ones can only come behind "
                    "the others",
                    fmt::join(old, " "), fmt::join(now, " ")));
}

// The same names in another order: the inputs of the model would be mixed up.
template <typename T>
void CheckOrder(const char* key, const std::vector<T>& was, const std::vector<T>& is,
                std::vector<std::string>* differences) {
  const std::vector<std::string> old = NamesIn(was), now = NamesIn(is);
  if (old != now && std::is_permutation(old.begin(), old.end(), now.begin(), now.end()))
    differences->push_back(fmt::format("{}: was in the order {}, is {}", key, fmt::join(old, " "),
                                       fmt::join(now, " ")));
}

// Takes out of `now` by what it has grown since `saved`; returns a line on each.
std::vector<std::string> TakeGrowth(const RunConfig& saved, RunConfig* now) {
  std::vector<std::string> lines;
  const std::vector<std::string> old_slots = NamesIn(saved.data.slots);
  std::erase_if(now->data.slots, [&](const SlotConfig& slot) {
    if (std::ranges::find(old_slots, slot.name) != old_slots.end()) return false;
    lines.push_back(fmt::format("data.slots: {} is new", slot.name));
    return true;
  });
  if (!lines.empty()) {  // they are counted here, too
    now->data.fields = saved.data.fields;
    now->data.synthetic.slots = saved.data.synthetic.slots;
  }
  std::erase_if(now->tables, [&](const auto& table) {
    if (saved.tables.contains(table.first)) return false;
    lines.push_back(fmt::format("tables.{} is new", table.first));
    return true;
  });
  for (auto& [name, table] : now->tables) {
    const int64_t dim = saved.tables.at(name).dim;
    if (table.dim <= dim) continue;
    lines.push_back(fmt::format("tables.{}.dim: was {}, is {}", name, dim, table.dim));
    table.dim = dim;
  }
  return lines;
}

std::string ValueOf(const ConfigValues& values, const std::string& key) {
  const auto at = values.find(key);
  return at == values.end() ? "not set" : at->second;
}

void LoadSameDense(const Snapshot& snapshot, const std::string& dense, ModelState* state) {
  const auto params = static_cast<size_t>(state->params.size()) * sizeof(float);
  const auto rest = static_cast<size_t>(state->dense_state.size()) * sizeof(float);
  if (dense.size() != params + rest)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: its net has {} bytes of parameters and optimizer state, the "
                            "config's has {}: use the config that the snapshot was taken with",
                            snapshot.path(), dense.size(), params + rest));
  std::memcpy(state->params.data(), dense.data(), params);
  if (rest > 0) std::memcpy(state->dense_state.data(), dense.data() + params, rest);
}

}  // namespace

std::string ConfigText(const RunConfig& config) {
  RunConfig copy = config;
  return PrintConfig([&](ConfigVisitor& v) { copy.Visit(v); });
}

RunConfig ReadSnapshotConfig(const Snapshot& snapshot) {
  return RunConfig::Read(
      ConfigFile::Parse(snapshot.ReadFile(kConfigFile), snapshot.path() + "/" + kConfigFile));
}

ResumeCheck CheckResumable(const Snapshot& snapshot, const RunConfig& saved, const RunConfig& now,
                           bool allow_growth) {
  RunConfig old = WithResolvedColumns(saved), config = WithResolvedColumns(now);
  std::vector<std::string> differences;
  CheckPlaces(old.data, config.data, &differences);
  const std::vector<std::string> growth = TakeGrowth(old, &config);
  CheckOrder("data.slots", old.data.slots, config.data.slots, &differences);
  CheckOrder("data.dense", old.data.dense, config.data.dense, &differences);
  const auto list = [](RunConfig one) {
    return ListConfig([&](ConfigVisitor& v) { one.Visit(v); });
  };
  const ConfigValues was = list(old), is = list(config);
  ResumeCheck check;
  // Keys of either.
  ConfigValues keys = was;
  keys.insert(is.begin(), is.end());
  for (const auto& [key, unused] : keys) {
    if (IsFree(key)) continue;
    const std::string before = ValueOf(was, key), after = ValueOf(is, key);
    if (before == after) continue;
    const std::string line = fmt::format("{}: was {}, is {}", key, before, after);
    (IsTunable(key) ? check.notes : differences).push_back(line);
  }
  check.grown = !growth.empty();
  const bool growth_alone = differences.empty();
  if (growth_alone && (allow_growth || !check.grown)) return check;
  if (!allow_growth) differences.insert(differences.end(), growth.begin(), growth.end());
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{}: the snapshot is of another model than the config's:\n  {}\nset these as "
                  "they were to go on, or train a new model with another snapshot.dir{}",
                  snapshot.path(), fmt::join(differences, "\n  "),
                  growth_alone ? "; --allow-new-slots goes on with them, from the rows and "
                                 "parameters that both models have"
                               : ""));
}

void LoadModel(const Snapshot& snapshot, ModelState* state, Growth* growth) {
  const std::string dense = snapshot.ReadFile(kDenseFile);
  if (growth != nullptr)
    growth->LoadDense(dense, state);
  else
    LoadSameDense(snapshot, dense, state);
  const auto named = [&](const Error& e, const std::string& file) {
    return Error(e.code(), fmt::format("{}/{}: {}", snapshot.path(), file, e.what()));
  };
  for (size_t t = 0; t < state->tables.size(); ++t) {
    const std::string& table = state->tables[t]->schema().name;
    if (growth != nullptr && growth->IsNew(table)) continue;
    const std::string name = EscapeName(table);
    const std::string life = "life-" + name, admission = "admission-" + name;
    try {
      if (state->lives[t] != nullptr) state->lives[t]->Load(snapshot.ReadFile(life));
    } catch (const Error& e) {
      throw named(e, life);
    }
    try {
      if (state->admissions[t] != nullptr) state->admissions[t]->Load(snapshot.ReadFile(admission));
    } catch (const Error& e) {
      throw named(e, admission);
    }
  }
}

}  // namespace terrace
