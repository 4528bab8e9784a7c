// terrace verify
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/store_paths.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a store (it has a MANIFEST), or a directory of stores, one a table. Every page that the last
commit names is read: its checksum, its place, the order of its rows, fences, filters and counts are
checked. Nothing is changed. A store that is being written to may lose files meanwhile: verify a
snapshot of it instead.

Each problem is a line with the file, the page and what is wrong. Damage cannot be repaired from
within: restore the files that are named from a snapshot, or train again from the last one.

Exit codes: 0 all is well, 1 something is damaged or cannot be read, 2 wrong usage.

Examples:
  terrace verify model/main
  terrace verify model && cp -a model /backup/)";

constexpr size_t kMaxLines = 100;  // of one store

VerifyReport Verify(const StorePath& store) {
  ProgressLine line;
  const double start = NowSeconds();
  try {
    return VerifyStore(PosixEnv(), store.path, [&](int64_t done, int64_t all) {
      if (!line.Due()) return;
      const double bytes = static_cast<double>(done), seconds = NowSeconds() - start;
      line.Show(fmt::format("verify {}  {} of {}  {}/s", store.name, ShortBytes(bytes),
                            ShortBytes(static_cast<double>(all)), ShortBytes(bytes / seconds)));
    });
  } catch (const Error& e) {  // of the manifest: there may be other stores
    VerifyReport report;
    report.problems.push_back(e.what());
    return report;
  }
}

void RunVerify(const std::string& dir) {
  size_t problems = 0, damaged = 0;
  const std::vector<StorePath> stores = FindStores(PosixEnv(), dir);
  for (const StorePath& store : stores) {
    const double start = NowSeconds();
    const VerifyReport report = Verify(store);
    const double seconds = std::max(NowSeconds() - start, 1e-6);
    const size_t lines = std::min(report.problems.size(), kMaxLines);
    for (size_t i = 0; i < lines; ++i) fmt::print("{}\n", report.problems[i]);
    if (lines < report.problems.size())
      fmt::print("... and {} more\n", report.problems.size() - lines);
    fmt::print("{}: {}: {} files, {} pages, {} rows, {} in {}, {:.0f} MB/s\n", store.name,
               report.problems.empty() ? "clean" : "damaged", report.files,
               WithCommas(report.pages), WithCommas(report.rows),
               ShortBytes(static_cast<double>(report.bytes)), ShortSeconds(seconds),
               static_cast<double>(report.bytes) / seconds / 1e6);
    problems += report.problems.size();
    damaged += report.problems.empty() ? 0 : 1;
  }
  if (damaged > 0)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: {} of {} stores {} damaged, problems: {}; restore the files named "
                            "above from a snapshot",
                            dir, damaged, stores.size(), damaged == 1 ? "is" : "are", problems));
}

}  // namespace

void AddVerifyCommand(CLI::App& app) {
  auto dir = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("verify", "Check every page of a store on disk");
  command->footer(kHelp);
  command->add_option("dir", *dir, "a store, or a directory of stores")->required()->type_name("");
  command->callback([dir] { RunVerify(*dir); });
}

}  // namespace terrace
