// Numbers in text: quick for the short ones that files are full of, exact for all.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace terrace {

// Text that is parsed lies in buffers with this many readable bytes behind it.
inline constexpr size_t kTextPadding = 16;

// The value of 1 to 8 digits; false if there is anything else among the `size` bytes.
inline bool ParseUpTo8Digits(const char* text, size_t size, uint32_t* value) {
  if constexpr (std::endian::native == std::endian::little) {
    if (size - 1 >= 8) return false;  // also 0
    uint64_t x;
    std::memcpy(&x, text, 8);
    // One digit a byte; the first one goes up, and zeros come in where there are fewer than 8.
    x = (x ^ 0x3030303030303030) << (64 - 8 * size);
    if ((((x + 0x7676767676767676) | x) & 0x8080808080808080) != 0) return false;
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;    // pairs
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff;  // fours
    *value = static_cast<uint32_t>(x * 10000 + (x >> 32));
    return true;
  } else {
    if (size - 1 >= 8) return false;
    uint32_t v = 0;
    for (size_t i = 0; i < size; ++i) {
      const unsigned digit = static_cast<unsigned char>(text[i]) - '0';
      if (digit > 9) return false;
      v = v * 10 + digit;
    }
    *value = v;
    return true;
  }
}

// A finite decimal number ("-1", "+.5", "2e-3"), correctly rounded. False on anything else.
bool ParseDouble(std::string_view text, double* value);
bool ParseInt64(std::string_view text, int64_t* value);
// Digits only.
bool ParseUint64(std::string_view text, uint64_t* value);

// What ParseDouble wanted of `text`, which it refused: "a number" or "a finite number".
const char* ExpectedNumber(std::string_view text);

}  // namespace terrace
