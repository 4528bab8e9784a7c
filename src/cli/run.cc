// The command line's entry, and the one place where errors become messages and exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>

#include "base/error.h"
#include "cli/commands.h"

namespace terrace {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

constexpr const char* kHelp =
    R"(Terrace trains click-through-rate models whose embedding tables are larger than memory.

Start with:
  terrace data gen clicks.tsv --examples 100000       make some data
  terrace data info clicks.tsv                        look at it
  terrace train CONFIG.toml                           train and evaluate
  terrace eval SNAPSHOT                               evaluate what was trained
  terrace predict SNAPSHOT clicks.tsv                 score examples
  terrace snapshot list|diff                          what a run has saved, what changed
  terrace inspect DIR, terrace verify DIR             look into a snapshot or a store, check it
  terrace export SNAPSHOT --table NAME --to rows.npy  rows as numbers
  terrace rows find|delete DIR --keys FILE            rows of certain keys
  terrace bench policies                              which rows should stay in memory

Exit codes: 0 done, 1 failed at run time, 2 wrong usage or config.)";

int Report(const Error& error) {
  fmt::print(stderr, "terrace: {}\n", error.what());
  return error.code() == ErrorCode::kUsage ? kWrongUsage : kFailed;
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  CLI::App app(kHelp, "terrace");
  app.set_version_flag("--version", "terrace " TERRACE_VERSION);
  app.require_subcommand(1);
  AddTrainCommand(app);
  AddEvalCommand(app);
  AddPredictCommand(app);
  AddDataCommand(app);
  AddInspectCommand(app);
  AddVerifyCommand(app);
  AddSnapshotCommand(app);
  AddExportCommand(app);
  AddRowsCommand(app);
  AddBenchCommand(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kWrongUsage;
  } catch (const Error& e) {
    return Report(e);
  } catch (const std::bad_alloc&) {
    return Report(
        Error(ErrorCode::kIo, "out of memory; use smaller tables or a smaller train.batch"));
  }
  return 0;
}

}  // namespace terrace
