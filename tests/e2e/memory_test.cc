// The summary tells where the memory went: its parts add up to the process's peak.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace terrace {
namespace {

// Peak over the sum of what the summary states.
double PeakOverStated(const ScratchDir& dir) {
  const auto s = nlohmann::json::parse(dir.Read("summary.json"));
  const double stated = s["tiers"]["memory"]["bytes"].get<double>() +
                        s["queue_bytes"].get<double>() + s["reader_bytes"].get<double>() +
                        s["scratch_bytes"].get<double>() + s["process_bytes"].get<double>();
  return s["peak_rss"].get<double>() / stated;
}

TEST(MemoryReport, ManyRowsAreWhatTheSummaryStates) {
  ScratchDir dir;
  dir.Write("run.toml", R"(
[data]
format = "synthetic"
[data.synthetic]
train_examples = 400_000
test_examples = 1000
slots = 10
features = 10_000_000
zipf = 0.5
[tables.main]
dim = 8
[model]
hidden = [8]
)");
  const CommandResult r = RunCommand("terrace train run.toml --summary summary.json", dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_LT(PeakOverStated(dir), 1.15);
  EXPECT_GT(PeakOverStated(dir), 0.8);
}

TEST(MemoryReport, ShuffledTextIsWhatTheSummaryStates) {
  ScratchDir dir;
  dir.Write("run.toml", R"(
[data]
format = "criteo"
train = ["train.tsv"]
shuffle = 300_000
[tables.main]
dim = 4
[model]
hidden = [8]
)");
  const CommandResult r = RunCommand(
      "terrace data gen train.tsv --format criteo --examples 300000 --features 20000 && "
      "terrace train run.toml --summary summary.json",
      dir.path());
  ASSERT_EQ(r.exit_code, 0) << r.output;
  EXPECT_LT(PeakOverStated(dir), 1.15);
}

}  // namespace
}  // namespace terrace
