#include "table/widen_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kRowsAtOnce = 256;

// The rows' numbers part by part: those of the vector, then those of the linear weight.
void CopyNumbers(const RowLayout& from, const RowLayout& to, const float* numbers, float* wider) {
  for (int p = 0; p < from.format.part_count; ++p) {
    const RowPart& old = from.format.parts[p];
    const RowPart& part = to.format.parts[p];
    const int vector = old.numbers() - from.linear;
    std::copy_n(numbers + old.first, vector, wider + part.first);
    std::copy_n(numbers + old.first + vector, from.linear,
                wider + part.first + part.numbers() - to.linear);
  }
}

}  // namespace

bool CanWiden(const TableSchema& from, const TableSchema& to) {
  const RowLayout& old = from.layout;
  const RowLayout& wide = to.layout;
  return from.config.optimizer == to.config.optimizer &&
         from.config.weight_codec == to.config.weight_codec &&
         from.config.state_codec == to.config.state_codec && old.linear == wide.linear &&
         old.counts == wide.counts && old.format.part_count == wide.format.part_count &&
         wide.dim > old.dim;
}

void WidenRows(const TableSchema& from, const TableSchema& to, std::span<const uint64_t> keys,
               const std::byte* rows, size_t row_bytes, std::byte* wider, size_t wider_bytes) {
  TERRACE_CHECK(CanWiden(from, to));
  const RowFormat& old_format = from.layout.format;
  const RowFormat& format = to.layout.format;
  const size_t most = std::min(keys.size(), kRowsAtOnce);
  std::vector<uint32_t> positions(most);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<float> old_numbers(most * static_cast<size_t>(old_format.numbers));
  std::vector<float> numbers(most * static_cast<size_t>(format.numbers));
  Stream stream(nullptr);
  for (size_t first = 0; first < keys.size(); first += most) {
    const size_t n = std::min(most, keys.size() - first);
    const std::byte* const old_rows = rows + first * row_bytes;
    std::byte* const new_rows = wider + first * wider_bytes;
    for (size_t i = 0; i < n; ++i) InitRow(to, keys[first + i], new_rows + i * wider_bytes);
    // DecodeRows only reads.
    const PackedRows old_packed{const_cast<std::byte*>(old_rows), static_cast<int64_t>(row_bytes),
                                positions.data(), static_cast<int64_t>(n)};
    const PackedRows packed{new_rows, static_cast<int64_t>(wider_bytes), positions.data(),
                            static_cast<int64_t>(n)};
    DecodeRows(stream, old_format, old_packed, RowParts::kAll, old_numbers.data());
    DecodeRows(stream, format, packed, RowParts::kAll, numbers.data());
    for (size_t i = 0; i < n; ++i) {
      CopyNumbers(from.layout, to.layout,
                  old_numbers.data() + i * static_cast<size_t>(old_format.numbers),
                  numbers.data() + i * static_cast<size_t>(format.numbers));
      if (from.layout.counts)
        std::memcpy(new_rows + i * wider_bytes + to.layout.stats_offset(),
                    old_rows + i * row_bytes + from.layout.stats_offset(), sizeof(RowStats));
    }
    // What a codec gave back is within its range.
    (void)EncodeRows(stream, format, packed, RowParts::kAll, numbers.data(), nullptr);
  }
}

}  // namespace terrace
