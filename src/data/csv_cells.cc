#include "data/csv_cells.h"

#include <limits>

#include "data/number.h"

namespace terrace {

bool CsvCells::Split(std::string_view line, char delimiter, BadRow* bad) {
  text_.clear();
  bounds_.assign(1, std::numeric_limits<uint32_t>::max());
  size_t at = 0;
  for (;;) {
    size_t end;
    if (at < line.size() && line[at] == '"') {
      end = TakeQuoted(line, at, delimiter, bad);
      if (end == std::string_view::npos) {
        bad->column = static_cast<int64_t>(bounds_.size()) - 1;
        return false;
      }
    } else {
      end = std::min(line.find(delimiter, at), line.size());
      text_.append(line, at, end - at);
    }
    bounds_.push_back(static_cast<uint32_t>(text_.size()));
    text_.push_back('\n');
    if (end == line.size()) break;
    at = end + 1;
  }
  text_.append(kTextPadding, '\0');
  return true;
}

size_t CsvCells::TakeQuoted(std::string_view line, size_t at, char delimiter, BadRow* bad) {
  bad->found = line.substr(at);
  for (size_t from = at + 1;;) {
    const size_t quote = line.find('"', from);
    if (quote == std::string_view::npos) {
      bad->expected = "a closing quote on the same line";
      return std::string_view::npos;
    }
    text_.append(line, from, quote - from);
    const size_t next = quote + 1;
    if (next == line.size() || line[next] == delimiter) return next;
    if (line[next] != '"') {
      bad->expected = "the next column or the line's end after a closing quote";
      return std::string_view::npos;
    }
    text_.push_back('"');
    from = next + 1;
  }
}

}  // namespace terrace
