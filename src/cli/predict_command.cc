// terrace predict
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "cli/commands.h"
#include "train/evaluator.h"

namespace terrace {
namespace {

struct PredictArgs {
  std::string snapshot;
  std::vector<std::string> files;
  std::vector<std::string> sets;
  std::string to;
  int64_t batch = 0;
};

constexpr const char* kHelp =
    R"(Reads examples in the format that the model was trained on (data.format of its config) and writes the
probability of a click for each, one a line, in the order of the input. SNAPSHOT is a snapshot, or a
directory of snapshots: then the latest. It is not changed.

Line n of the output is of line n of the input, headers aside. A line without an example gives "nan":
an empty one, or with --set data.on_bad_row=skip one that cannot be read. Without that, the first bad
row ends the command with its file, line and column.

Labels are not needed:
  csv, tsv         the label's column may be missing; so may those of weight, group and timestamp
  criteo           40 columns with anything, or nothing, in the first; or 39, without it: the first
                   line of a file tells
  libsvm, libffm   a number must stand where the label does; any will do

A batch is answered when it is complete, and at the end of the input: with --batch 1 a program that
writes a line gets its answer at once.

Examples:
  terrace predict snapshots test.tsv > scores.txt
  zcat day_23.tsv.gz | terrace predict snapshots --to scores.tsv
  terrace predict snapshots ads.csv --set data.on_bad_row=skip --set tiers.memory.budget=2GB)";

void WriteStandardOutput(std::string_view lines) {
  if (std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size() &&
      std::fflush(stdout) == 0)
    return;
  throw Error(ErrorCode::kIo,
              fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

void RunPredict(const PredictArgs& args) {
  const auto snapshot = Snapshot::Open(PosixEnv(), args.snapshot);
  RunConfig config = ReadEvalConfig(*snapshot, args.sets);
  config.data.test = args.files.empty() ? std::vector<std::string>{"-"} : args.files;
  if (args.batch > 0) config.train.batch = args.batch;
  EvalOptions options;
  options.show_progress = false;
  const std::atomic<bool> stop{false};
  PredictReport report;
  if (args.to.empty()) {
    report = PredictSnapshot(*snapshot, config, options, WriteStandardOutput, stop);
  } else {
    AtomicFile file(PosixEnv(), args.to);
    report = PredictSnapshot(
        *snapshot, config, options, [&](std::string_view lines) { file.Append(lines); }, stop);
    file.Commit();
  }
  if (report.without_example > 0)
    fmt::print(stderr, "{} of {} lines have no example: \"nan\"\n", report.without_example,
               report.without_example + report.examples);
}

}  // namespace

void AddPredictCommand(CLI::App& app) {
  auto args = std::make_shared<PredictArgs>();
  CLI::App* command = app.add_subcommand("predict", "Score examples with the model of a snapshot");
  command->footer(kHelp);
  command->add_option("snapshot", args->snapshot, "a snapshot, or a directory of snapshots")
      ->required()
      ->type_name("");
  command->add_option("files", args->files, "of examples; -, or none: standard input")
      ->type_name("");
  command->add_option("--to", args->to, "write to this file, which appears whole or not at all");
  command->add_option("--batch", args->batch, "examples that are scored together (train.batch)")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--set", args->sets,
                   "key.name=value: lay a value over the snapshot's config; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->callback([args] { RunPredict(*args); });
}

}  // namespace terrace
