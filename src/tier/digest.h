// One number for all rows of a table, to compare two runs by.
#pragma once

#include "base/hash.h"
#include "base/workers.h"
#include "tier/memory_tier.h"
#include "tier/tiered_table.h"

namespace terrace {

// Depends on the table's name and on each row's key, weights and optimizer state; not on positions
// or tiers, so not on the order in which keys were first seen. Rows must not be written meanwhile.
Hash128 RowsDigest(const MemoryTier& tier);
Hash128 RowsDigest(TieredTable* table, Workers* workers);

}  // namespace terrace
