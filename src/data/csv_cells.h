// The cells of a CSV line with quotes (RFC 4180, but a quoted cell stays within its line).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_row.h"

namespace terrace {

// Reused from line to line. Cell j is text()[bounds()[j] + 1, bounds()[j + 1]), with its quotes
// taken off and doubled quotes made single; bounds()[0] is 2^32 - 1, the place before 0.
class CsvCells {
 public:
  // False if a quote is not closed or followed by other text; *bad then says so, with the number of
  // the cell in bad->column.
  bool Split(std::string_view line, char delimiter, BadRow* bad);

  size_t size() const { return bounds_.size() - 1; }
  const char* text() const { return text_.data(); }
  const uint32_t* bounds() const { return bounds_.data(); }
  std::string_view operator[](size_t j) const {
    return std::string_view(text_).substr(bounds_[j] + 1, bounds_[j + 1] - bounds_[j] - 1);
  }

 private:
  // Appends the quoted cell that starts at line[at]; returns where it ends, or npos.
  size_t TakeQuoted(std::string_view line, size_t at, char delimiter, BadRow* bad);

  std::string text_;
  std::vector<uint32_t> bounds_;
};

}  // namespace terrace
