// Rows of a table that has got a larger dim since they were written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "table/schema.h"

namespace terrace {

// Whether WidenRows can: the tables differ in dim alone, and `to` has the larger one.
bool CanWiden(const TableSchema& from, const TableSchema& to);

// Writes rows of `from` as rows of `to`. The vector's old numbers, the linear weight, the optimizer
// state of each and the statistics keep their values; new numbers and their state are what InitRow
// gives a new row of the key. Numbers in fp32, fp16 and bf16 keep their bits. Integer codes have
// one scale a vector, so where a new number is the largest, and by the last bit of the scale also
// where not, the old ones are rounded to the nearest code of the new scale. Any thread.
void WidenRows(const TableSchema& from, const TableSchema& to, std::span<const uint64_t> keys,
               const std::byte* rows, size_t row_bytes,  // [keys], each row_bytes long
               std::byte* wider, size_t wider_bytes);    // the same; bytes behind the row stay

}  // namespace terrace
