#include "train/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "model/param_map.h"
#include "table/widen_rows.h"
#include "train/table_schemas.h"

namespace terrace {
namespace {

const TableSchema* Find(const std::vector<TableSchema>& schemas, const std::string& table) {
  const auto at = std::ranges::find(schemas, table, &TableSchema::name);
  return at == schemas.end() ? nullptr : &*at;
}

// Numbers of the optimizer stand parameter by parameter: [state_per_param][params].
void Carry(const std::vector<int64_t>& match, const float* from, float* to) {
  for (size_t i = 0; i < match.size(); ++i)
    if (match[i] >= 0) to[i] = from[match[i]];
}

}  // namespace

std::vector<std::string> GrowthReport::Lines() const {
  std::vector<std::string> lines;
  if (!new_slots.empty()) lines.push_back(fmt::format("new slots: {}", fmt::join(new_slots, ", ")));
  if (!new_tables.empty())
    lines.push_back(fmt::format("new tables: {}", fmt::join(new_tables, ", ")));
  for (const WiderTable& table : wider_tables)
    lines.push_back(fmt::format("wider table: {}, dim {} instead of {}, {} rows rewritten",
                                table.name, table.to, table.from, table.rows));
  if (carried_params + new_params > 0)
    lines.push_back(
        fmt::format("carried over: {} dense parameters; {} are new", carried_params, new_params));
  return lines;
}

Growth::Growth(const Snapshot& snapshot, const RunConfig& saved, const RunConfig& now)
    : snapshot_(snapshot),
      saved_(saved),
      old_spec_(FeatureSpec::Resolve(saved.data)),
      old_schemas_(TableSchemas(saved, old_spec_)),
      schemas_(TableSchemas(now, FeatureSpec::Resolve(now.data))) {
  for (const Slot& slot : FeatureSpec::Resolve(now.data).slots) {
    const auto same = [&](const Slot& old) { return old.config.name == slot.config.name; };
    if (std::ranges::none_of(old_spec_.slots, same)) report_.new_slots.push_back(slot.config.name);
  }
  for (const TableSchema& schema : schemas_) {
    const TableSchema* const old = OldSchema(schema.name);
    if (old == nullptr)
      report_.new_tables.push_back(schema.name);
    else if (old->layout.dim != schema.layout.dim)
      report_.wider_tables.push_back({schema.name, old->layout.dim, schema.layout.dim});
  }
}

const TableSchema* Growth::OldSchema(const std::string& table) const {
  return Find(old_schemas_, table);
}

ModelState::SavedRows Growth::RowsOf(const std::string& table) {
  const TableSchema* const from = OldSchema(table);
  if (from == nullptr) return {};
  const auto wider =
      std::ranges::find(report_.wider_tables, table, &GrowthReport::WiderTable::name);
  if (wider == report_.wider_tables.end()) return {snapshot_.TablePath(table), nullptr};
  const TableSchema* const to = Find(schemas_, table);
  int64_t* const rows = &wider->rows;
  return {"", [this, from, to, rows](const DiskOptions& options, DiskStore* store) {
            Rewrite(*from, *to, options, store, rows);
          }};
}

void Growth::Rewrite(const TableSchema& from, const TableSchema& to, const DiskOptions& options,
                     DiskStore* store, int64_t* rows) const {
  DiskOptions old_options;
  old_options.env = options.env;
  old_options.row_bytes = TieredTable::DiskRowBytes(from);
  old_options.memory_bytes = options.memory_bytes;
  old_options.readers = 1;
  const auto old = DiskStore::OpenReadOnly(snapshot_.TablePath(from.name), old_options);
  std::vector<std::byte> wider;
  old->Scan(0, old->partitions(), [&](std::span<const uint64_t> keys, const std::byte* narrow) {
    wider.assign(keys.size() * store->row_bytes(), std::byte{0});
    WidenRows(from, to, keys, narrow, old->row_bytes(), wider.data(), store->row_bytes());
    store->Put(keys, wider.data());
    *rows += static_cast<int64_t>(keys.size());
  });
}

void Growth::LoadDense(std::string_view bytes, ModelState* state) {
  const auto old = Model::Make(saved_.model, InputsOf(old_schemas_, old_spec_), &CpuDevice());
  const auto planes = static_cast<size_t>(1 + DenseStatePerParam(saved_.optimizer.kind));
  const auto old_params = static_cast<size_t>(old->param_count());
  if (bytes.size() != planes * old_params * sizeof(float))
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: its net has {} bytes of parameters and optimizer state, but its "
                            "config's has {}; use another snapshot (terrace snapshot list)",
                            snapshot_.path(), bytes.size(), planes * old_params * sizeof(float)));
  std::vector<float> numbers(planes * old_params);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  const std::vector<int64_t> match = MatchParams(*old, *state->model);
  Carry(match, numbers.data(), state->params.data());
  for (size_t p = 1; p < planes; ++p)
    Carry(match, numbers.data() + p * old_params,
          state->dense_state.data() + (p - 1) * match.size());
  report_.new_params = std::ranges::count(match, -1);
  report_.carried_params = static_cast<int64_t>(match.size()) - report_.new_params;
}

}  // namespace terrace
