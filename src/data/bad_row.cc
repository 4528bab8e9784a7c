#include "data/bad_row.h"

#include <fmt/format.h>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kMaxQuoted = 40;  // bytes of a cell that a message shows

}  // namespace

std::string QuoteForMessage(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte >= 0x20 && byte < 0x7f) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", byte);
    }
  }
  quoted += '"';
  if (text.size() > kMaxQuoted) quoted += fmt::format("... ({} bytes)", text.size());
  return quoted;
}

std::string BadRowMessage(std::string_view file, int64_t line, const BadRow& bad) {
  std::string message = fmt::format("{}:{}: ", file, line);
  if (bad.column >= 0) message += fmt::format("column {} ({}): ", bad.column + 1, bad.column_name);
  if (bad.feature >= 0) message += fmt::format("feature {}: ", bad.feature + 1);
  return message +
         fmt::format(
             "found {}, expected {}. Fix the row, or set data.on_bad_row = \"skip\" to leave bad "
             "rows out.",
             bad.found_what.empty() ? QuoteForMessage(bad.found) : bad.found_what, bad.expected);
}

void BadRowPolicy::Handle(std::string_view file, int64_t line, const BadRow& bad) {
  if (on_bad_row_ == OnBadRow::kError)
    throw Error(ErrorCode::kData, BadRowMessage(file, line, bad));
  ++skipped_;
}

}  // namespace terrace
