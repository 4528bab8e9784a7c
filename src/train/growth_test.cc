// A run that goes on with new slots, new tables and wider tables.
#include "train/growth.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/test_dir.h"
#include "model/param_map.h"
#include "table/widen_rows.h"
#include "train/random_runs_testing.h"
#include "train/resume.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Sets = std::vector<std::string>;

const char* const kSlots = R"({name="a"}, {name="b", table="other"}, {name="d", pooling="mean"})";

const char* const kDense = R"(data.dense=[{name="x", standardise=true},
    {name="y", standardise=true}, {name="z", standardise=true}])";

// With these slots behind the old ones.
std::string SlotsAnd(const std::string& more) {
  return fmt::format("data.slots=[{}{}{}]", kSlots, more.empty() ? "" : ", ", more);
}

const Sets kNewSlot = {SlotsAnd(R"({name="c"})")};
const Sets kNewTable = {SlotsAnd(R"({name="c", table="more"}, {name="e", table="aaa"})"),
                        "tables.more.dim=4", "tables.aaa.dim=3"};
const Sets kWider = {"tables.main.dim=7"};
const Sets kAll = {SlotsAnd(R"({name="c", table="more"}, {name="e"})"), "tables.more.dim=2",
                   "tables.main.dim=5", "tables.other.dim=6"};

const std::vector<Sets>& Kinds() {
  static const std::vector<Sets> kinds = {
      {"model.kind=lr"},
      {"model.kind=fm"},
      {"model.kind=widedeep"},
      {"model.kind=deepfm"},
      {"model.kind=deepfm", "model.dropout=0.3", "optimizer.kind=adagrad"},
      {"model.kind=dcnv2", "optimizer.kind=sgd"},
      {"model.kind=dcnv2", "model.cross_rank=3", "model.cross_structure=stacked"},
      {"model.kind=dlrm"},
      {"model.kind=dlrm", "data.dense=[]"}};
  return kinds;
}

// Data, and a snapshots directory that a run left after batch six.
class GrowthTest : public ::testing::Test {
 protected:
  GrowthTest() {
    TierCase c;
    c.examples = 1500;
    c.test_examples = 200;
    c.features = 300;
    WriteData(3, dir_.path(), &c);
    data_ =
        Joined(c.model, {SlotsAnd(""), "tables.main.dim=4", "tables.other.dim=4", "train.batch=100",
                         "data.shuffle=300", "snapshot.memory=24MB", kDense});
  }

  RunConfig Config(const Sets& kind, const Sets& more, const std::string& snapshots) const {
    return SmallRun(
        Joined(Joined(data_, kind), Joined(more, {"snapshot.dir=" + dir_.path() + snapshots})));
  }

  // A run up to batch six; what it leaves is copied for each that goes on.
  void TrainFirst(const Sets& kind) {
    std::filesystem::remove_all(dir_.path() + "/first");
    Train(Config(kind, {"snapshot.every=6"}, "/first"));
    for (const SnapshotEntry& one : ListSnapshots(PosixEnv(), dir_.path() + "/first"))
      if (one.batch != 6) std::filesystem::remove_all(one.path);
  }

  RunReport GoOn(const Sets& kind, const Sets& more, bool allow = true) {
    const std::string copy = fmt::format("/copy{}", ++copies_);
    std::filesystem::copy(dir_.path() + "/first", dir_.path() + copy,
                          std::filesystem::copy_options::recursive);
    RunOptions options;
    options.show_progress = false;
    options.resume = true;
    options.allow_new_slots = allow;
    options.memory_rows = 600;  // of tables with a disk tier
    const std::atomic<bool> stop{false};
    return TrainModel(PosixEnv(), Config(kind, more, copy), options, stop);
  }

  std::string WhyNot(const Sets& kind, const Sets& more, bool allow) {
    try {
      GoOn(kind, more, allow);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.what();
    }
    return "went on";
  }

  Sets Tiered(const Sets& more) const {
    return Joined(more, {"tiers.disk.path=" + dir_.path() + "/rows", "tiers.disk.memory=30MB",
                         "tiers.disk.partitions=2", "train.threads=2", "train.window=2"});
  }

  TestDir dir_;
  Sets data_;
  int copies_ = 0;
};

// A model as a snapshot has it, before any batch.
struct Restored {
  Restored(const std::string& snapshots, const RunConfig& run, bool grown)
      : config(run),
        snapshot(Snapshot::Open(PosixEnv(), snapshots)),
        state(config, FeatureSpec::Resolve(config.data), &CpuDevice()) {
    if (grown) growth = std::make_unique<Growth>(*snapshot, ReadSnapshotConfig(*snapshot), config);
    LoadModel(*snapshot, &state, growth.get());
    state.OpenSaveStores(dir.path(), 64 << 20, &PosixEnv(), DiskStore::Open,
                         [this](const std::string& table) {
                           if (growth != nullptr) return growth->RowsOf(table);
                           return ModelState::SavedRows{snapshot->TablePath(table), nullptr};
                         });
  }
  std::map<uint64_t, std::string> Rows(const std::string& table) const {
    std::map<uint64_t, std::string> rows;
    for (size_t t = 0; t < state.tables.size(); ++t) {
      if (state.tables[t]->schema().name != table) continue;
      DiskStore& store = *state.save_stores[t];
      store.Scan(0, store.partitions(), [&](std::span<const uint64_t> keys, const std::byte* at) {
        for (uint64_t key : keys) {
          rows[key].assign(reinterpret_cast<const char*>(at), store.row_bytes());
          at += store.row_bytes();
        }
      });
      EXPECT_EQ(static_cast<int64_t>(rows.size()), state.tables[t]->rows());
    }
    return rows;
  }
  const TableSchema& Schema(const std::string& table) const {
    for (const auto& one : state.tables)
      if (one->schema().name == table) return one->schema();
    throw Error(ErrorCode::kUsage, "no table " + table);
  }

  const RunConfig config;
  TestDir dir;
  std::unique_ptr<Snapshot> snapshot;
  ModelState state;
  std::unique_ptr<Growth> growth;
};

// Every old row is there with its numbers, and every old parameter.
void ExpectSameModel(const Restored& old, const Restored& now) {
  for (const auto& table : old.state.tables) {
    const TableSchema& from = table->schema();
    const TableSchema& to = now.Schema(from.name);
    const std::map<uint64_t, std::string> was = old.Rows(from.name), is = now.Rows(from.name);
    ASSERT_GT(was.size(), 50u);
    ASSERT_EQ(is.size(), was.size());
    for (const auto& [key, row] : was) {
      std::string want = row;
      if (to.layout.dim > from.layout.dim) {
        want.assign(is.at(key).size(), '\0');
        WidenRows(from, to, {&key, 1}, reinterpret_cast<const std::byte*>(row.data()), row.size(),
                  reinterpret_cast<std::byte*>(want.data()), want.size());
        if (!from.layout.format.packed) {
          ASSERT_EQ(want.compare(0, sizeof(float) * from.layout.dim, row, 0,
                                 sizeof(float) * from.layout.dim),
                    0);
        }
      }
      ASSERT_EQ(is.at(key), want);
    }
  }
  const std::vector<int64_t> match = MatchParams(*old.state.model, *now.state.model);
  const RunConfig config = ReadSnapshotConfig(*old.snapshot);
  const auto states = DenseStatePerParam(config.optimizer.kind);
  const ModelState fresh(now.config, FeatureSpec::Resolve(now.config.data), &CpuDevice());
  int64_t carried = 0;
  const auto params = static_cast<int64_t>(match.size());
  for (int64_t i = 0; i < params; ++i) {
    const int64_t from = match[static_cast<size_t>(i)];
    for (int64_t s = 0; s < states; ++s)
      ASSERT_EQ(now.state.dense_state.data()[s * params + i],
                from < 0 ? 0 : old.state.dense_state.data()[s * old.state.params.size() + from]);
    carried += from < 0 ? 0 : 1;
    ASSERT_EQ(now.state.params.data()[i],
              from < 0 ? fresh.params.data()[i] : old.state.params.data()[from]);
  }
  EXPECT_EQ(carried, old.state.params.size());
  EXPECT_EQ(now.growth->report().carried_params, carried);
  EXPECT_EQ(now.growth->report().new_params, params - carried);
}

TEST_F(GrowthTest, CarriesRowsAndParametersOver) {
  for (const Sets& kind : Kinds()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(kind, " ")));
    TrainFirst(kind);
    const Restored old(dir_.path() + "/first", Config(kind, {}, "/first"), false);
    for (const Sets& more : {kNewSlot, kNewTable, kWider, kAll}) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(more, " ")));
      const Restored now(dir_.path() + "/first", Config(kind, more, "/first"), true);
      ExpectSameModel(old, now);
    }
  }
}

TEST_F(GrowthTest, TrainsOnWithTheSameResultWhereverRowsLive) {
  for (const Sets& kind : Kinds()) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(kind, " ")));
    TrainFirst(kind);
    for (const Sets& more : {kNewSlot, kNewTable, kWider, kAll}) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(more, " ")));
      const RunReport one = GoOn(kind, more);
      EXPECT_EQ(one.resumed_from, 6);
      EXPECT_EQ(one.batches, 15);
      EXPECT_EQ(one.snapshots.failed, 0) << one.snapshots.failure;
      EXPECT_TRUE(one.grown);
      EXPECT_EQ(GoOn(kind, Joined(more, {"train.threads=3"})).model_digest, one.model_digest);
      EXPECT_EQ(GoOn(kind, Tiered(more)).model_digest, one.model_digest);
    }
  }
}

TEST_F(GrowthTest, RowsWithCodecsOptimizersAndLives) {
  for (const char* optimizer : {"sgd", "rowadagrad", "adam", "ftrl"})
    for (const char* codec : {"fp16", "int8"}) {
      const Sets kind = {fmt::format("tables.main.optimizer={}", optimizer),
                         fmt::format("tables.main.weight_codec={}", codec),
                         fmt::format("tables.main.state_codec={}", codec),
                         "tables.main.life.unseen=5",
                         "tables.main.life.max_rows=250",
                         "tables.main.admission.by=count",
                         "tables.main.admission.count=2",
                         "tables.other.life.statistics=true"};
      SCOPED_TRACE(fmt::format("{}", fmt::join(kind, " ")));
      TrainFirst(kind);
      const Sets more =
          Joined(kAll, {"tables.more.life.max_rows=40", "tables.more.admission.by=probability",
                        "tables.more.admission.probability=0.5"});
      const RunReport one = GoOn(kind, more);
      EXPECT_GT(one.life.expired, 0);
      EXPECT_GT(one.life.refused, 0);
      EXPECT_EQ(GoOn(kind, Tiered(more)).model_digest, one.model_digest);
    }
}

TEST_F(GrowthTest, NothingNewIsAPlainResume) {
  TrainFirst({});
  const RunReport plain = GoOn({}, {}, false);
  const RunReport allowed = GoOn({}, {}, true);
  EXPECT_FALSE(allowed.grown);
  EXPECT_EQ(allowed.model_digest, plain.model_digest);
}

TEST_F(GrowthTest, ReportsAndSavesTheNewConfig) {
  TrainFirst({});
  const RunReport report = GoOn({}, kAll);
  const GrowthReport& growth = report.growth;
  EXPECT_THAT(growth.new_slots, ElementsAre("c", "e"));
  EXPECT_THAT(growth.new_tables, ElementsAre("more"));
  ASSERT_EQ(growth.wider_tables.size(), 2u);
  EXPECT_EQ(growth.wider_tables[0].name, "main");
  EXPECT_EQ(growth.wider_tables[0].from, 4);
  EXPECT_EQ(growth.wider_tables[0].to, 5);
  EXPECT_GT(growth.wider_tables[0].rows, 100);
  EXPECT_EQ(growth.carried_params + growth.new_params, report.dense_params);
  EXPECT_GT(growth.new_params, 0);
  const auto last = Snapshot::Open(PosixEnv(), dir_.path() + "/copy1");
  EXPECT_EQ(last->info().batch, 15);
  ASSERT_EQ(last->info().lineage.size(), 2u);
  EXPECT_THAT(last->info().lineage[1],
              AllOf(HasSubstr("new slots: c, e; new tables: more; wider table: main, dim 5 "
                              "instead of 4"),
                    HasSubstr("carried over")));
  EXPECT_EQ(ReadSnapshotConfig(*last).tables.at("main").dim, 5);
  EXPECT_EQ(last->info().dense[0].name, "deep.0.weight");
  EXPECT_THAT(last->info().dense[0].shape, ElementsAre(6 + 3 * 5 + 2 + 3, 16));
  // From here on it is a model like any other.
  std::filesystem::remove_all(dir_.path() + "/first");
  std::filesystem::rename(dir_.path() + "/copy1", dir_.path() + "/first");
  EXPECT_FALSE(GoOn({}, Joined(kAll, {"train.epochs=2"}), false).grown);
}

TEST_F(GrowthTest, SaysThatTheFlagWouldAllowIt) {
  TrainFirst({});
  EXPECT_THAT(WhyNot({}, kAll, false),
              AllOf(HasSubstr("data.slots: c is new"), HasSubstr("tables.more is new"),
                    HasSubstr("tables.main.dim: was 4, is 5"), HasSubstr("--allow-new-slots")));
  const std::string both = WhyNot({}, Joined(kAll, {"tables.main.optimizer=sgd"}), false);
  EXPECT_THAT(both, AllOf(HasSubstr("data.slots: c is new"), HasSubstr("tables.main.optimizer"),
                          Not(HasSubstr("--allow-new-slots"))));
}

TEST_F(GrowthTest, RefusesAllElse) {
  TrainFirst({});
  const auto why = [&](const Sets& more) { return WhyNot({}, more, true); };
  EXPECT_THAT(why({R"(data.slots=[{name="a"}, {name="b", table="other"}])"}),
              AllOf(HasSubstr("data.slots.\"d\""), HasSubstr("is not set")));
  EXPECT_THAT(why({R"(data.slots=[{name="a"}, {name="b"}, {name="d", pooling="mean"}, "c"])"}),
              HasSubstr("table"));
  EXPECT_THAT(
      why({R"(data.slots=[{name="d", pooling="mean"}, {name="b", table="other"}, {name="a"}])"}),
      HasSubstr("was in the order a b d, is d b a"));
  EXPECT_THAT(why({R"(data.dense=[{name="y", standardise=true}, {name="x", standardise=true},
                                 {name="z", standardise=true}])"}),
              HasSubstr("was in the order x y z"));
  EXPECT_THAT(why({R"(data.dense=["x", "y"])"}), HasSubstr("data.dense"));
  EXPECT_THAT(why({"tables.main.dim=3"}), HasSubstr("tables.main.dim: was 4, is 3"));
  for (const char* other :
       {"tables.main.optimizer=sgd", "tables.main.weight_codec=fp16", "model.kind=fm",
        "model.hidden=[16, 9]", "tables.main.life.statistics=true", "train.batch=50", "seed=8",
        "optimizer.kind=sgd", "tables.main.init_scale=0.5"}) {
    const std::string message = why(Joined(kAll, {other}));
    EXPECT_THAT(message,
                AllOf(HasSubstr(std::string(other).substr(0, std::string(other).find('='))),
                      Not(HasSubstr("is new"))));
  }
}

TEST_F(GrowthTest, RangesStandForTheirSlots) {
  data_ = {"train.batch=200", "snapshot.memory=24MB"};
  TrainFirst({});
  EXPECT_EQ(GoOn({}, {R"(data.slots=["s0", "s1..s3", "s4"])"}, false).batches, 15);
  const RunReport report =
      GoOn({}, {"data.synthetic.slots=7", R"(data.slots=["s0..s1", "s2..s6"])"});
  EXPECT_EQ(report.batches, 15);
  EXPECT_THAT(report.growth.new_slots, ElementsAre("s5", "s6"));
}

TEST_F(GrowthTest, SlotsThatArePlacesComeAtTheEnd) {
  data_ = {"train.batch=200", "snapshot.memory=24MB"};
  TrainFirst({});
  const RunReport report = GoOn({}, {"data.synthetic.slots=6"});
  EXPECT_THAT(report.growth.new_slots, ElementsAre("s5"));
  EXPECT_THAT(
      WhyNot({}, {"data.synthetic.slots=6", R"(data.slots=["x", "s0", "s1", "s2", "s3", "s4"])"},
             true),
      HasSubstr("can only come behind"));
}

}  // namespace
}  // namespace terrace
