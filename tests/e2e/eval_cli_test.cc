// `terrace eval` and `terrace predict` from the shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "command.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// About 58,000 rows of 540 bytes.
constexpr const char* kRun = R"(
[data]
format = "csv"
slots = ["s0..s3"]
dense = [{name = "d0", standardise = true}, "d1"]
train = "train.csv"
test = "test.csv"
[tables.main]
dim = 64
[model]
hidden = [8]
[train]
batch = 256
threads = 2
[snapshot]
dir = "snapshots"
every = 30
)";

// One run for all tests, which look at what it left.
class EvalCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new ScratchDir;
    dir_->Write("run.toml", kRun);
    const std::string gen = "terrace data gen --slots 4 --features 30000 --zipf 0 --dense 2 ";
    const CommandResult r = Run(gen + "train.csv --examples 20000 && " + gen +
                                "test.csv --examples 700 --part test && terrace train run.toml "
                                "--quiet --summary train.json --predictions train.txt && "
                                "mv train.csv moved.csv && cut -d, -f2- test.csv > plain.csv");
    if (r.exit_code != 0) throw std::runtime_error(r.output);
  }
  static void TearDownTestSuite() { delete dir_; }

  static CommandResult Run(const std::string& line) { return RunCommand(line, dir_->path()); }
  static nlohmann::json Json(const std::string& name) {
    return nlohmann::json::parse(dir_->Read(name));
  }
  static void ExpectAsTrained(const nlohmann::json& got) {
    const nlohmann::json trained = Json("train.json");
    for (const char* name :
         {"model_digest", "auc", "auc_bucketed", "logloss", "normalized_entropy", "copc",
          "label_rate", "test_examples", "rows", "examples", "batches", "epochs", "model", "seed"})
      EXPECT_EQ(got.at(name), trained.at(name)) << name;
  }

  inline static const ScratchDir* dir_ = nullptr;
};

TEST_F(EvalCommand, GivesWhatTrainingGave) {
  CommandResult r =
      Run("find snapshots -type f | sort | xargs md5sum > before && "
          "terrace eval snapshots --quiet --summary eval.json --predictions eval.txt && "
          "find snapshots -type f | sort | xargs md5sum | cmp - before");
  ASSERT_EQ(r.exit_code, 0) << r.output;
  const auto summary = Json("eval.json");
  ExpectAsTrained(summary);
  EXPECT_EQ(dir_->Read("eval.txt"), dir_->Read("train.txt"));
  EXPECT_FALSE(summary["tiers"].contains("disk"));
  EXPECT_THAT(r.output, HasSubstr("snapshots/000000000079\n"));
  EXPECT_THAT(r.output, HasSubstr(summary["model_digest"].get<std::string>()));
  EXPECT_THAT(r.output, HasSubstr("test AUC"));
}

TEST_F(EvalCommand, GivesTheSameWithRowsInTheSnapshotsFiles) {
  const CommandResult r =
      Run("terrace eval snapshots --quiet --summary small.json --predictions small.txt "
          "--set tiers.memory.budget=44MiB --set tiers.disk.memory=12MiB --set train.threads=1");
  ASSERT_EQ(r.exit_code, 0) << r.output;
  const auto summary = Json("small.json");
  ExpectAsTrained(summary);
  EXPECT_EQ(dir_->Read("small.txt"), dir_->Read("train.txt"));
  EXPECT_GT(summary["tiers"]["disk"]["eval_reads"], 0);
  EXPECT_EQ(summary["tiers"]["memory"]["budget"], 44 << 20);
  EXPECT_THAT(r.output, HasSubstr("in the snapshot's files"));
}

TEST_F(EvalCommand, TakesOneSnapshotOfSeveralAndOtherData) {
  const CommandResult r = Run(
      "terrace eval snapshots/000000000060 --quiet --set data.test=moved.csv --summary of60.json");
  ASSERT_EQ(r.exit_code, 0) << r.output;
  const auto summary = Json("of60.json");
  EXPECT_EQ(summary["batches"], 60);
  EXPECT_EQ(summary["test_examples"], 20000);
  EXPECT_NE(summary["model_digest"], Json("train.json")["model_digest"]);
}

TEST_F(EvalCommand, PredictGivesTheSameFromFilesAndPipesWithAndWithoutLabels) {
  for (const char* command :
       {"terrace predict snapshots test.csv > scores",
        "terrace predict snapshots < test.csv > scores",
        "gzip < plain.csv | terrace predict snapshots - > scores",
        "terrace predict snapshots plain.csv --to scores",
        "terrace predict snapshots plain.csv --to scores --set tiers.memory.budget=44MiB "
        "--set tiers.disk.memory=12MiB"}) {
    const CommandResult r = Run(std::string("rm -f scores; ") + command);
    EXPECT_EQ(r.exit_code, 0) << command << "\n" << r.output;
    EXPECT_EQ(r.output, "") << command;
    EXPECT_EQ(dir_->Read("scores"), dir_->Read("train.txt")) << command;
  }
  // Two files are one stream, each with its header.
  const CommandResult r = Run("terrace predict snapshots plain.csv test.csv | wc -l");
  EXPECT_EQ(r.output, "1400\n");
}

TEST_F(EvalCommand, PredictAnswersBeforeItsInputEnds) {
  const CommandResult r =
      Run("rm -f in out; mkfifo in out; terrace predict snapshots --batch 2 < in > out & exec 3> "
          "in 4< out; "
          "head -n 3 plain.csv >&3; read -r a <&4; read -r b <&4; "
          "sed -n 4,5p plain.csv >&3; read -r c <&4; read -r d <&4; "
          "sed -n 6p plain.csv >&3; exec 3>&-; read -r e <&4; wait $! && "
          "printf '%s\\n' $a $b $c $d $e");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  std::istringstream got(r.output), expected(dir_->Read("train.txt"));
  for (int i = 0; i < 5; ++i) {
    double a = -1, b = -2;
    got >> a;
    expected >> b;
    EXPECT_NEAR(a, b, 1e-6) << i;
  }
}

// The other side waits for an answer and keeps its end open.
TEST_F(EvalCommand, PredictTellsOfFailuresBeforeItsInputEnds) {
  const auto run = [](const std::string& options, const std::string& lines) {
    return Run("rm -f in; mkfifo in; terrace predict snapshots --batch 1 " + options +
               " < in & exec 3> in; { head -n 2 plain.csv; " + lines +
               "; } >&3; wait $!; echo code $?")
        .output;
  };
  EXPECT_THAT(run("", "echo bad"),
              AllOf(HasSubstr("standard input:3: found 1 column"), HasSubstr("code 1\n")));
  EXPECT_THAT(run("--set tiers.memory.budget=18MiB --set tiers.disk.memory=8MiB", "true"),
              AllOf(HasSubstr("tiers.memory.budget is 18.0 MiB"), HasSubstr("code 2\n")));
}

TEST_F(EvalCommand, PredictGivesALineForEachLine) {
  const CommandResult r =
      Run("sed -e '3s/.*/bad/' -e '5s/.*//' plain.csv > holes.csv; "
          "terrace predict snapshots holes.csv; echo code $?; "
          "terrace predict snapshots holes.csv --set data.on_bad_row=skip > scores; "
          "wc -l < scores; grep -n nan scores");
  EXPECT_THAT(r.output, HasSubstr("holes.csv:3: found 1 column, expected 6. Fix the row"));
  EXPECT_THAT(r.output, HasSubstr("code 1\n"));
  EXPECT_THAT(r.output, HasSubstr("2 of 700 lines have no example: \"nan\"\n"));
  EXPECT_THAT(r.output, HasSubstr("\n700\n2:nan\n4:nan\n"));
}

TEST_F(EvalCommand, PredictOfNothingIsNothing) {
  const CommandResult r =
      Run("terrace predict snapshots; head -n 1 plain.csv > none.csv; "
          "terrace predict snapshots none.csv --to none && wc -c < none");
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_EQ(r.output, "0\n");
}

TEST_F(EvalCommand, FailuresOfThePredictionsOutputAreSeen) {
  CommandResult r = Run("terrace predict snapshots plain.csv > /dev/full");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("standard output: cannot write: No space left"));
  r = Run("terrace predict snapshots holes2.csv --to kept; ls kept*");
  EXPECT_THAT(r.output, AllOf(HasSubstr("holes2.csv: cannot find"), HasSubstr("cannot access")));
}

TEST_F(EvalCommand, ExplainsWrongUsageWithExitCode2) {
  const auto expect = [](const std::string& line, const std::string& message) {
    const CommandResult r = Run(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.output, HasSubstr(message)) << line;
  };
  for (const std::string command : {"eval", "predict"}) {
    expect("terrace " + command + " absent", "absent: there is no such snapshot");
    expect("terrace " + command + " examples", "examples: is neither a snapshot");
    expect("terrace " + command + " snapshots --set tables.main.dim=32",
           "tables.main.dim: was 64, is 32");
    expect("terrace " + command + " snapshots --set tables.main.dmi=32", "did you mean");
    expect("terrace " + command + " snapshots --set tiers.memory.budget=1MB", "");
    expect("terrace " + command, "");
    EXPECT_EQ(Run("terrace " + command + " --help").exit_code, 0);
  }
  expect("terrace eval snapshots --set data.test=[]", "data.test");
  expect("terrace eval snapshots --set data.test='day_*.csv'", "day_*.csv: no file matches");
  expect("terrace predict snapshots --batch 0", "--batch");
}

TEST_F(EvalCommand, MissingTestDataIsNamed) {
  CommandResult r = Run("terrace eval snapshots --set data.test=absent.csv");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("absent.csv: cannot find: No such file"));
  r = Run("terrace eval snapshots --set data.test=plain.csv");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("plain.csv:1: the header has no column \"label\""));
}

TEST_F(EvalCommand, DamageIsFoundAndNamed) {
  const std::string snapshot = dir_->path() + "/snapshots/000000000079";
  const std::string copy = dir_->path() + "/damaged";
  std::filesystem::copy(snapshot, copy, std::filesystem::copy_options::recursive);
  std::vector<std::string> names = {"MANIFEST", "config.toml", "dense",
                                    "features", "reader",      "tables/main/MANIFEST"};
  // The largest of its pages.
  uintmax_t most = 0;
  names.emplace_back();
  for (const auto& entry : std::filesystem::directory_iterator(snapshot + "/tables/main"))
    if (entry.file_size() > std::exchange(most, std::max(most, entry.file_size())))
      names.back() = "tables/main/" + entry.path().filename().string();
  for (const std::string& name : names) {
    const std::string bytes = dir_->Read("damaged/" + name);
    std::string flipped = bytes;
    flipped[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    dir_->Write("damaged/" + name, flipped);
    for (const char* command :
         {"terrace eval damaged --quiet", "terrace predict damaged plain.csv > scores"}) {
      const CommandResult r = Run(command);
      EXPECT_EQ(r.exit_code, 1) << command << ": " << name << "\n" << r.output;
      EXPECT_THAT(r.output, HasSubstr("damaged/" + name)) << command;
    }
    dir_->Write("damaged/" + name, bytes);
  }
  EXPECT_EQ(Run("terrace eval damaged --quiet").exit_code, 0);
  std::filesystem::remove(copy + "/dense");
  EXPECT_THAT(Run("terrace eval damaged").output, HasSubstr("damaged/dense: the file is missing"));
}

TEST(PredictFormats, LabelsAreNotNeeded) {
  for (const std::string format : {"criteo", "libsvm", "libffm", "tsv"}) {
    const ScratchDir dir;
    const std::string config = format == "tsv"      ? "\nslots = [\"s0..s3\"]\ndense = [\"d0\"]"
                               : format == "libffm" ? "\nfields = 6"
                                                    : "";
    const std::string size = format == "criteo" ? "" : " --slots 4 --dense 2";
    dir.Write("run.toml",
              "[data]\nformat = \"" + format + "\"\ntrain = \"train\"\ntest = \"test\"" + config +
                  "\n[tables.main]\ndim = 4\n[model]\nhidden = [8]\n[train]\nbatch = 200"
                  "\n[snapshot]\ndir = \"snapshots\"");
    const std::string gen = "terrace data gen" + size + " --features 50 --format " + format;
    // Without labels, or with others.
    const std::string strip = format == "criteo" || format == "tsv"
                                  ? "cut -f2- test > plain"
                                  : "sed 's/^[^ ]*/7/' test > plain";
    const CommandResult r = RunCommand(
        gen + " train --examples 2000 && " + gen + " test --examples 300 --part test && " +
            "terrace train run.toml --quiet --predictions scores && " + strip +
            " && terrace predict snapshots plain | cmp - scores && "
            "terrace predict snapshots test | cmp - scores && "
            "head -n 2 plain | terrace predict snapshots | wc -l",
        dir.path());
    EXPECT_EQ(r.exit_code, 0) << format << "\n" << r.output;
    EXPECT_THAT(r.output, Not(HasSubstr("differ"))) << format;
  }
}

}  // namespace
}  // namespace terrace
