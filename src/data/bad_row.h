// Rows that cannot be read: one message style, and what happens to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/data_config.h"

namespace terrace {

// What is wrong with a row. Views point into the row's text.
struct BadRow {
  std::string_view found;  // the text that was found, quoted in the message ...
  std::string found_what;  // ... unless this says it in words
  std::string expected;
  int64_t column = -1;  // of a file with columns, from 0; -1: not of one cell
  std::string_view column_name;
  int64_t feature = -1;  // of a libsvm or libffm line, from 0; -1: not of one feature
};

// "12x" in quotes: shortened, and escaped where it is not printable ASCII.
std::string QuoteForMessage(std::string_view text);

// `ads.tsv:1017: column 3 (I2): found "12x", expected a number. Fix the row, or ...`
std::string BadRowMessage(std::string_view file, int64_t line, const BadRow& bad);

// Decides what a bad row means. One thread.
class BadRowPolicy {
 public:
  explicit BadRowPolicy(OnBadRow on_bad_row) : on_bad_row_(on_bad_row) {}
  // Throws Error(kData), or counts the row as left out.
  void Handle(std::string_view file, int64_t line, const BadRow& bad);
  int64_t skipped_rows() const { return skipped_; }

 private:
  const OnBadRow on_bad_row_;
  int64_t skipped_ = 0;
};

}  // namespace terrace
