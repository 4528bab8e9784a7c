#include "data/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace terrace {
namespace {

// Powers of ten that a double holds exactly.
constexpr double kPowersOf10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool ParseAnyDouble(std::string_view text, double* value) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text[0] == '-') return false;
  }
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  if (stop != end) return false;
  // Too large is refused, too small is 0 or what is nearest to it; from_chars does not tell which.
  if (error == std::errc::result_out_of_range)
    *value = std::strtod(std::string(text).c_str(), nullptr);
  else if (error != std::errc())
    return false;
  return std::isfinite(*value);
}

}  // namespace

bool ParseDouble(std::string_view text, double* value) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p != end && *p == '-';
  if (p != end && (*p == '-' || *p == '+')) ++p;
  // Digits, at most one point: the value is digits / 10^fraction. With both parts exact in a double
  // the quotient is the correctly rounded value.
  uint64_t digits = 0;
  const char* const first = p;
  const char* point = nullptr;
  for (; p != end; ++p) {
    const unsigned digit = static_cast<unsigned char>(*p) - '0';
    if (digit <= 9) {
      digits = digits * 10 + digit;
    } else if (*p == '.' && point == nullptr) {
      point = p;
    } else {
      return ParseAnyDouble(text, value);
    }
  }
  const int64_t length = p - first - (point != nullptr ? 1 : 0);
  if (length == 0) return false;
  if (length > 18 || digits > (uint64_t{1} << 53)) return ParseAnyDouble(text, value);
  const int64_t fraction = point == nullptr ? 0 : end - point - 1;
  const double size = static_cast<double>(digits) / kPowersOf10[fraction];
  *value = negative ? -size : size;
  return true;
}

bool ParseInt64(std::string_view text, int64_t* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

bool ParseUint64(std::string_view text, uint64_t* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

const char* ExpectedNumber(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return stop == end && stop != text.data() && error != std::errc::invalid_argument
             ? "a finite number"
             : "a number";
}

}  // namespace terrace
