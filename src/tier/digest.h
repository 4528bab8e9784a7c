// One number for all rows of a table, to compare two runs by.
#pragma once

#include "base/hash.h"
#include "base/workers.h"
#include "tier/memory_tier.h"
#include "tier/tiered_table.h"

namespace terrace {

struct RowsDigest {
  Hash128 hash;
  int64_t rows = 0;
  bool operator==(const RowsDigest&) const = default;
};

// Depends on the table's name and on each row's key and bytes; not on positions or tiers, so not on
// the order in which keys were first seen. Rows that are `due` (null: none) do not count. Rows must
// not be written meanwhile.
RowsDigest DigestRows(const MemoryTier& tier, const RowTest& due = {});
RowsDigest DigestRows(TieredTable* table, const RowTest& due, Workers* workers);

}  // namespace terrace
