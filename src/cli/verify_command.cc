// terrace verify
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/snapshot.h"
#include "cli/commands.h"
#include "cli/store_paths.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a snapshot, a snapshots directory (the latest one in it; --all: each), a store, or a
directory of stores, one a table. Nothing is changed.

Of a snapshot every file is read: its size and hash, and of each table's store all that is below.
Of a store every page that the last commit names is read: its checksum, its place, the order of its
rows, fences, filters and counts are checked. A store that is being written to may lose files
meanwhile: verify a snapshot of it instead.

Each problem is a line with the file, the page and what is wrong. Damage cannot be repaired from
within: restore the files that are named from a copy, or use another snapshot.

Exit codes: 0 all is well, 1 something is damaged or cannot be read, 2 wrong usage.

Examples:
  terrace verify snapshots
  terrace verify snapshots --all
  terrace verify model/main
  terrace verify model && cp -a model /backup/)";

constexpr size_t kMaxLines = 100;  // of one store

struct VerifyArgs {
  std::string dir;
  bool all = false;
};

// Of one file, store or snapshot after another.
struct Totals {
  size_t checked = 0, damaged = 0, problems = 0;

  void Add(const std::vector<std::string>& found) {
    const size_t lines = std::min(found.size(), kMaxLines);
    for (size_t i = 0; i < lines; ++i) fmt::print("{}\n", found[i]);
    if (lines < found.size()) fmt::print("... and {} more\n", found.size() - lines);
    ++checked;
    damaged += found.empty() ? 0 : 1;
    problems += found.size();
  }
};

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

void VerifyOneStore(const StorePath& store, Totals* totals) {
  const double start = NowSeconds();
  const VerifyReport report = Verify(store);
  const double seconds = std::max(NowSeconds() - start, 1e-6);
  totals->Add(report.problems);
  fmt::print("{}: {}: {} files, {} pages, {} rows, {} in {}, {:.0f} MB/s\n", store.name,
             report.problems.empty() ? "clean" : "damaged", report.files, WithCommas(report.pages),
             WithCommas(report.rows), ShortBytes(static_cast<double>(report.bytes)),
             ShortSeconds(seconds), static_cast<double>(report.bytes) / seconds / 1e6);
}

// The files but for those of stores.
void VerifyFiles(const Snapshot& snapshot, const std::string& name, Totals* totals) {
  std::vector<std::string> problems;
  ProgressLine line;
  int64_t bytes = 0;
  for (const SnapshotFile& file : snapshot.info().files) {
    try {
      snapshot.ReadFile(file.name, [&](std::string_view piece) {
        bytes += static_cast<int64_t>(piece.size());
        if (line.Due())
          line.Show(fmt::format("verify {}  {}", name, ShortBytes(static_cast<double>(bytes))));
      });
    } catch (const Error& e) {
      problems.emplace_back(e.what());
    }
  }
  line.Clear();
  totals->Add(problems);
  fmt::print("{}: {}: {} files beside the tables, {}\n", name,
             problems.empty() ? "clean" : "damaged", snapshot.info().files.size(),
             ShortBytes(static_cast<double>(bytes)));
}

void VerifySnapshot(const std::string& path, Totals* totals) {
  std::unique_ptr<Snapshot> snapshot;
  try {
    snapshot = Snapshot::Open(PosixEnv(), path);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kUsage) throw;
    return totals->Add({e.what()});
  }
  const std::string name = snapshot->path().substr(snapshot->path().rfind('/') + 1);
  VerifyFiles(*snapshot, name, totals);
  for (const SnapshotTable& table : snapshot->info().tables) {
    StorePath store{name + " " + table.name, ""};
    try {
      store.path = snapshot->TablePath(table.name);
    } catch (const Error& e) {
      totals->Add({e.what()});
      fmt::print("{}: damaged\n", store.name);
      continue;
    }
    VerifyOneStore(store, totals);
    if (!table.settled)
      fmt::print("{}: a change of its rows was cut off: repeat the command that made it\n",
                 store.name);
  }
}

void RunVerify(const VerifyArgs& args) {
  Env& env = PosixEnv();
  Totals totals;
  const StoredKind kind = KindOfStored(env, args.dir);
  const bool snapshots = kind == StoredKind::kSnapshot || kind == StoredKind::kSnapshots;
  if (args.all && kind != StoredKind::kSnapshots)
    throw Error(ErrorCode::kUsage, args.dir + ": --all is about a snapshots directory");
  if (args.all) {
    for (const SnapshotEntry& entry : ListSnapshots(env, args.dir))
      VerifySnapshot(entry.path, &totals);
  } else if (snapshots) {
    VerifySnapshot(args.dir, &totals);
  } else {
    for (const StorePath& store : FindStores(env, args.dir)) VerifyOneStore(store, &totals);
  }
  if (totals.damaged == 0) return;
  if (snapshots)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: is damaged, problems: {}; restore the files named above from a "
                            "copy, or use another snapshot (terrace snapshot list)",
                            args.dir, totals.problems));
  throw Error(ErrorCode::kCorruption,
              fmt::format("{}: {} of {} stores {} damaged, problems: {}; restore the files named "
                          "above from a snapshot",
                          args.dir, totals.damaged, totals.checked,
                          totals.damaged == 1 ? "is" : "are", totals.problems));
}

}  // namespace

void AddVerifyCommand(CLI::App& app) {
  auto args = std::make_shared<VerifyArgs>();
  CLI::App* command = app.add_subcommand("verify", "Check every byte of a snapshot or a store");
  command->footer(kHelp);
  command->add_option("dir", args->dir, "a snapshot, a store, or a directory of them")
      ->required()
      ->type_name("");
  command->add_flag("--all", args->all, "each snapshot of the directory, not only the latest");
  command->callback([args] { RunVerify(*args); });
}

}  // namespace terrace
