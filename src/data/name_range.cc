#include "data/name_range.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "base/error.h"

namespace terrace {
namespace {

constexpr int64_t kMaxNames = 100'000;

// "C26" -> "C" and 26. False if there is no number at the end, or it is too long.
struct NumberedName {
  std::string_view prefix;
  std::string_view digits;
  int64_t number = 0;
};
bool SplitNumber(std::string_view name, NumberedName* out) {
  const size_t last_other = name.find_last_not_of("0123456789");
  const size_t first_digit = last_other == std::string_view::npos ? 0 : last_other + 1;
  out->prefix = name.substr(0, first_digit);
  out->digits = name.substr(first_digit);
  const char* end = out->digits.data() + out->digits.size();
  return !out->digits.empty() && out->digits.size() <= 12 &&
         std::from_chars(out->digits.data(), end, out->number).ptr == end;
}

}  // namespace

std::vector<std::string> ExpandNames(const std::string& name, const std::string& where) {
  const size_t dots = name.find("..");
  if (dots == std::string::npos) return {name};
  const std::string_view text = name;
  NumberedName first;
  NumberedName last;
  if (!SplitNumber(text.substr(0, dots), &first) || !SplitNumber(text.substr(dots + 2), &last) ||
      first.prefix != last.prefix || first.number > last.number)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: found the range \"{}\", expected one like \"C1..C26\": the same "
                            "name twice with an ascending number",
                            where, name));
  if (last.number - first.number >= kMaxNames)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: the range \"{}\" has {} names, at most {} are "
                            "possible",
                            where, name, last.number - first.number + 1, kMaxNames));
  const size_t width = first.digits[0] == '0' ? first.digits.size() : 0;
  std::vector<std::string> names;
  names.reserve(last.number - first.number + 1);
  for (int64_t i = first.number; i <= last.number; ++i)
    names.push_back(fmt::format("{}{:0{}}", first.prefix, i, width));
  return names;
}

}  // namespace terrace
