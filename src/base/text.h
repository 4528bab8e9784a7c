// Text for people: short numbers, sizes, times, aligned tables, and a progress line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

std::string ShortCount(double n);      // 1234567 -> "1.23 M"
std::string WithCommas(int64_t n);     // 1234567 -> "1,234,567"
std::string ShortBytes(double bytes);  // 1572864 -> "1.50 MiB"
std::string ShortSeconds(double s);    // 93 -> "1m33s"; 0.0123 -> "12.3 ms"

// Rows of cells with aligned columns. The first row is the header. Columns of numbers align right,
// unless all align left.
class TextTable {
 public:
  enum class Align { kByContent, kLeft };
  explicit TextTable(std::vector<std::string> header, Align align = Align::kByContent);
  void AddRow(std::vector<std::string> cells);
  // Each line ends with '\n' and starts with `indent` spaces.
  std::string Render(int indent = 0) const;

 private:
  const Align align_;
  std::vector<std::vector<std::string>> rows_;
};

// One line on standard error that is rewritten in place on a terminal; elsewhere a log line every
// 10 seconds. One thread.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  // True when it is time for a new line: build the text only then.
  bool Due();
  void Show(const std::string& text);
  // Wipes the line, so that other output starts clean.
  void Clear();

 private:
  const bool terminal_;
  double next_ = 0;
  bool shown_ = false;
};

// Columns a UTF-8 string takes on a terminal (code points; no wide characters are used here).
size_t DisplayWidth(std::string_view text);

}  // namespace terrace
