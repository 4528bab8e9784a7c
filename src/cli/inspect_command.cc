// terrace inspect
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/store_paths.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a store (it has a MANIFEST), or a directory of stores, one a table. Nothing is changed. It
is quick: of the bases only fences and filters are read; `terrace verify` checks every page.

  rows           a range where keys in the logs may also be in the base: merges find out
  log share      keys in the logs / rows of the base: what is in the logs costs memory for its index,
                 and makes the next merge worth while
  garbage        old values and tombstones that the next merges drop, at most
  amplification  bytes of files / bytes of live rows, at most
  fences, filters, index   memory when open: 8 bytes a page of the base; bits a row that spare reads
                 for absent keys; about 13 bytes a key in the logs
  to open        the smallest memory budget that is enough to read the store

Examples:
  terrace inspect model/main
  terrace inspect model                  every store below
  terrace inspect model/main --partitions
  terrace inspect model --json | jq '.tables[].rows_max')";

struct InspectArgs {
  std::string dir;
  bool partitions = false;
  bool json = false;
};

void RunInspect(const InspectArgs& args) {
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
      app.add_subcommand("inspect", "Show what a store on disk holds, and what it costs");
  command->footer(kHelp);
  command->add_option("dir", args->dir, "a store, or a directory of stores")
      ->required()
      ->type_name("");
  command->add_flag("--partitions", args->partitions, "each partition too");
  command->add_flag("--json", args->json, "as JSON");
  command->callback([args] { RunInspect(*args); });
}

}  // namespace terrace
