// Finding the places in a text where something ends, many bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/cpu.h"

namespace terrace {

struct SeparatorCount {
  size_t separators = 0;
  size_t lines = 0;
};

struct TextScanKernels {
  // Writes the place of each `delimiter` and '\n' to `separators`, and for each '\n' its index
  // there to `line_ends`. Both have room for `size` + kScanSlack entries; size < 2^32.
  SeparatorCount (*find_separators)(const char* text, size_t size, char delimiter,
                                    uint32_t* separators, uint32_t* line_ends);
  size_t (*count_bytes)(const char* text, size_t size, char byte);
};
inline constexpr size_t kScanSlack = 8;  // entries that may be overwritten behind the last one

TERRACE_DECLARE_ISA_TABLE(TextScanKernels, kTextScanKernels)

inline int64_t CountLines(std::string_view text) {
  return static_cast<int64_t>(
      TERRACE_ISA_TABLE(kTextScanKernels).count_bytes(text.data(), text.size(), '\n'));
}

}  // namespace terrace
