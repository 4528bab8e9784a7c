#include "train/resume.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"

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

}  // namespace

std::string ConfigText(const RunConfig& config) {
  RunConfig copy = config;
  return PrintConfig([&](ConfigVisitor& v) { copy.Visit(v); });
}

RunConfig ReadSnapshotConfig(const Snapshot& snapshot) {
  return RunConfig::Read(
      ConfigFile::Parse(snapshot.ReadFile(kConfigFile), snapshot.path() + "/" + kConfigFile));
}

std::vector<std::string> CheckResumable(const Snapshot& snapshot, const RunConfig& saved,
                                        const RunConfig& now) {
  const auto list = [](RunConfig config) {
    return ListConfig([&](ConfigVisitor& v) { config.Visit(v); });
  };
  ConfigValues was = list(saved), is = list(now);
  std::vector<std::string> notes;
  std::string differences;
  // Keys of either.
  ConfigValues keys = was;
  keys.insert(is.begin(), is.end());
  for (const auto& [key, unused] : keys) {
    if (IsFree(key)) continue;
    const auto text = [&](const ConfigValues& values) {
      const auto at = values.find(key);
      return at == values.end() ? std::string("not set") : at->second;
    };
    const std::string before = text(was), after = text(is);
    if (before == after) continue;
    const std::string line = fmt::format("{}: was {}, is {}", key, before, after);
    if (IsTunable(key))
      notes.push_back(line);
    else
      differences += "\n  " + line;
  }
  if (!differences.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: the snapshot is of another model than the config's:{}\nset these "
                            "as they were to go on, or train a new model with another snapshot.dir",
                            snapshot.path(), differences));
  return notes;
}

void LoadModel(const Snapshot& snapshot, ModelState* state) {
  const std::string dense = snapshot.ReadFile("dense");
  const auto params = static_cast<size_t>(state->params.size()) * sizeof(float);
  const auto rest = static_cast<size_t>(state->dense_state.size()) * sizeof(float);
  if (dense.size() != params + rest)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: its net has {} bytes of parameters and optimizer state, the "
                            "config's has {}: use the config that the snapshot was taken with",
                            snapshot.path(), dense.size(), params + rest));
  std::memcpy(state->params.data(), dense.data(), params);
  std::memcpy(state->dense_state.data(), dense.data() + params, rest);
  const auto named = [&](const Error& e, const std::string& file) {
    return Error(e.code(), fmt::format("{}/{}: {}", snapshot.path(), file, e.what()));
  };
  for (size_t t = 0; t < state->tables.size(); ++t) {
    const std::string name = EscapeName(state->tables[t]->schema().name);
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
