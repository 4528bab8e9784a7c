#include "cli/row_keys.h"

#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <iterator>

#include "base/error.h"
#include "data/features.h"

namespace terrace {
namespace {

// Decimal, or with 0x hexadecimal; for ids a sign is fine.
bool ParseNumber(std::string_view text, bool is_signed, uint64_t* number) {
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x")) {
    const auto result = std::from_chars(text.data() + 2, end, *number, 16);
    return result.ec == std::errc() && result.ptr == end;
  }
  if (is_signed && text.starts_with('-')) {
    int64_t value = 0;
    const auto result = std::from_chars(text.data(), end, value);
    *number = static_cast<uint64_t>(value);
    return result.ec == std::errc() && result.ptr == end;
  }
  const auto result = std::from_chars(text.data(), end, *number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::vector<NamedKey> ReadRowKeys(Env& env, const RowKeysOptions& options) {
  if (options.integers && options.slot.empty())
    throw Error(ErrorCode::kUsage, "--integers is about the values of a slot: name it with --slot");
  const std::string text =
      options.path == "-"
          ? std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>())
          : ReadWholeFile(env, options.path);
  const uint64_t seed = options.slot.empty() ? 0 : SlotSeed(options.slot);
  std::vector<NamedKey> keys;
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    const size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    NamedKey one{std::string(line), 0};
    if (!options.slot.empty() && !options.integers) {
      one.key = TextKey(seed, line);
    } else {
      if (!ParseNumber(line, options.integers, &one.key))
        throw Error(
            ErrorCode::kData,
            fmt::format("{}:{}: \"{}\" is not {}; expected one a line, such as 42 or 0x2a{}",
                        options.path, number, line.substr(0, 60),
                        options.integers ? "an integer" : "a key",
                        options.integers ? "" : ". For values of a slot add --slot NAME"));
      if (options.integers) one.key = IntegerKey(seed, one.key);
    }
    keys.push_back(std::move(one));
  }
  if (keys.empty())
    throw Error(ErrorCode::kUsage, options.path + ": has no keys; expected one a line");
  return keys;
}

}  // namespace terrace
