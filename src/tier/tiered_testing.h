// What tests of a tiered table share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/test_dir.h"
#include "tier/tiered_table.h"

namespace terrace {

using Row = std::vector<std::byte>;

inline TableSchema SmallTable(int dim) {
  TableConfig config;
  config.dim = dim;
  config.initial_accumulator = 0.25;
  return TableSchema::Make("rows", config, true, 3);
}

// A table with its tiers.
struct TestTable {
  TestTable(const TableSchema& schema, PolicyKind policy, int partitions,
            std::function<RowTest()> due = {})
      : memory(schema), table(&memory, Open(partitions), policy, std::move(due)) {}

  std::unique_ptr<DiskStore> Open(int partitions) const {
    DiskOptions options;
    options.durability = Durability::kScratch;
    options.row_bytes = TieredTable::DiskRowBytes(memory.schema());
    options.memory_bytes = 6 << 20;
    options.partitions = partitions;
    options.batch_keys = 1024;
    return DiskStore::Open(dir.path() + "/store", options);
  }
  Row RowAt(uint32_t position) const {
    return {memory.row(position), memory.row(position) + memory.schema().layout.payload_bytes()};
  }
  uint32_t Find(uint64_t key) const {
    uint32_t position = 0;
    memory.Find({&key, 1}, {&position, 1});
    return position;
  }
  // Pull and push.
  void Carry(RowMoves* moves) {
    table.Sort(moves);
    WriteBack rows;
    table.CopyVictims(*moves, &rows);
    FetchBuffers buffers;
    table.Fetch(*moves, &buffers);
    table.Write(rows);
  }

  TestDir dir;
  RowRoom room;
  MemoryTier memory;
  TieredTable table;
};

inline TablePlan PlanOf(const std::vector<uint64_t>& keys) {
  TablePlan plan;
  plan.row_keys.assign(keys.begin(), keys.end());
  return plan;
}

}  // namespace terrace
