// `terrace train` from the shell: formats, errors, interruption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSmallSynthetic = R"(
[data]
format = "synthetic"
[data.synthetic]
train_examples = 4000
test_examples = 1000
slots = 4
features = 100
dense = 2
[tables.main]
dim = 4
[model]
hidden = [8]
[train]
batch = 256
)";

nlohmann::json Summary(const ScratchDir& dir) {
  return nlohmann::json::parse(dir.Read("summary.json"));
}

struct Format {
  const char* name;
  const char* config;  // of [data]
};

class TrainFormats : public ::testing::TestWithParam<Format> {};

TEST_P(TrainFormats, TrainsOnWhatDataGenWrites) {
  ScratchDir dir;
  const std::string gen =
      std::string("terrace data gen --slots 4 --features 50 --dense 2 --format ") + GetParam().name;
  CommandResult r = RunCommand(gen + " train.gz --examples 3000 --compress gzip && " + gen +
                                   " test.zst --examples 500 --part test --compress zstd",
                               dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  dir.Write("run.toml",
            std::string("[data]\n") + GetParam().config +
                "\n[tables.main]\ndim = 4\n[model]\nhidden = [8]\n[train]\nbatch = 200");
  r = RunCommand(
      "terrace train run.toml --set data.train=train.gz --set data.test=test.zst "
      "--summary summary.json --predictions scores.txt",
      dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("model digest"));
  const auto summary = Summary(dir);
  EXPECT_EQ(summary["examples"], 3000);
  EXPECT_EQ(summary["test_examples"], 500);
  EXPECT_GT(summary["auc"], 0.5);
  const std::string scores = dir.Read("scores.txt");
  EXPECT_EQ(std::count(scores.begin(), scores.end(), '\n'), 500);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TrainFormats,
    ::testing::Values(Format{"csv", "format = \"csv\"\nslots = [\"s0..s3\"]\ndense = [\"d0..d1\"]"},
                      Format{"tsv", "format = \"tsv\"\nslots = [\"s0..s3\"]\ndense = [\"d0..d1\"]"},
                      Format{"libsvm", "format = \"libsvm\""},
                      Format{"libffm", "format = \"libffm\"\nfields = 6"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(TrainCommand, ReadsStandardInput) {
  ScratchDir dir;
  dir.Write("run.toml", "[data]\nformat = \"criteo\"\n[model]\nkind = \"lr\"\n");
  const CommandResult r = RunCommand(
      "terrace data gen - --examples 2000 | "
      "terrace train run.toml --set data.train=- --summary summary.json",
      dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(Summary(dir)["examples"], 2000);
}

TEST(TrainCommand, PrintedConfigGivesTheSameModel) {
  ScratchDir dir;
  dir.Write("run.toml", kSmallSynthetic);
  const CommandResult r = RunCommand(
      "terrace train run.toml --set train.threads=2 --summary summary.json --quiet && "
      "terrace train run.toml --print-config > full.toml && "
      "terrace train full.toml --set train.threads=1 --summary full.json --quiet",
      dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(Summary(dir)["model_digest"],
            nlohmann::json::parse(dir.Read("full.json"))["model_digest"]);
}

TEST(TrainCommand, BaselineKernelsTrainToo) {
  ScratchDir dir;
  dir.Write("run.toml", kSmallSynthetic);
  CommandResult r =
      RunCommand("TERRACE_ISA=baseline terrace train run.toml --summary summary.json", dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(Summary(dir)["isa"], "baseline");
  r = RunCommand("TERRACE_ISA=sse9 terrace train run.toml", dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("TERRACE_ISA=sse9: expected baseline, avx2 or avx512"));
}

TEST(TrainCommand, ExplainsWrongUsageWithExitCode2) {
  ScratchDir dir;
  dir.Write("run.toml", std::string(kSmallSynthetic) + "bacth = 5\n");
  CommandResult r = RunCommand("terrace train run.toml", dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.output,
            "terrace: run.toml:16: unknown key `train.bacth`; did you mean `train.batch`?\n");
  r = RunCommand("terrace train examples/criteo/lr.toml", dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("data.train is empty; name the training files"));
  EXPECT_EQ(RunCommand("terrace train", dir.path()).exit_code, 2);
  EXPECT_EQ(RunCommand("terrace tarin run.toml", dir.path()).exit_code, 2);
  EXPECT_EQ(RunCommand("terrace train --help", dir.path()).exit_code, 0);
}

TEST(TrainCommand, ExplainsMissingFiles) {
  ScratchDir dir;
  CommandResult r = RunCommand("terrace train absent.toml", dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("absent.toml: cannot open: No such file or directory"));
  r = RunCommand("terrace train examples/criteo/lr.toml --set data.train='day_*.gz'", dir.path());
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("data.train: no file matches \"day_*.gz\""));
  r = RunCommand("terrace train examples/criteo/lr.toml --set data.train=day.gz", dir.path());
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("day.gz: cannot find: No such file or directory"));
}

TEST(TrainCommand, StopsAtABadRowOrSkipsAndCountsIt) {
  ScratchDir dir;
  dir.Write("train.csv", "label,a\n1,x\n0,y\n2,z\n1,w\n");
  dir.Write("run.toml",
            "[data]\nformat = \"csv\"\nslots = [\"a\"]\ntrain = \"train.csv\"\n"
            "[model]\nkind = \"lr\"\n");
  CommandResult r = RunCommand("terrace train run.toml --summary summary.json", dir.path());
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("train.csv:4: column 1 (label): found \"2\""));
  EXPECT_EQ(dir.Read("summary.json"), "");
  r = RunCommand("terrace train run.toml --set data.on_bad_row=skip --summary summary.json",
                 dir.path());
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("bad rows skipped"));
  EXPECT_EQ(Summary(dir)["skipped_rows"], 1);
  EXPECT_EQ(Summary(dir)["examples"], 3);
}

TEST(TrainCommand, InterruptEndsCleanlyWithASummary) {
  ScratchDir dir;
  dir.Write("run.toml", kSmallSynthetic);
  const CommandResult r = RunCommand(
      "terrace train run.toml --set data.synthetic.train_examples=1000000000 "
      "--set data.synthetic.test_examples=0 --summary summary.json & pid=$!; "
      "while ! ls /proc/$pid/task/*/comm >/dev/null 2>&1; do :; done; "
      "until grep -qs plan /proc/$pid/task/*/comm; do :; done; "
      "kill -INT $pid; wait $pid",
      dir.path());
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("interrupted after batch"));
  EXPECT_EQ(Summary(dir)["interrupted"], true);
  EXPECT_THAT(r.output, Not(HasSubstr("internal error")));
}

}  // namespace
}  // namespace terrace
