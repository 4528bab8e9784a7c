// A snapshots directory as a run would leave it, with numbers that tests know.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/dense_part.h"
#include "checkpoint/snapshot.h"
#include "data/features.h"
#include "device/codec.h"
#include "tier/disk_store.h"
#include "tier/tiered_table.h"
#include "train/table_schemas.h"

namespace terrace {

// Two tables: `users` counts uses and has state, `ads` is packed.
inline constexpr const char* kTestConfig = R"(seed = 3
[data]
format = "csv"
train = "clicks.csv"
slots = [{name = "user", table = "users"}, {name = "ad", table = "ads"}]
[tables.users]
dim = 3
optimizer = "adagrad"
[tables.users.life]
statistics = true
[tables.ads]
dim = 3
optimizer = "sgd"
weight_codec = "int8"
rounding = "nearest"
[model]
kind = "fm"
)";

// The rows of a table by scratch store; each snapshot links to its files.
class TestTable {
 public:
  TestTable(const std::string& dir, const TableSchema& schema) : schema_(schema) {
    DiskOptions options;
    options.row_bytes = TieredTable::DiskRowBytes(schema);
    options.page_bytes = 512;
    options.partitions = 2;
    options.memory_bytes = 8 << 20;
    options.background = false;
    options.durability = Durability::kScratch;
    store_ = DiskStore::Open(dir, options);
  }

  // Weights {norm, 0, 0} and linear 0; state 0.5; `show` of uses, a quarter of them clicks.
  void Put(uint64_t key, float norm, float show) {
    const RowLayout& layout = schema_.layout;
    std::vector<float> numbers(static_cast<size_t>(layout.format.numbers), 0.0f);
    std::fill(numbers.begin() + layout.weights, numbers.end(), 0.5f);
    numbers[0] = norm;
    std::vector<std::byte> row(store_->row_bytes());
    Stream stream(nullptr);
    const uint32_t position = 0;
    (void)EncodeRows(stream, layout.format, {row.data(), 0, &position, 1}, RowParts::kAll,
                     numbers.data(), nullptr);
    if (layout.counts) RowStats{show, show / 4, 7}.Write(row.data() + layout.stats_offset());
    store_->Put({&key, 1}, row.data());
  }
  void Delete(uint64_t key) { store_->Delete({&key, 1}); }
  void Merge() { store_->Merge(); }

  void AddTo(SnapshotWriter* writer) {
    store_->Snapshot(writer->TablePath(schema_.name));
    const PartitionStats total = store_->stats().total;
    SnapshotTable table;
    table.name = schema_.name;
    table.row_bytes = static_cast<int64_t>(store_->row_bytes());
    table.schema = "dim 3, linear";
    table.rows_min = total.rows_min();
    table.rows_max = total.rows_max();
    writer->AddTable(table);
  }

 private:
  const TableSchema schema_;
  std::unique_ptr<DiskStore> store_;
};

// Snapshots of batches 1000 and 2000 in `dir`/snapshots; `dir`/live is removed by the caller. Key k
// of 1..100 has norm k and show 1000 - k. From the first to the second snapshot, in `users`, keys
// 1 and 2 go, 3 to 5 change by a norm of 0.5, 101 to 104 come; `ads` stays.
inline void WriteTestSnapshots(const std::string& dir) {
  Env& env = PosixEnv();
  const RunConfig config = RunConfig::Read(ConfigFile::Parse(kTestConfig, "config.toml"));
  const std::vector<TableSchema> schemas = TableSchemas(config, FeatureSpec::Resolve(config.data));
  TestTable ads(dir + "/live/ads", schemas.at(0)), users(dir + "/live/users", schemas.at(1));
  for (uint64_t key = 1; key <= 100; ++key) {
    ads.Put(key, static_cast<float>(key), 0);
    users.Put(key, static_cast<float>(key), static_cast<float>(1000 - key));
  }
  ads.Merge();
  users.Merge();
  const std::string snapshots = dir + "/snapshots";
  const auto lock = LockSnapshots(env, snapshots);
  std::vector<float> params = {3, 4, 0, 0, 2, 1};
  const auto write = [&](int64_t batch) {
    SnapshotWriter writer(env, snapshots, batch);
    writer.AddFile("config.toml", kTestConfig);
    AddDense(&writer, params, std::vector<float>(params.size(), 0.25f));
    ads.AddTo(&writer);
    users.AddTo(&writer);
    SnapshotInfo info;
    info.examples = batch * 64;
    info.epoch = batch / 1500;
    info.created = "2026-01-31T12:00:0" + std::to_string(batch / 1000) + "Z";
    info.program = "terrace 0.1.0";
    info.dense = {{"deep.0.weight", {2, 2}}, {"deep.0.bias", {2}}};
    if (batch > 1000) info.lineage = {"resumed from snapshots/000000001000"};
    writer.Commit(info);
  };
  write(1000);
  for (uint64_t key = 1; key <= 2; ++key) users.Delete(key);
  for (uint64_t key = 3; key <= 5; ++key)
    users.Put(key, static_cast<float>(key) + 0.5f, static_cast<float>(1000 - key));
  for (uint64_t key = 101; key <= 104; ++key) users.Put(key, 1, 1);
  params[4] = 5;
  write(2000);
}

}  // namespace terrace
