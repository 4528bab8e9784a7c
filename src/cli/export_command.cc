// terrace export
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/export_rows.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(Writes all rows of a table, decoded to float32 whatever their codec, in no order that means
anything. SNAPSHOT is a snapshot, or a snapshots directory (the latest one in it).

  --to rows.tsv   a line a row: key, weights (w0 ... and, where the model has it, linear). The first
                  line has the names. With --state also the optimizer's numbers (state0 ...) and the
                  row's statistics (show, click, seen). Numbers read back to the same bits.
  --to rows.npy   for numpy, row i of each file being the same row:
                    rows.npy        float32 [rows, weights]
                    rows.keys.npy   uint64 [rows]
                    rows.state.npy  float32 [rows, numbers of the optimizer], with --state
                    rows.stats.npy  fields show, click, seen, with --state, if the table counts

A key is what training made of slot and value; `terrace rows find --slot` makes the same one. Files
appear whole, the keys' last. Memory does not grow with the table.

Examples:
  terrace export snapshots --table main --to rows.tsv
  terrace export snapshots --table main --to rows.npy --state
  python3 -c 'import numpy; print(numpy.load("rows.npy", mmap_mode="r").shape)')";

struct ExportArgs {
  std::string snapshot;
  ExportOptions options;
};

std::string OnlyTable(const SnapshotView& view) {
  std::vector<std::string> names;
  for (const SnapshotTable& table : view.info().tables) names.push_back(table.name);
  if (names.size() == 1) return names[0];
  throw Error(ErrorCode::kUsage, fmt::format("{}: has several tables: name one with --table: {}",
                                             view.snapshot().path(), fmt::join(names, ", ")));
}

void RunExport(const ExportArgs& args) {
  const SnapshotView view(PosixEnv(), args.snapshot);
  ExportOptions options = args.options;
  if (options.table.empty()) options.table = OnlyTable(view);
  ProgressLine line;
  options.progress = [&](int64_t rows) {
    if (line.Due()) line.Show(fmt::format("export {}  {} rows", options.table, WithCommas(rows)));
  };
  const ExportReport report = ExportRows(view, options);
  line.Clear();
  fmt::print("{}: {} rows of table {}: {}\n", view.snapshot().path(), WithCommas(report.rows),
             options.table, fmt::join(report.files, ", "));
}

}  // namespace

void AddExportCommand(CLI::App& app) {
  auto args = std::make_shared<ExportArgs>();
  CLI::App* command = app.add_subcommand("export", "Write a table's rows for other programs");
  command->footer(kHelp);
  command->add_option("snapshot", args->snapshot, "a snapshot, or a snapshots directory")
      ->required()
      ->type_name("");
  command->add_option("--table", args->options.table, "needed if there are several")
      ->type_name("NAME");
  command->add_option("--to", args->options.to, "rows.tsv or rows.npy")
      ->required()
      ->type_name("FILE");
  command->add_flag("--state", args->options.state, "optimizer state and statistics too");
  command->callback([args] { RunExport(*args); });
}

}  // namespace terrace
