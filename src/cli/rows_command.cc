// terrace rows
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/row_keys.h"
#include "cli/row_traces.h"
#include "cli/store_paths.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(DIR is a store (it has a MANIFEST), or a directory of stores, one a table; FILE has a key a line.
A key is a number, 42 or 0x2a; with --slot NAME lines are values of that slot as they stand in the
data, and with --integers its ids. "-" reads standard input.

  find    tells which keys have a row, and reads every byte of every file in DIR for traces of the
          keys: superseded copies are found too. Exit code 0 if nothing was found, 1 if something was.
  delete  removes the rows, rewrites the files without them and commits. Copies of the store,
          snapshots among them, are stores of their own: delete there as well.

Examples:
  terrace rows delete model --keys users.txt --slot user_id
  terrace rows find model --keys users.txt --slot user_id && echo nothing is left)";

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

// A budget is a limit: what is used follows from the store.
DiskOptions WithoutLimit() {
  DiskOptions options;
  options.memory_bytes = size_t{1} << 40;
  options.batch_keys = 1 << 20;
  options.readers = 1;
  return options;
}

std::vector<uint8_t> Find(DiskStore* store, const std::vector<uint64_t>& keys) {
  std::vector<uint8_t> found(keys.size());
  std::vector<std::byte> rows(keys.size() * store->row_bytes());
  store->Get(keys, rows.data(), found.data());
  return found;
}

void RunFind(const RowsOptions& options) {
  const std::vector<NamedKey> named = ReadRowKeys(PosixEnv(), options.keys);
  const std::vector<uint64_t> keys = KeysOf(named);
  size_t rows = 0, traces = 0;
  for (const StorePath& store : FindStores(PosixEnv(), options.dir)) {
    const auto found = Find(DiskStore::OpenReadOnly(store.path, WithoutLimit()).get(), keys);
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
    rows += here;
    traces += report.traces.size();
  }
  if (rows + traces > 0)
    throw Error(ErrorCode::kData,
                fmt::format("{}: {} rows and {} traces of these keys are there; `terrace rows "
                            "delete` removes them",
                            options.dir, rows, traces));
}

void RunDelete(const RowsOptions& options) {
  const std::vector<uint64_t> keys = KeysOf(ReadRowKeys(PosixEnv(), options.keys));
  size_t deleted = 0;
  for (const StorePath& path : FindStores(PosixEnv(), options.dir)) {
    const std::unique_ptr<DiskStore> store = DiskStore::Open(path.path, WithoutLimit());
    size_t here = 0;
    for (uint8_t found : Find(store.get(), keys)) here += found;
    store->Delete(keys);
    // Also where no row was found: superseded copies may be in the logs.
    store->Merge();
    store->Commit();
    fmt::print("{}: {} of {} keys had a row; deleted, and the files written anew without them\n",
               path.name, here, keys.size());
    deleted += here;
  }
  fmt::print("{} rows deleted\n", deleted);
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
    sub->add_option("dir", options->dir, "a store, or a directory of stores")
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
