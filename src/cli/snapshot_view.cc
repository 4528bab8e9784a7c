#include "cli/snapshot_view.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/features.h"
#include "device/codec.h"
#include "tier/tiered_table.h"
#include "train/table_schemas.h"

namespace terrace {
namespace {

constexpr const char* kConfigFile = "config.toml";

std::vector<TableSchema> ReadSchemas(const Snapshot& snapshot) {
  const std::string name = snapshot.path() + "/" + kConfigFile;
  const std::string text = snapshot.ReadFile(kConfigFile);
  try {
    const RunConfig config = RunConfig::Read(ConfigFile::Parse(text, name));
    return TableSchemas(config, FeatureSpec::Resolve(config.data));
  } catch (const Error& e) {  // its hash is right: it was written so, perhaps by another version
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}\nthe config in a snapshot is read as it was written: use the "
                            "version of the program that wrote it ({})",
                            e.what(), snapshot.info().program));
  }
}

}  // namespace

DiskOptions WithoutMemoryLimit(Env* env) {
  DiskOptions options;
  options.memory_bytes = size_t{1} << 40;
  options.batch_keys = 1 << 20;
  options.readers = 1;
  options.env = env;
  return options;
}

SnapshotView::SnapshotView(Env& env, const std::string& path)
    : snapshot_(Snapshot::Open(env, path)), schemas_(ReadSchemas(*snapshot_)) {}

const TableSchema& SnapshotView::Schema(const std::string& name) const {
  const SnapshotTable* const table = info().FindTable(name);
  for (const TableSchema& schema : schemas_) {
    if (schema.name != name || table == nullptr) continue;
    const size_t bytes = TieredTable::DiskRowBytes(schema);
    if (static_cast<size_t>(table->row_bytes) == bytes) return schema;
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: rows of table {} have {} bytes, but by the config {}; use another "
                            "snapshot (terrace snapshot list)",
                            snapshot_->path(), name, table->row_bytes, bytes));
  }
  throw Error(ErrorCode::kCorruption,
              fmt::format("{}: its config.toml has no table {}; use another snapshot (terrace "
                          "snapshot list)",
                          snapshot_->path(), name));
}

std::unique_ptr<DiskStore> SnapshotView::OpenTable(const std::string& name) const {
  DiskOptions options = WithoutMemoryLimit(&snapshot_->env());
  const std::string path = snapshot_->TablePath(name);
  options.row_bytes = static_cast<size_t>(info().FindTable(name)->row_bytes);
  return DiskStore::OpenReadOnly(path, options);
}

RowDecoder::RowDecoder(const TableSchema& schema, size_t row_bytes)
    : layout_(schema.layout), row_bytes_(row_bytes) {
  TERRACE_CHECK(row_bytes == TieredTable::DiskRowBytes(schema));
}

std::span<const float> RowDecoder::Decode(const std::byte* rows, size_t count) {
  for (auto p = static_cast<uint32_t>(positions_.size()); p < count; ++p) positions_.push_back(p);
  numbers_.resize(count * static_cast<size_t>(layout_.format.numbers));
  Stream stream(nullptr);
  DecodeRows(stream, layout_.format,
             {const_cast<std::byte*>(rows), static_cast<int64_t>(row_bytes_), positions_.data(),
              static_cast<int64_t>(count)},
             RowParts::kAll, numbers_.data());
  return numbers_;
}

RowStats RowDecoder::Stats(const std::byte* row) const {
  return layout_.counts ? RowStats::Read(row + layout_.stats_offset()) : RowStats{};
}

}  // namespace terrace
