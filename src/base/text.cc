#include "base/text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/log.h"

namespace terrace {
namespace {

// Three significant digits, never in exponent form.
std::string ThreeDigits(double x) {
  const double a = std::abs(x);
  return fmt::format("{:.{}f}", x, a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2);
}

bool LooksNumeric(const std::string& cell) {
  return !cell.empty() && cell.find_first_of("0123456789") != std::string::npos &&
         (std::isdigit(static_cast<unsigned char>(cell[0])) || cell[0] == '-' || cell[0] == '+' ||
          cell[0] == '.' || cell[0] == '~');
}

constexpr double kTerminalPeriod = 0.1;
constexpr double kLogPeriod = 10;

}  // namespace

std::string ShortCount(double n) {
  const double a = std::abs(n);
  if (a < 1000) return n == std::floor(n) ? fmt::format("{:.0f}", n) : ThreeDigits(n);
  if (a < 999.5e3) return ThreeDigits(n / 1e3) + " k";
  if (a < 999.5e6) return ThreeDigits(n / 1e6) + " M";
  if (a < 999.5e9) return ThreeDigits(n / 1e9) + " G";
  return ThreeDigits(n / 1e12) + " T";
}

std::string WithCommas(int64_t n) {
  std::string out = std::to_string(n);
  const size_t first = n < 0 ? 1 : 0;
  for (size_t at = out.size(); at > first + 3; at -= 3) out.insert(at - 3, 1, ',');
  return out;
}

std::string ShortBytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (std::abs(bytes) >= 1023.5 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : ThreeDigits(bytes) + " " + kUnits[unit];
}

std::string ShortSeconds(double s) {
  if (s == 0) return "0 s";
  if (s < 1e-3) return ThreeDigits(s * 1e6) + " us";
  if (s < 1) return ThreeDigits(s * 1e3) + " ms";
  if (s < 60) return ThreeDigits(s) + " s";
  const auto whole = static_cast<int64_t>(std::llround(s));
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

TextTable::TextTable(std::vector<std::string> header, Align align) : align_(align) {
  rows_.push_back(std::move(header));
}

void TextTable::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::Render(int indent) const {
  std::vector<size_t> width(rows_[0].size(), 0);
  std::vector<bool> right(rows_[0].size(), align_ == Align::kByContent && rows_.size() > 1);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < rows_[r].size() && c < width.size(); ++c) {
      width[c] = std::max(width[c], DisplayWidth(rows_[r][c]));
      if (r > 0 && !rows_[r][c].empty() && rows_[r][c] != "-" && !LooksNumeric(rows_[r][c]))
        right[c] = false;
    }
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line(static_cast<size_t>(indent), ' ');
    for (size_t c = 0; c < rows_[r].size() && c < width.size(); ++c) {
      const std::string pad(width[c] - DisplayWidth(rows_[r][c]), ' ');
      line += (c > 0 ? "  " : "") + (right[c] ? pad + rows_[r][c] : rows_[r][c] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
    if (r == 0) {
      size_t total = 2 * (width.size() - 1);
      for (size_t w : width) total += w;
      out += std::string(static_cast<size_t>(indent), ' ') + std::string(total, '-') + "\n";
    }
  }
  return out;
}

ProgressLine::ProgressLine()
    : terminal_(isatty(STDERR_FILENO) != 0), next_(NowSeconds() + (terminal_ ? 0 : kLogPeriod)) {}

ProgressLine::~ProgressLine() { Clear(); }

bool ProgressLine::Due() {
  const double now = NowSeconds();
  if (now < next_) return false;
  next_ = now + (terminal_ ? kTerminalPeriod : kLogPeriod);
  return true;
}

void ProgressLine::Show(const std::string& text) {
  if (!terminal_) {
    LogInfo(text);
    return;
  }
  size_t columns = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  std::string cut = text;
  while (DisplayWidth(cut) >= columns && !cut.empty()) cut.pop_back();
  std::fprintf(stderr, "\r%s\x1b[K", cut.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::Clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace terrace
