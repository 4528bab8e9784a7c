#include "data/row_parser.h"

#include <fmt/format.h>

namespace terrace {

char Delimiter(const DataConfig& config) {
  if (!config.delimiter.empty()) return config.delimiter[0];
  return config.format == DataFormat::kCsv ? ',' : '\t';
}

bool CheckLine(std::string_view line, int64_t max_line_bytes, BadRow* bad) {
  if (static_cast<int64_t>(line.size()) > max_line_bytes) {
    bad->found_what = "a longer line";
    bad->expected = fmt::format("at most data.max_line_bytes = {} bytes", max_line_bytes);
    return false;
  }
  const size_t nul = line.find('\0');
  if (nul != std::string_view::npos) {
    bad->found_what = fmt::format("a NUL byte at byte {} of the line", nul + 1);
    bad->expected = "text";
    return false;
  }
  return true;
}

}  // namespace terrace
