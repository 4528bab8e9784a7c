// terrace eval
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/process.h"
#include "cli/commands.h"
#include "train/evaluator.h"
#include "train/report.h"

namespace terrace {
namespace {

struct EvalArgs {
  std::string snapshot;
  std::vector<std::string> sets;
  std::string summary;
  std::string predictions;
  bool quiet = false;
};

constexpr const char* kHelp =
    R"(SNAPSHOT is a snapshot, or a directory of snapshots: then the latest. It is not changed, may be on a
read-only medium, and has its config in it: data.test is read, the training data is not needed. Metrics
and predictions are bit for bit those that training had at that batch.

Rows are brought to memory where they fit. With a tiers.memory.budget that is smaller they stay in the
snapshot's files, and each batch reads the rows that it uses: slower, with the same results.

--set may change what is read and how (data.test, data.on_bad_row, eval.*, tiers.*, train.threads,
train.batch), not the model. With another train.batch the last digits of sums may differ.

Examples:
  terrace eval snapshots
  terrace eval snapshots/000000002000 --set data.test='day_2*.tsv.gz' --summary eval.json
  terrace eval snapshots --set tiers.memory.budget=2GB --predictions scores.txt)";

void RunEval(const EvalArgs& args) {
  const auto snapshot = Snapshot::Open(PosixEnv(), args.snapshot);
  const RunConfig config = ReadEvalConfig(*snapshot, args.sets);
  EvalOptions options;
  options.predictions_path = args.predictions;
  options.show_progress = !args.quiet;
  const RunReport report = EvaluateSnapshot(*snapshot, config, options, StopOnSignals());
  if (report.interrupted)
    throw Error(ErrorCode::kInterrupted, "interrupted; the test data was not evaluated");
  if (!args.summary.empty())
    WriteFileAtomically(PosixEnv(), args.summary,
                        EvalSummaryJson(config, report, snapshot->path()));
  fmt::print("{}\n{}", snapshot->path(), EvalReportTable(config, report));
}

}  // namespace

void AddEvalCommand(CLI::App& app) {
  auto args = std::make_shared<EvalArgs>();
  CLI::App* command =
      app.add_subcommand("eval", "Evaluate the model of a snapshot on the test data");
  command->footer(kHelp);
  command->add_option("snapshot", args->snapshot, "a snapshot, or a directory of snapshots")
      ->required()
      ->type_name("");
  command
      ->add_option("--set", args->sets,
                   "key.name=value: lay a value over the snapshot's config; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--summary", args->summary, "write results and timings as JSON");
  command->add_option("--predictions", args->predictions,
                      "write the test examples' scores, one a line");
  command->add_flag("--quiet", args->quiet, "no progress");
  command->callback([args] { RunEval(*args); });
}

}  // namespace terrace
