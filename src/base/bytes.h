// Plain values into a string of bytes and out of it again, as they are in memory (little endian on
// every machine we build for).
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace terrace {

template <typename T>
void AppendValue(std::string* to, const T& value) {
  static_assert(std::is_arithmetic_v<T>);
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The next bytes, taken off the front. Throws Error(kCorruption) where there are fewer; what was
// read is named by whoever knows it.
inline std::string_view TakeBytes(std::string_view* from, size_t size) {
  if (from->size() < size)
    throw Error(ErrorCode::kCorruption, "cut off: expected " + std::to_string(size) +
                                            " more bytes, found " + std::to_string(from->size()) +
                                            "; restore an older snapshot");
  const std::string_view taken = from->substr(0, size);
  from->remove_prefix(size);
  return taken;
}

template <typename T>
T TakeValue(std::string_view* from) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, TakeBytes(from, sizeof(value)).data(), sizeof(value));
  return value;
}

}  // namespace terrace
