// Training with a memory budget and a disk tier, from the shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/test_dir.h"
#include "command.h"
#include "train/tier_testing.h"

namespace terrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// About 190,000 rows of 536 bytes.
constexpr const char* kRun = R"(
[data]
format = "synthetic"
[data.synthetic]
train_examples = 20_000
test_examples = 500
slots = 10
features = 1_000_000
zipf = 0.6
[tables.main]
dim = 64
[model]
hidden = [8]
[train]
batch = 256
threads = 2
)";

class Tiers : public ::testing::Test {
 protected:
  Tiers() { dir_.Write("run.toml", kRun); }

  CommandResult Train(const std::string& options) {
    return RunCommand("terrace train run.toml --quiet " + options, dir_.path());
  }
  // `name` of a run: of its summary and predictions.
  nlohmann::json Summary(const std::string& name, const std::string& options) {
    const CommandResult r =
        Train("--summary " + name + ".json --predictions " + name + ".txt " + options);
    if (r.exit_code != 0) throw std::runtime_error(r.output);
    return nlohmann::json::parse(dir_.Read(name + ".json"));
  }
  std::string Rows() const { return disk_.path() + "/rows"; }
  std::string Tiered(const std::string& budget) const {
    return " --set tiers.memory.budget=" + budget + " --set tiers.disk.path=" + Rows() + " ";
  }
  // Files below the disk tier's path, but for locks, which stay.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(disk_.path()))
      if (entry.is_regular_file() && entry.path().filename() != "LOCK")
        names.push_back(entry.path().filename());
    return names;
  }

  const ScratchDir dir_;
  const TestDir disk_;
};

// Shell: starts a run in the background as $pid, and waits until rows were written to disk.
std::string StartAndWaitForRows(const std::string& command, const std::string& rows) {
  return command + " & pid=$!; until [ -n \"$(find " + rows +
         " -name '*.log' -size +100k 2>/dev/null)\" ]; do kill -0 $pid || exit 99; done; ";
}

TEST_F(Tiers, AModelSeveralTimesItsMemoryIsTheSameAndKeepsToItsBudget) {
  const std::string larger = "--set data.synthetic.train_examples=80000 --set train.batch=1024 ";
  const auto memory = Summary("memory", larger);
  const auto tiered = Summary("tiered", larger + Tiered("128MiB"));
  EXPECT_EQ(tiered["model_digest"], memory["model_digest"]);
  EXPECT_EQ(tiered["auc"], memory["auc"]);
  EXPECT_EQ(tiered["train_loss"], memory["train_loss"]);
  EXPECT_EQ(tiered["rows"], memory["rows"]);
  EXPECT_EQ(dir_.Read("tiered.txt"), dir_.Read("memory.txt"));
  EXPECT_NE(dir_.Read("tiered.txt"), "");
  constexpr double kBudget = 128 << 20;
  EXPECT_GT(memory["tiers"]["memory"]["bytes"].get<double>(), 2.5 * kBudget);

  // Each lookup is counted once, where its row was found.
  const auto& in_memory = tiered["tiers"]["memory"];
  const auto& on_disk = tiered["tiers"]["disk"];
  const auto count = [](const nlohmann::json& n) { return n.get<int64_t>(); };
  EXPECT_EQ(count(in_memory["hits"]) + count(in_memory["misses"]),
            count(memory["tiers"]["memory"]["hits"]) + count(memory["tiers"]["memory"]["misses"]));
  EXPECT_EQ(in_memory["misses"], count(on_disk["hits"]) + count(on_disk["misses"]));
  EXPECT_EQ(on_disk["misses"], tiered["rows"]);
  EXPECT_GT(on_disk["hits"], 0);
  EXPECT_LT(in_memory["rows"], tiered["rows"]);
  EXPECT_GE(in_memory["evicted"], on_disk["rows_written"]);
  EXPECT_GE(count(on_disk["rows_written"]), count(tiered["rows"]) - count(in_memory["rows"]));
  EXPECT_GT(on_disk["bytes"], 0);
  EXPECT_GT(tiered["tiers"]["windows"]["count"], 0);
  for (const char* stage : {"pull", "push"}) {
    EXPECT_TRUE(tiered["stages"].contains(stage));
    EXPECT_FALSE(memory["stages"].contains(stage));
  }

  const auto bytes = [&](const nlohmann::json& n) { return n.get<double>(); };
  const double peak = bytes(tiered["peak_rss"]);
  EXPECT_LE(peak, 1.05 * kBudget);
  const double stated = bytes(in_memory["bytes"]) + bytes(on_disk["memory_bytes"]) +
                        bytes(tiered["queue_bytes"]) + bytes(tiered["reader_bytes"]) +
                        bytes(tiered["scratch_bytes"]) + bytes(tiered["process_bytes"]) +
                        12 * bytes(tiered["dense_params"]);
  EXPECT_NEAR(peak / stated, 1, 0.1);
  EXPECT_TRUE(Files().empty());
}

TEST_F(Tiers, ABudgetThatIsTooSmallIsRefusedWithOneThatWorks) {
  const std::string options = "--set train.batch=2048 --set train.max_batches=4 ";
  CommandResult r = Train(options + Tiered("40MiB"));
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("terrace: tiers.memory.budget is 40.0 MiB: "));
  EXPECT_THAT(r.output, ContainsRegex("raise it to [0-9.]+ MiB or lower train.batch"));
  const std::string summary = "--summary tiered.json ";
  // What readers take differs from run to run, so the advice may have to be followed again.
  for (int attempt = 0; attempt < 3 && r.exit_code == 2; ++attempt) {
    const int64_t wanted = BudgetIn(r.output);
    ASSERT_GT(wanted, 40 << 20);
    r = Train(summary + options + Tiered(std::to_string(wanted)));
  }
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(nlohmann::json::parse(dir_.Read("tiered.json"))["model_digest"],
            Summary("memory", options)["model_digest"]);
}

TEST_F(Tiers, WithoutADiskTierAModelLargerThanItsBudgetIsRefused) {
  const CommandResult r =
      Train("--set tiers.memory.budget=64MiB --summary summary.json --predictions scores.txt");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("tiers.memory.budget is 64.0 MiB. Raise it, or set "
                                  "tiers.disk.path to a directory on an SSD"));
  EXPECT_EQ(dir_.Read("summary.json"), "");
  EXPECT_EQ(dir_.Read("scores.txt"), "");
}

TEST_F(Tiers, ADiskBudgetThatIsTooSmallEndsTheRunAndLeavesNoFiles) {
  const CommandResult r = Train(Tiered("48MiB") + "--set tiers.disk.budget=8MiB --summary s.json");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, ContainsRegex("the disk tier takes [0-9.]+ MiB, tiers.disk.budget is "
                                      "8.00 MiB: raise it"));
  EXPECT_TRUE(Files().empty());
  EXPECT_EQ(dir_.Read("s.json"), "");
}

TEST_F(Tiers, APathThatCannotBeADirectoryIsNamed) {
  dir_.Write("file", "mine");
  CommandResult r = Train(Tiered("48MiB") + "--set tiers.disk.path=file");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("file/main: cannot create the directory: Not a directory"));
  EXPECT_EQ(dir_.Read("file"), "mine");
  r = Train(Tiered("48MiB") + "--set tiers.disk.path=/proc/rows");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("/proc/rows"));
}

TEST_F(Tiers, OtherFilesInItsDirectoryStay) {
  std::filesystem::create_directories(Rows() + "/main");
  dir_.Write("notes", "mine");
  for (const char* place : {"/notes.txt", "/main/notes.txt"})
    std::filesystem::copy(dir_.path() + "/notes", Rows() + place);
  Summary("tiered", Tiered("48MiB") + "--set train.max_batches=30");
  EXPECT_THAT(Files(), ::testing::ElementsAre("notes.txt", "notes.txt"));
}

TEST_F(Tiers, AfterAKillTheSameCommandWorksAndLeavesNothing) {
  const std::string tiered = Tiered("48MiB");
  const CommandResult killed =
      RunCommand(StartAndWaitForRows("terrace train run.toml --quiet " + tiered, Rows()) +
                     "kill -KILL $pid; wait $pid",
                 dir_.path());
  EXPECT_EQ(killed.exit_code, 137) << killed.output;
  EXPECT_FALSE(Files().empty());
  const auto again = Summary("again", tiered);
  EXPECT_EQ(again["model_digest"], Summary("memory", "")["model_digest"]);
  EXPECT_TRUE(Files().empty());
}

TEST_F(Tiers, InterruptEndsCleanlyWithASummary) {
  const CommandResult r =
      RunCommand(StartAndWaitForRows("terrace train run.toml --summary summary.json --set "
                                     "data.synthetic.train_examples=1000000000 --set "
                                     "data.synthetic.features=20000 " +
                                         Tiered("48MiB"),
                                     Rows()) +
                     "kill -INT $pid; wait $pid",
                 dir_.path());
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("interrupted after batch"));
  EXPECT_THAT(r.output, Not(HasSubstr("internal error")));
  const auto summary = nlohmann::json::parse(dir_.Read("summary.json"));
  EXPECT_EQ(summary["interrupted"], true);
  EXPECT_GT(summary["tiers"]["disk"]["rows_written"], 0);
  EXPECT_TRUE(Files().empty());
}

TEST_F(Tiers, TwoRunsCannotShareADirectory) {
  const CommandResult r =
      RunCommand(StartAndWaitForRows("terrace train run.toml --quiet --set "
                                     "data.synthetic.train_examples=1000000000 --set "
                                     "data.synthetic.features=20000 " +
                                         Tiered("48MiB") + ">/dev/null 2>&1",
                                     Rows()) +
                     "terrace train run.toml --quiet " + Tiered("48MiB") +
                     "; code=$?; kill -INT $pid; wait $pid; echo first: $?; exit $code",
                 dir_.path());
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr(Rows() + "/main"));
  EXPECT_THAT(r.output, HasSubstr("another process"));
  EXPECT_THAT(r.output, HasSubstr("first: 1"));  // interrupted, and not by the second one
}

// How many rows are evicted may differ: the end of an evaluation ends a window, so which rows are
// known to be of use is not the same.
TEST_F(Tiers, EvaluationsChangeNeitherTheModelNorWhatIsInMemory) {
  const std::string options = "--set train.max_batches=40 " + Tiered("48MiB");
  const auto often = Summary("often", options + "--set eval.every=2");
  const auto once = Summary("once", options);
  EXPECT_EQ(often["evaluations"].size(), 21U);
  EXPECT_EQ(often["model_digest"], once["model_digest"]);
  EXPECT_EQ(dir_.Read("often.txt"), dir_.Read("once.txt"));
  EXPECT_GT(often["tiers"]["disk"]["eval_reads"], once["tiers"]["disk"]["eval_reads"]);
  EXPECT_EQ(often["tiers"]["disk"]["eval_evicted"], 0);
  EXPECT_GT(often["tiers"]["memory"]["evicted"], 0);
}

TEST_F(Tiers, WrongSettingsAreExplained) {
  const auto error = [&](const std::string& options) {
    const CommandResult r = Train(options);
    EXPECT_EQ(r.exit_code, 2) << options;
    return r.output;
  };
  EXPECT_THAT(error(Tiered("48MiB") + "--set tiers.disk.partitions=3"),
              HasSubstr("tiers.disk.partitions is 3; use a power of two"));
  EXPECT_THAT(
      error(Tiered("48MiB") + "--set tiers.disk.memory=48MiB"),
      HasSubstr("tiers.disk.memory (48.0 MiB) is a part of tiers.memory.budget (48.0 MiB)"));
  EXPECT_THAT(error("--set tiers.disk.memory=48MiB"),
              HasSubstr("[tiers.disk] has settings but no path: set tiers.disk.path"));
  EXPECT_THAT(error(Tiered("48MiB") + "--set tiers.memory.policy=nextuse"),
              HasSubstr("`tiers.memory.policy` is \"nextuse\", expected one of \"lru\", "
                        "\"lru-lfu\", \"clock\", \"next-use\""));
  EXPECT_THAT(error(Tiered("48MiB") + "--set tiers.disk.pth=x"),
              HasSubstr("did you mean `tiers.disk.path`?"));
}

// Where the disk itself is full, not the budget.
TEST_F(Tiers, AFullDiskEndsTheRunWithAClearError) {
  const CommandResult mount =
      RunCommand("mkdir full && mount -t tmpfs -o size=4m tmpfs full", dir_.path());
  if (mount.exit_code != 0) GTEST_SKIP() << "no file system can be mounted here";
  const CommandResult r = Train(Tiered("48MiB") +
                                "--set tiers.disk.path=full; code=$?; "
                                "umount full; exit $code");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("full/main"));
  EXPECT_THAT(r.output, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace terrace
