// terrace rows
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/snapshot.h"
#include "cli/commands.h"
#include "cli/row_keys.h"
#include "cli/row_traces.h"
#include "cli/snapshot_view.h"
#include "cli/store_paths.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a snapshot, a snapshots directory (every snapshot in it), a store, or a directory of stores,
one a table; FILE has a key a line. A key is a number, 42 or 0x2a; with --slot NAME lines are values
of that slot as they stand in the data, and with --integers its ids. "-" reads standard input.

  find    tells which keys have a row, and reads every byte of every file of the tables for traces of
          the keys: superseded copies are found too. Exit code 0 if nothing was found, 1 if something
          was.
  delete  removes the rows, rewrites the files without them and commits; a snapshot gets a line about
          it in its lineage. Other snapshots, copies, and a run that goes on hold the rows as before:
          stop the run, name the snapshots directory, and resume from there.

Examples:
  terrace rows delete snapshots --keys users.txt --slot user_id
  terrace rows find snapshots --keys users.txt --slot user_id && echo nothing is left)";

constexpr size_t kMaxLines = 100;

struct RowsOptions {
  std::string dir;
  RowKeysOptions keys;
};

std::vector<uint64_t> KeysOf(const std::vector<NamedKey>& named) {
  std::vector<uint64_t> keys;
  for (const NamedKey& one : named) keys.push_back(one.key);
  return keys;
}

std::vector<uint8_t> Find(DiskStore* store, const std::vector<uint64_t>& keys) {
  std::vector<uint8_t> found(keys.size());
  std::vector<std::byte> rows(keys.size() * store->row_bytes());
  store->Get(keys, rows.data(), found.data());
  return found;
}

struct Found {
  size_t rows = 0, traces = 0;
};

void FindInStore(const StorePath& store, const std::vector<NamedKey>& named, Found* sum) {
  const std::vector<uint64_t> keys = KeysOf(named);
  const auto found =
      Find(DiskStore::OpenReadOnly(store.path, WithoutMemoryLimit(&PosixEnv())).get(), keys);
  size_t here = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (found[i] == 0) continue;
    if (++here <= kMaxLines) fmt::print("{}: {} has a row\n", store.name, named[i].name);
  }
  ProgressLine line;
  const TraceReport report = FindTraces(PosixEnv(), store.path, keys, [&](int64_t bytes) {
    if (line.Due())
      line.Show(fmt::format("search {}  {}", store.name, ShortBytes(static_cast<double>(bytes))));
  });
  line.Clear();
  for (size_t i = 0; i < std::min(report.traces.size(), kMaxLines); ++i)
    fmt::print("{}: {} stands in {} at byte {}\n", store.name, named[report.traces[i].key].name,
               report.traces[i].file, WithCommas(static_cast<int64_t>(report.traces[i].offset)));
  fmt::print("{}: {} of {} keys have a row; {} traces in {} files, {}\n", store.name, here,
             keys.size(), report.traces.size(), report.files,
             ShortBytes(static_cast<double>(report.bytes)));
  sum->rows += here;
  sum->traces += report.traces.size();
}

std::string LastPart(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Paths of the snapshots that are meant; none if `dir` is about stores.
std::vector<std::string> SnapshotsOf(const std::string& dir) {
  std::vector<std::string> paths;
  const StoredKind kind = KindOfStored(PosixEnv(), dir);
  if (kind == StoredKind::kSnapshot) paths.push_back(dir);
  if (kind == StoredKind::kSnapshots)
    for (const SnapshotEntry& entry : ListSnapshots(PosixEnv(), dir)) paths.push_back(entry.path);
  return paths;
}

void RunFind(const RowsOptions& options) {
  const std::vector<NamedKey> named = ReadRowKeys(PosixEnv(), options.keys);
  const std::vector<std::string> snapshots = SnapshotsOf(options.dir);
  Found found;
  for (const std::string& path : snapshots) {
    const std::unique_ptr<Snapshot> snapshot = Snapshot::Open(PosixEnv(), path);
    for (const SnapshotTable& table : snapshot->info().tables)
      FindInStore({LastPart(snapshot->path()) + " " + table.name, snapshot->TablePath(table.name)},
                  named, &found);
  }
  if (snapshots.empty())
    for (const StorePath& store : FindStores(PosixEnv(), options.dir))
      FindInStore(store, named, &found);
  if (found.rows + found.traces > 0)
    throw Error(ErrorCode::kData,
                fmt::format("{}: {} rows and {} traces of these keys are there; `terrace rows "
                            "delete` removes them",
                            options.dir, found.rows, found.traces));
}

struct Deleted {
  size_t rows = 0;
  PartitionStats left;
};

Deleted DeleteInStore(const StorePath& path, const std::vector<uint64_t>& keys) {
  const std::unique_ptr<DiskStore> store =
      DiskStore::Open(path.path, WithoutMemoryLimit(&PosixEnv()));
  Deleted deleted;
  for (uint8_t found : Find(store.get(), keys)) deleted.rows += found;
  store->Delete(keys);
  // Also where no row was found: superseded copies may be in the logs.
  store->Merge();
  store->Commit();
  fmt::print("{}: {} of {} keys had a row; deleted, and the files written anew without them\n",
             path.name, deleted.rows, keys.size());
  deleted.left = store->stats().total;
  return deleted;
}

size_t DeleteInSnapshot(const std::string& path, const std::vector<uint64_t>& keys) {
  SnapshotEditor editor(PosixEnv(), path);
  std::vector<std::string> tables;
  for (const SnapshotTable& table : editor.info().tables) tables.push_back(table.name);
  editor.AddLineage(fmt::format("{} rows of {} keys deleted", UtcNow(), keys.size()));
  size_t rows = 0;
  for (const std::string& table : tables) {
    const std::string name = LastPart(path) + " " + table;
    const Deleted deleted = DeleteInStore({name, editor.BeginTable(table)}, keys);
    editor.EndTable(table, deleted.left.rows_min(), deleted.left.rows_max());
    rows += deleted.rows;
  }
  return rows;
}

// Of one snapshot among others.
void TellOfOthers(const std::string& snapshot) {
  const size_t slash = snapshot.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : snapshot.substr(0, slash);
  if (KindOfStored(PosixEnv(), parent) != StoredKind::kSnapshots) return;
  const size_t others = ListSnapshots(PosixEnv(), parent).size() - 1;
  if (others > 0)
    fmt::print(
        "the other {} in {} hold{} the rows as before: `terrace rows delete {}` goes "
        "through all of them\n",
        others == 1 ? "snapshot" : fmt::format("{} snapshots", others), parent,
        others == 1 ? "s" : "", parent);
}

void RunDelete(const RowsOptions& options) {
  const std::vector<uint64_t> keys = KeysOf(ReadRowKeys(PosixEnv(), options.keys));
  std::string dir = options.dir;
  while (dir.size() > 1 && dir.ends_with('/')) dir.pop_back();
  const StoredKind kind = KindOfStored(PosixEnv(), dir);
  // A run would write the rows again.
  std::unique_ptr<FileLock> lock;
  if (kind == StoredKind::kSnapshots) lock = LockSnapshots(PosixEnv(), dir);
  size_t deleted = 0;
  const std::vector<std::string> snapshots = SnapshotsOf(dir);
  for (const std::string& path : snapshots) deleted += DeleteInSnapshot(path, keys);
  if (snapshots.empty())
    for (const StorePath& path : FindStores(PosixEnv(), dir))
      deleted += DeleteInStore(path, keys).rows;
  fmt::print("{} rows deleted\n", deleted);
  if (kind == StoredKind::kSnapshot) TellOfOthers(dir);
}

}  // namespace

void AddRowsCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rows", "Find or delete rows by key");
  command->footer(kHelp);
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, void (*run)(const RowsOptions&)) {
    auto options = std::make_shared<RowsOptions>();
    CLI::App* sub = command->add_subcommand(name, what);
    sub->footer(kHelp);
    sub->add_option("dir", options->dir, "a snapshot, a store, or a directory of them")
        ->required()
        ->type_name("");
    sub->add_option("--keys", options->keys.path, "file with a key a line; -: standard input")
        ->required()
        ->type_name("FILE");
    sub->add_option("--slot", options->keys.slot, "lines are values of this slot")
        ->type_name("NAME");
    sub->add_flag("--integers", options->keys.integers, "the slot's values are integer ids");
    sub->callback([options, run] { run(*options); });
  };
  add("find", "Tell which keys have a row, and search all files for traces of them", RunFind);
  add("delete", "Delete the rows of keys, from the files too", RunDelete);
}

}  // namespace terrace
