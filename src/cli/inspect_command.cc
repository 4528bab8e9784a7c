// terrace inspect
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/snapshot.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/inspect_snapshot.h"
#include "cli/store_paths.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a snapshot, a snapshots directory (the latest one in it), a store, or a directory of
stores, one a table. Nothing is changed.

Of a snapshot it shows what it is, its tables, its dense part and where it comes from. All rows are
read for the norms of their weights (median and 99 % are right to 1 %) and the hottest rows: those of
the most show where the table counts uses, else of the largest norm. --quick leaves the rows out.

Of a store it shows what it takes. It is quick: of the bases only fences and filters are read;
`terrace verify` checks every page.

  rows           a range where keys in the logs may also be in the base: merges find out
  log share      keys in the logs / rows of the base: what is in the logs costs memory for its index,
                 and makes the next merge worth while
  garbage        old values and tombstones that the next merges drop, at most
  amplification  bytes of files / bytes of live rows, at most
  fences, filters, index   memory when open: 8 bytes a page of the base; bits a row that spare reads
                 for absent keys; about 13 bytes a key in the logs
  to open        the smallest memory budget that is enough to read the store

Examples:
  terrace inspect snapshots
  terrace inspect snapshots/000000012000 --hottest 20
  terrace inspect model/main
  terrace inspect model                  every store below
  terrace inspect model/main --partitions
  terrace inspect model --json | jq '.tables[].rows_max')";

struct InspectArgs {
  std::string dir;
  bool partitions = false;
  bool json = false;
  bool quick = false;
  size_t hottest = InspectOptions{}.hottest;
};

void RunInspectSnapshot(const InspectArgs& args) {
  if (args.partitions)
    throw Error(ErrorCode::kUsage, "--partitions is about stores: name a table's, such as " +
                                       args.dir + "/tables/main of one snapshot");
  const SnapshotView view(PosixEnv(), args.dir);
  ProgressLine line;
  InspectOptions options;
  options.rows = !args.quick;
  options.hottest = args.hottest;
  options.progress = [&](const std::string& table, int64_t rows) {
    if (line.Due()) line.Show(fmt::format("read {}  {} rows", table, WithCommas(rows)));
  };
  const SnapshotReport report = InspectSnapshot(view, options);
  line.Clear();
  fmt::print("{}", args.json ? SnapshotJson(report) : RenderSnapshot(report));
}

void RunInspect(const InspectArgs& args) {
  const StoredKind kind = KindOfStored(PosixEnv(), args.dir);
  if (kind == StoredKind::kSnapshot || kind == StoredKind::kSnapshots)
    return RunInspectSnapshot(args);
  std::vector<StoreReport> reports;
  for (const StorePath& store : FindStores(PosixEnv(), args.dir))
    reports.push_back(InspectStore(PosixEnv(), store.name, store.path));
  fmt::print("{}", args.json ? StoresJson(reports, args.partitions)
                             : RenderStores(reports, args.partitions));
}

}  // namespace

void AddInspectCommand(CLI::App& app) {
  auto args = std::make_shared<InspectArgs>();
  CLI::App* command =
      app.add_subcommand("inspect", "Show what a snapshot or a store holds, and what it costs");
  command->footer(kHelp);
  command->add_option("dir", args->dir, "a snapshot, a store, or a directory of them")
      ->required()
      ->type_name("");
  command->add_flag("--partitions", args->partitions, "of stores: each partition too");
  command->add_flag("--quick", args->quick, "of a snapshot: do not read the rows");
  command->add_option("--hottest", args->hottest, "of a snapshot: so many rows of each table")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  command->add_flag("--json", args->json, "as JSON");
  command->callback([args] { RunInspect(*args); });
}

}  // namespace terrace
