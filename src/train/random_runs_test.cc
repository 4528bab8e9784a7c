#include "train/random_runs_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/env.h"
#include "base/random.h"
#include "data/open_data.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

// Draws a case from its number.
class CaseMaker {
 public:
  explicit CaseMaker(uint64_t number) : random_(number, 0) {}

  TierCase Make() {
    Set(&case_.model, "seed", fmt::format("{}", Pick(1000)));
    case_.examples = 300 + Pick(2000);
    case_.test_examples = 1 + Pick(500);
    case_.features = 20 + Pick(4000);
    case_.values = 1 + Pick(4);
    case_.uneven = Pick(3) == 0;
    if (case_.uneven && Pick(2) == 0) case_.features = 20;  // the rest use the same rows
    Set(&case_.model, "data.shuffle", OneOf({"0", "100", "900"}));
    kind_ = OneOf<std::string>({"lr", "fm", "widedeep", "deepfm", "dcnv2", "dlrm"});
    Set(&case_.model, "model.kind", kind_);
    Set(&case_.model, "train.batch", OneOf({"1", "17", "64", "200", "256"}));
    if (case_.model.back() == "train.batch=1") {
      Set(&case_.model, "train.max_batches", "60");
      case_.test_examples = 20;
    }
    Set(&case_.model, "train.epochs", OneOf({"1", "2", "3"}));
    Set(&case_.model, "eval.every", OneOf({"0", "0", "0", "3", "7"}));
    if (Pick(4) == 0) Set(&case_.model, "eval.early_stopping", OneOf({"1", "2"}));
    DrawTables();

    case_.spare = OneOf({0.0, 0.0, 0.05, 0.3, 1.0, 4.0, 12.0});
    Set(&case_.tiers, "train.threads", OneOf({"1", "2", "3"}));
    Set(&case_.tiers, "train.queue", OneOf({"1", "2", "5"}));
    Set(&case_.tiers, "train.window", OneOf({"1", "1", "2", "3", "5", "16"}));
    Set(&case_.tiers, "train.prefetch", OneOf({"1", "1", "2", "4", "8"}));
    Set(&case_.tiers, "data.threads", OneOf({"1", "3"}));
    Set(&case_.tiers, "tiers.memory.policy", OneOf({"lru", "lru-lfu", "clock", "next-use"}));
    Set(&case_.tiers, "tiers.disk.partitions", OneOf({"1", "2", "4"}));
    Set(&case_.tiers, "tiers.disk.memory",
        fmt::format("{}MB", dims_.size() * OneOf<uint64_t>({6, 12})));
    case_.index_bytes = OneOf<size_t>({0, 0, 20'000});
    case_.page_bytes = OneOf<size_t>({0, 1024});
    for (const auto& [table, dim] : dims_) DrawCodecs(table, dim);
    clock_ = Pick(4) == 0 ? "time" : "batches";
    for (const auto& [table, dim] : dims_) DrawLife(table);
    if (clock_ == "time" && ticks_) {
      Set(&case_.model, "train.clock", "time");
      Set(&case_.model, "data.timestamp", "t");
      Set(&case_.model, "train.tick_seconds", OneOf({"1", "60"}));
    }
    return case_;
  }

 private:
  // Tables and the slots that use them: of one dim or several, some of a linear weight alone, some
  // with their linear weights in another table.
  void DrawTables() {
    const bool linear = kind_ != "dcnv2" && kind_ != "dlrm";
    const std::string dim = OneOf<std::string>({"4", "7", "16", "33"});
    dims_["main"] = dim;
    if (Pick(2) == 0)
      dims_["other"] = OneOf<std::string>({dim, dim, "5", "20", linear ? "0" : dim});
    const bool apart = linear && kind_ != "lr" && Pick(3) == 0;
    std::map<std::string, std::string> linear_of;  // by table
    if (apart) {
      const bool has_weights = dims_.contains("other") && dims_["other"] == "0";
      linear_of["main"] = has_weights && Pick(2) == 0 ? "other" : "weights";
      if (dims_.contains("other") && !has_weights && Pick(2) == 0) linear_of["other"] = "weights";
      dims_[linear_of["main"]] = "0";
    }
    for (const auto& [table, width] : dims_) {
      Set(&case_.model, fmt::format("tables.{}.dim", table), width);
      Set(&case_.model, fmt::format("tables.{}.optimizer", table),
          OneOf({"sgd", "adagrad", "rowadagrad", "adam", "ftrl"}));
      Set(&case_.model, fmt::format("tables.{}.init", table), OneOf({"zero", "uniform", "normal"}));
    }
    std::string slots;
    for (const std::string name : {"a", "b", "c", "d", "e"}) {
      const bool other = dims_.contains("other") && (name == "b" || name == "d");
      const std::string table = other ? "other" : "main";
      slots += fmt::format(
          R"({}{{name="{}", separator="|", table="{}", linear_table="{}", pooling="{}"}})",
          slots.empty() ? "" : ", ", name, table, linear_of[table], name == "d" ? "mean" : "sum");
    }
    Set(&case_.model, "data.slots", "[" + slots + "]");
  }
  void DrawCodecs(const std::string& table, const std::string& dim) {
    // Rows of a linear weight alone have nothing to quantize.
    const bool vectors = kind_ != "lr" && dim != "0";
    for (const char* of : {"weight_codec", "state_codec"})
      Set(&case_.model, fmt::format("tables.{}.{}", table, of),
          vectors ? OneOf({"fp32", "fp32", "fp16", "bf16", "int16", "int8"})
                  : OneOf({"fp32", "fp16", "bf16"}));
    Set(&case_.model, fmt::format("tables.{}.rounding", table),
        OneOf({"stochastic", "stochastic", "nearest"}));
  }
  // Which keys of a table get rows, and which rows go when.
  void DrawLife(const std::string& table) {
    const auto set = [&](const std::string& key, const std::string& value) {
      Set(&case_.model, fmt::format("tables.{}.{}", table, key), value);
    };
    const uint64_t unseen = OneOf<uint64_t>({0, 1, 3, 10});
    if (unseen > 0) set("life.unseen", fmt::format("{}", unseen));
    const std::string rule = OneOf<std::string>({"none", "none", "counts", "score", "cap"});
    if (rule == "counts") set("life.statistics", "true");
    if (rule == "score" && unseen != 1) {
      set("life.min_score", OneOf({"0.15", "0.8", "3"}));
      set("life.score_ticks", unseen == 0 ? OneOf({"0", "2", "20"}) : OneOf({"0", "2"}));
    }
    const bool capped = rule == "cap" && clock_ == "batches";
    if (capped) set("life.max_rows", OneOf({"20", "300"}));
    const bool counts =
        unseen > 0 || rule == "counts" || (rule == "score" && unseen != 1) || capped;
    if (counts && Pick(2) == 0) {
      set("life.decay", OneOf({"0.5", "0.98"}));
      set("life.decay_ticks", OneOf({"1", "5"}));
    }
    ticks_ = ticks_ || counts;
    const std::string by = OneOf<std::string>({"all", "all", "count", "probability", "score"});
    set("admission.by", by);
    if (by == "count") set("admission.count", OneOf({"1", "2", "5", "20"}));
    if (by == "probability") set("admission.probability", OneOf({"0.1", "0.5", "1"}));
    if (by == "score") set("admission.score", OneOf({"0.5", "2", "7.77"}));
    if (by != "all" && unseen > 0 && Pick(2) == 0)
      set("admission.forget", fmt::format("{}", unseen + Pick(3)));
    if (by != "all" && Pick(2) == 0) set("admission.keys", "1000");
  }
  uint64_t Pick(uint64_t n) { return random_.Next() % n; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Pick(values.size()));
  }
  static void Set(std::vector<std::string>* sets, const std::string& key,
                  const std::string& value) {
    sets->push_back(key + "=" + value);
  }

  RandomStream random_;
  std::string kind_;
  std::map<std::string, std::string> dims_;  // of each table
  std::string clock_;
  bool ticks_ = false;  // a table counts them
  TierCase case_;
};

// Some values of a slot are in most examples, most in few.
void WriteExamples(const TierCase& c, uint64_t seed, uint64_t examples, const std::string& path) {
  RandomStream random(seed, 1);
  std::string text = "label,a,b,c,d,e,x,y,z,t\n";
  for (uint64_t i = 0; i < examples; ++i) {
    const bool apart = c.uneven && i / 64 % 3 == 2;
    text += random.Next() % 4 == 0 ? "1" : "0";
    for (int slot = 0; slot < 5; ++slot) {
      text += ',';
      if (apart) {
        text += fmt::format("{}", c.features + random.Next() % 8);
        continue;
      }
      for (uint64_t v = random.Next() % c.values + 1; v > 0; --v) {
        const uint64_t of = random.Next() % c.features + 1;
        text += fmt::format("{}{}", random.Next() % of, v > 1 ? "|" : "");
      }
    }
    for (int column = 0; column < 3; ++column) text += fmt::format(",{}", random.Next() % 100);
    text += fmt::format(",{}\n", 1000 + i / 3 - random.Next() % 100);
  }
  WriteFileAtomically(PosixEnv(), path, text);
}

}  // namespace

TierCase MakeCase(uint64_t number) { return CaseMaker(number).Make(); }

// The most rows of one table that a batch uses: fewer cannot be in memory.
int64_t MostRowsOfABatch(const RunConfig& config) {
  const FeatureSpec spec = FeatureSpec::Resolve(config.data);
  size_t most = 1;
  for (int64_t epoch = 0; epoch <= config.train.epochs; ++epoch) {
    OpenDataOptions options;
    options.seed = static_cast<uint64_t>(config.seed);
    options.epoch = epoch;
    if (epoch == config.train.epochs) options.part = DataPart::kTest;
    const auto stream = OpenData(PosixEnv(), config.data, spec, options);
    Batch batch = MakeBatch(spec.shape);
    while (stream->Next(config.train.batch, &batch)) {
      for (const KeyGroup& group : batch.groups)
        most = std::max(most, std::set<uint64_t>(group.keys.begin(), group.keys.end()).size());
      ClearBatch(&batch);
    }
  }
  return static_cast<int64_t>(most);
}

std::vector<std::string> Joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The examples of a case, in files of `dir`; adds to its settings where they are.
void WriteData(uint64_t number, const std::string& dir, TierCase* c) {
  c->model = Joined({"data.format=csv", "data.dense=[\"x\", \"y\", \"z\"]",
                     "data.train=" + dir + "/train.csv", "data.test=" + dir + "/test.csv"},
                    c->model);
  WriteExamples(*c, 2 * number, c->examples, dir + "/train.csv");
  WriteExamples(*c, 2 * number + 1, c->test_examples, dir + "/test.csv");
}

ModelState::OpenStore StoreOf(const TierCase& c) {
  return [&c](const std::string& path, DiskOptions store) {
    // Each partition takes some of it.
    const bool few = store.partitions >= 1 && store.partitions <= 4;
    store.index_bytes = few ? c.index_bytes : 3 * c.index_bytes;
    store.page_bytes = c.page_bytes;
    return DiskStore::Open(path, store);
  };
}

}  // namespace terrace
