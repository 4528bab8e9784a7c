// One number for all rows of a table, to compare two runs by.
#pragma once

#include "base/hash.h"
#include "tier/memory_tier.h"

namespace terrace {

// Depends on the table's name and on each row's key, weights and optimizer state; not on positions,
// so not on the order in which keys were first seen. Rows must not be written meanwhile.
Hash128 RowsDigest(const MemoryTier& tier);

}  // namespace terrace
