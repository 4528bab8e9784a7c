// terrace train
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/process.h"
#include "cli/commands.h"
#include "train/report.h"
#include "train/trainer.h"

namespace terrace {
namespace {

struct TrainArgs {
  std::string config;
  std::vector<std::string> sets;
  std::string summary;
  std::string predictions;
  bool print_config = false;
  bool resume = false;
  bool allow_new_slots = false;
  bool quiet = false;
};

constexpr const char* kHelp =
    R"(Train a CTR model as CONFIG.toml says, and evaluate it on the test data.

Examples:
  terrace train examples/synthetic.toml
  terrace train examples/criteo/deepfm.toml \
      --set data.train='day_*.tsv.gz' --set data.test=test.tsv.gz
  terrace train my.toml --set train.batch=8192 --set tables.main.dim=32 --summary run.json
  terrace train my.toml --set snapshot.dir=snapshots --set snapshot.every=1000
  terrace train my.toml --set snapshot.dir=snapshots --resume   # after a crash, or to train longer
  terrace train my.toml --set snapshot.dir=snapshots --resume --allow-new-slots  # slots were added
  terrace train my.toml --print-config          # every key, its value and what it means

The same config and seed give the same model bit for bit, whatever train.threads is: compare two
runs by model_digest. Ctrl-C ends cleanly after the batches under way; a second one at once.)";

void RunTrain(const TrainArgs& args) {
  ConfigFile file = ConfigFile::Load(args.config);
  for (const std::string& set : args.sets) file.Set(set);
  if (args.print_config) {
    RunConfig config;
    file.Read([&](ConfigVisitor& v) { config.Visit(v); });
    if (config.tables.empty()) config.tables["main"] = TableConfig{};
    fmt::print("{}", PrintConfig([&](ConfigVisitor& v) { config.Visit(v); }));
    return;
  }
  const RunConfig config = RunConfig::Read(file);
  RunOptions options;
  options.predictions_path = args.predictions;
  options.show_progress = !args.quiet;
  options.resume = args.resume;
  options.allow_new_slots = args.allow_new_slots;
  if (args.resume && config.snapshot.dir.empty())
    throw Error(ErrorCode::kUsage,
                "--resume goes on from a snapshot, but snapshot.dir is not set: name the directory "
                "of the run's snapshots, e.g. --set snapshot.dir=snapshots");
  if (args.allow_new_slots && !args.resume)
    throw Error(ErrorCode::kUsage,
                "--allow-new-slots is about a model that goes on from a snapshot: add --resume");
  const RunReport report = TrainModel(PosixEnv(), config, options, StopOnSignals());
  if (!args.summary.empty())
    WriteFileAtomically(PosixEnv(), args.summary, SummaryJson(config, report));
  fmt::print("{}", ReportTable(config, report));
  if (report.interrupted)
    throw Error(
        ErrorCode::kInterrupted,
        fmt::format("interrupted after batch {}; the test data was not evaluated{}", report.batches,
                    config.snapshot.dir.empty() ? "" : "; go on with --resume"));
}

}  // namespace

void AddTrainCommand(CLI::App& app) {
  auto args = std::make_shared<TrainArgs>();
  CLI::App* command = app.add_subcommand("train", kHelp);
  command->add_option("config", args->config, "the run, as TOML")->required();
  command
      ->add_option("--set", args->sets, "key.name=value: lay a value over the config; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--summary", args->summary, "write results and timings as JSON");
  command->add_option("--predictions", args->predictions,
                      "write the test examples' scores, one a line");
  command->add_flag("--resume", args->resume,
                    "go on from the last snapshot in snapshot.dir, if there is one");
  command->add_flag("--allow-new-slots", args->allow_new_slots,
                    "with --resume: the config may have new slots, new tables and larger dims");
  command->add_flag("--print-config", args->print_config,
                    "print the whole config with defaults and comments, and stop");
  command->add_flag("--quiet", args->quiet, "no progress");
  command->callback([args] { RunTrain(*args); });
}

}  // namespace terrace
