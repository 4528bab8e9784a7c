// terrace snapshot
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/snapshot.h"
#include "cli/commands.h"
#include "cli/snapshot_diff.h"
#include "cli/snapshot_sizes.h"

namespace terrace {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHelp =
    R"(A snapshots directory (snapshot.dir of a run) holds a directory a snapshot, named by its batch.
A snapshot may be copied (cp -r, rsync) and opened anywhere; it needs nothing outside of it.

  terrace snapshot list DIR          what there is, and what it takes
  terrace snapshot diff A B          what changed from A to B
  terrace inspect SNAPSHOT           what it holds
  terrace verify SNAPSHOT            whether all of it is whole
  terrace export SNAPSHOT --table NAME --to rows.npy
  terrace rows find|delete SNAPSHOT --keys FILE

Where a SNAPSHOT is asked for, a snapshots directory stands for the latest one in it.)";

constexpr const char* kListHelp =
    R"(One line a snapshot, oldest first. Snapshots share files with each other by hard links:

  rows    of all tables; a range where logs are not merged
  own     bytes of files with no other name: what removing the snapshot frees
  shared  bytes of files that other snapshots, or the run that goes on, have as well

The last line counts each file once. A snapshot that cannot be read is named; then the exit code is 1.

Examples:
  terrace snapshot list snapshots
  terrace snapshot list snapshots --json | jq '.snapshots[-1].batch')";

constexpr const char* kDiffHelp =
    R"(A and B are snapshots, or snapshots directories (the latest one in it), of the same run or not.
Every row of both is read once.

  added, removed   rows of keys that only B, only A has
  changed          rows that differ in any byte: weights, optimizer state or statistics
  mean, max        of the changed rows: the norm of the difference of their weights

Examples:
  terrace snapshot diff snapshots/000000001000 snapshots/000000002000
  terrace snapshot diff snapshots/000000001000 snapshots --keys 5)";

std::string Bytes(int64_t bytes) { return ShortBytes(static_cast<double>(bytes)); }

struct ListArgs {
  std::string dir;
  bool json = false;
};

struct ListLine {
  SnapshotEntry entry;
  SnapshotInfo info;
  SnapshotSizes sizes;
  std::string problem;

  int64_t rows(int64_t SnapshotTable::*member) const {
    int64_t sum = 0;
    for (const SnapshotTable& table : info.tables) sum += table.*member;
    return sum;
  }
};

std::vector<ListLine> ReadList(Env& env, const std::string& dir, int64_t* all_bytes) {
  std::vector<ListLine> lines;
  SeenFiles seen;
  for (const SnapshotEntry& entry : ListSnapshots(env, dir)) {
    ListLine& line = lines.emplace_back();
    line.entry = entry;
    try {
      const std::unique_ptr<Snapshot> snapshot = Snapshot::Open(env, entry.path);
      line.info = snapshot->info();
      line.sizes = MeasureSnapshot(env, entry.path, &seen, all_bytes);
    } catch (const Error& e) {
      line.problem = e.what();
    }
  }
  return lines;
}

void PrintList(const std::vector<ListLine>& lines, int64_t all_bytes) {
  TextTable table({"batch", "created", "epoch", "examples", "rows", "own", "shared"});
  for (const ListLine& line : lines) {
    const int64_t low = line.rows(&SnapshotTable::rows_min);
    const int64_t high = line.rows(&SnapshotTable::rows_max);
    if (line.problem.empty())
      table.AddRow({WithCommas(line.entry.batch), line.info.created, WithCommas(line.info.epoch),
                    WithCommas(line.info.examples),
                    low == high ? WithCommas(low) : WithCommas(low) + " - " + WithCommas(high),
                    Bytes(line.sizes.own_bytes), Bytes(line.sizes.shared_bytes)});
    else
      table.AddRow({WithCommas(line.entry.batch), "cannot be read", "-", "-", "-", "-", "-"});
  }
  fmt::print("{}\n{} snapshots, {} on disk\n", table.Render(), lines.size(), Bytes(all_bytes));
}

Json ListJson(const std::vector<ListLine>& lines, int64_t all_bytes) {
  Json json = {{"snapshots", Json::array()}, {"bytes", all_bytes}};
  for (const ListLine& line : lines) {
    Json one = {{"batch", line.entry.batch}, {"path", line.entry.path}};
    if (!line.problem.empty()) {
      one["problem"] = line.problem;
    } else {
      one["created"] = line.info.created;
      one["epoch"] = line.info.epoch;
      one["examples"] = line.info.examples;
      one["rows_min"] = line.rows(&SnapshotTable::rows_min);
      one["rows_max"] = line.rows(&SnapshotTable::rows_max);
      one["own_bytes"] = line.sizes.own_bytes;
      one["shared_bytes"] = line.sizes.shared_bytes;
    }
    json["snapshots"].push_back(one);
  }
  return json;
}

void RunList(const ListArgs& args) {
  Env& env = PosixEnv();
  const StoredKind kind = KindOfStored(env, args.dir);
  if (kind == StoredKind::kSnapshot)
    throw Error(ErrorCode::kUsage,
                args.dir +
                    ": is one snapshot: name the directory that it is in, or look into it "
                    "with `terrace inspect`");
  if (kind != StoredKind::kSnapshots)
    throw Error(ErrorCode::kUsage, args.dir + ": holds no complete snapshot; check the path");
  int64_t all_bytes = 0;
  const std::vector<ListLine> lines = ReadList(env, args.dir, &all_bytes);
  if (args.json)
    fmt::print("{}\n",
               ListJson(lines, all_bytes).dump(2, ' ', false, Json::error_handler_t::replace));
  else
    PrintList(lines, all_bytes);
  std::string problems;
  for (const ListLine& line : lines)
    if (!line.problem.empty()) problems += "\n  " + line.problem;
  if (!problems.empty())
    throw Error(ErrorCode::kCorruption, args.dir + ": not all snapshots can be read:" + problems);
}

struct DiffArgs {
  std::string before, after;
  size_t keys = 0;
  bool json = false;
};

std::string KeyList(const std::vector<uint64_t>& keys) {
  std::string text;
  for (const uint64_t key : keys) text += fmt::format(" {:#x}", key);
  return text;
}

void PrintDiff(const SnapshotDiff& diff) {
  TextTable tables({"table", "added", "removed", "changed", "same", "mean", "max"});
  std::string keys;
  for (const TableDiff& t : diff.tables) {
    if (!t.before || !t.after) {
      const char* const where = t.before ? "only in A" : "only in B";
      tables.AddRow({t.name, where, "-", "-", "-", "-", "-"});
      continue;
    }
    const RowsDiff& r = t.rows;
    const bool measured = t.same_layout && r.changed > 0;
    tables.AddRow({t.name, WithCommas(r.added), WithCommas(r.removed), WithCommas(r.changed),
                   WithCommas(r.same), measured ? fmt::format("{:.4g}", t.mean_change) : "-",
                   measured ? fmt::format("{:.4g}", t.max_change) : "-"});
    const auto list = [&](const char* kind, const std::vector<uint64_t>& some) {
      if (!some.empty()) keys += fmt::format("{} {}:{}\n", t.name, kind, KeyList(some));
    };
    list("added", r.added_keys);
    list("removed", r.removed_keys);
    list("changed", r.changed_keys);
  }
  TextTable dense({"dense block", "norm in A", "in B", "of the difference"});
  for (const DenseDiff& d : diff.dense)
    dense.AddRow({d.name, fmt::format("{:.6g}", d.before), fmt::format("{:.6g}", d.after),
                  d.comparable ? fmt::format("{:.6g}", d.difference) : "other shape"});
  fmt::print("{}", tables.Render());
  if (!keys.empty()) fmt::print("\n{}", keys);
  if (!diff.dense.empty()) fmt::print("\n{}", dense.Render());
}

Json DiffJson(const SnapshotDiff& diff) {
  Json json = {{"tables", Json::array()}, {"dense", Json::array()}};
  for (const TableDiff& t : diff.tables) {
    Json one = {{"table", t.name}, {"in_a", t.before}, {"in_b", t.after}};
    if (t.before && t.after) {
      one["added"] = t.rows.added;
      one["removed"] = t.rows.removed;
      one["changed"] = t.rows.changed;
      one["same"] = t.rows.same;
      one["mean_change"] = t.mean_change;
      one["max_change"] = t.max_change;
      one["added_keys"] = t.rows.added_keys;
      one["removed_keys"] = t.rows.removed_keys;
      one["changed_keys"] = t.rows.changed_keys;
    }
    json["tables"].push_back(one);
  }
  for (const DenseDiff& d : diff.dense) {
    Json one = {{"name", d.name}, {"norm_a", d.before}, {"norm_b", d.after}};
    if (d.comparable) one["norm_difference"] = d.difference;
    json["dense"].push_back(one);
  }
  return json;
}

void RunDiff(const DiffArgs& args) {
  const SnapshotView before(PosixEnv(), args.before), after(PosixEnv(), args.after);
  ProgressLine line;
  DiffOptions options;
  options.keys = args.keys;
  options.progress = [&](int64_t rows) {
    if (line.Due()) line.Show(fmt::format("compare  {} rows", WithCommas(rows)));
  };
  const SnapshotDiff diff = DiffSnapshots(before, after, options);
  line.Clear();
  if (args.json) {
    fmt::print("{}\n", DiffJson(diff).dump(2, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("A {}  batch {}\nB {}  batch {}\n\n", before.snapshot().path(),
             WithCommas(before.info().batch), after.snapshot().path(),
             WithCommas(after.info().batch));
  PrintDiff(diff);
}

void AddList(CLI::App* command) {
  auto args = std::make_shared<ListArgs>();
  CLI::App* list = command->add_subcommand("list", "Show the snapshots of a directory");
  list->footer(kListHelp);
  list->add_option("dir", args->dir, "a snapshots directory")->required()->type_name("");
  list->add_flag("--json", args->json, "as JSON");
  list->callback([args] { RunList(*args); });
}

void AddDiff(CLI::App* command) {
  auto args = std::make_shared<DiffArgs>();
  CLI::App* diff = command->add_subcommand("diff", "Show what changed from one to another");
  diff->footer(kDiffHelp);
  diff->add_option("a", args->before, "the snapshot before")->required()->type_name("");
  diff->add_option("b", args->after, "the snapshot after")->required()->type_name("");
  diff->add_option("--keys", args->keys, "print so many keys of each kind")->type_name("N");
  diff->add_flag("--json", args->json, "as JSON");
  diff->callback([args] { RunDiff(*args); });
}

}  // namespace

void AddSnapshotCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("snapshot", "List and compare snapshots of a run");
  command->footer(kHelp);
  command->require_subcommand(1);
  AddList(command);
  AddDiff(command);
}

}  // namespace terrace
