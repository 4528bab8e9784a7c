#include "cli/data_info_detect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/data_info_stats.h"
#include "data/byte_source.h"
#include "data/csv_cells.h"
#include "data/features.h"
#include "data/number.h"

namespace terrace {
namespace {

constexpr size_t kHeadBytes = size_t{1} << 20;
constexpr size_t kHeadLines = 1000;
constexpr size_t kCriteoTabs = 39;
constexpr char kManyValues = '|';

std::string_view WithoutLineEnd(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  return line;
}

// The first lines that are not empty.
std::vector<std::string> ReadHead(Env& env, const std::string& path) {
  int64_t consumed = 0;
  const std::unique_ptr<SequentialFile> file = OpenBytes(env, path, &consumed);
  std::string text(kHeadBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const size_t n = file->Read(text.data() + size, text.size() - size);
    if (n == 0) break;
    size += n;
  }
  const bool cut = size == text.size();
  text.resize(size);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size() && lines.size() < kHeadLines;) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos && cut && !lines.empty()) break;
    const std::string_view line = WithoutLineEnd(std::string_view(text).substr(at, end - at));
    if (!line.empty()) lines.emplace_back(line);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  if (lines.empty()) throw Error(ErrorCode::kUsage, fmt::format("{}: the file is empty", path));
  return lines;
}

bool IsNumber(std::string_view text) {
  double value;
  return ParseDouble(text, &value);
}

std::vector<std::string_view> Split(std::string_view text, std::string_view delimiters) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find_first_of(delimiters);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// How many numbers the line's features have between colons (2: libsvm, 3: libffm); 0 if it is
// neither.
size_t NumbersAFeature(std::string_view line) {
  line = line.substr(0, line.find('#'));
  size_t numbers = 0;
  bool is_label = true;
  for (const std::string_view word : Split(line, " \t")) {
    if (word.empty() || word.starts_with("qid:")) continue;
    const std::vector<std::string_view> parts = Split(word, ":");
    if (!std::all_of(parts.begin(), parts.end(), IsNumber)) return 0;
    if (is_label ? parts.size() != 1 : parts.size() < 2 || parts.size() > 3) return 0;
    if (!is_label && numbers != 0 && parts.size() != numbers) return 0;
    if (!is_label) numbers = parts.size();
    is_label = false;
  }
  return numbers;
}

DataFormat GuessFormat(const std::vector<std::string>& lines, const std::string& path) {
  const std::string& first = lines[0];
  const auto tabs = static_cast<size_t>(std::count(first.begin(), first.end(), '\t'));
  if (tabs == kCriteoTabs && IsNumber(Split(first, "\t")[0])) return DataFormat::kCriteo;
  for (const std::string& line : lines) {
    const size_t numbers = NumbersAFeature(line);
    if (numbers == 3) return DataFormat::kLibffm;
    if (numbers == 2) return DataFormat::kLibsvm;
  }
  if (tabs > 0) return DataFormat::kTsv;
  if (first.find(',') != std::string::npos) return DataFormat::kCsv;
  throw Error(ErrorCode::kUsage,
              fmt::format("{}: cannot tell its format from its first line, \"{:.60}\". Name it "
                          "with --format criteo, csv, tsv, libsvm or libffm",
                          path, first));
}

struct ColumnKind {
  bool numbers = true;  // every value is one
  bool decimals = false;
  bool many_values = false;
};

void Look(std::string_view cell, ColumnKind* kind) {
  if (cell.empty()) return;
  kind->numbers = kind->numbers && IsNumber(cell);
  kind->decimals = kind->decimals || cell.find('.') != std::string_view::npos;
  kind->many_values = kind->many_values || cell.find(kManyValues) != std::string_view::npos;
}

// Slots and dense columns from the header and the first rows.
void FillColumns(const std::vector<std::string>& lines, const std::string& path,
                 DataConfig* config) {
  const char delimiter = config->format == DataFormat::kCsv ? ',' : '\t';
  CsvCells cells;
  BadRow bad;
  if (!cells.Split(lines[0], delimiter, &bad))
    throw Error(ErrorCode::kUsage, fmt::format("{}: the header has an open quote", path));
  std::vector<std::string> names;
  for (size_t c = 0; c < cells.size(); ++c) names.emplace_back(cells[c]);
  if (std::find(names.begin(), names.end(), config->label) == names.end())
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: no column \"{}\" in the header, which has {:.200}. Name the label with "
                    "--label, or another --format",
                    path, config->label, fmt::format("{}", fmt::join(names, ", "))));

  std::vector<ColumnKind> kinds(names.size());
  for (size_t i = 1; i < lines.size(); ++i) {
    if (!cells.Split(lines[i], delimiter, &bad) || cells.size() != names.size()) continue;
    for (size_t c = 0; c < names.size(); ++c) Look(cells[c], &kinds[c]);
  }
  for (size_t c = 0; c < names.size(); ++c) {
    if (names[c] == config->label) continue;
    if (kinds[c].numbers && kinds[c].decimals) {
      DenseConfig& column = config->dense.emplace_back();
      column.name = names[c];
      column.missing = kMissingMark;
      continue;
    }
    SlotConfig& slot = config->slots.emplace_back();
    slot.name = names[c];
    if (kinds[c].many_values) slot.separator = kManyValues;
  }
}

// One more than the largest field of the whole file.
int64_t CountFields(Env& env, const std::string& path) {
  int64_t consumed = 0;
  const std::unique_ptr<SequentialFile> file = OpenBytes(env, path, &consumed);
  std::string text(kHeadBytes, '\0');
  uint64_t largest = 0;
  uint64_t number = 0;
  bool in_field = false;  // within the digits that begin a word
  while (const size_t n = file->Read(text.data(), text.size())) {
    for (const char c : std::string_view(text).substr(0, n)) {
      if (c == ' ' || c == '\t' || c == '\n') {
        number = 0;
        in_field = true;
      } else if (in_field && c >= '0' && c <= '9' && number < 1'000'000'000) {
        number = number * 10 + static_cast<uint64_t>(c - '0');
      } else {
        if (in_field && c == ':') largest = std::max(largest, number);
        in_field = false;
      }
    }
  }
  return static_cast<int64_t>(largest) + 1;
}

}  // namespace

DataConfig DetectData(Env& env, const std::string& path, std::optional<DataFormat> format,
                      const std::string& label) {
  DataConfig config;
  config.label = label;
  const bool needs_head = !format || *format == DataFormat::kCsv || *format == DataFormat::kTsv ||
                          *format == DataFormat::kLibffm;
  if (path == "-" && needs_head)
    throw Error(
        ErrorCode::kUsage,
        "standard input cannot be read twice; name a file, or --format criteo or libsvm, or "
        "a --config");
  std::vector<std::string> lines;
  if (needs_head) lines = ReadHead(env, path);
  config.format = format ? *format : GuessFormat(lines, path);
  switch (config.format) {
    case DataFormat::kCriteo: {
      DenseConfig& column = config.dense.emplace_back();
      column.name = "I1..I13";
      column.missing = kMissingMark;
      break;
    }
    case DataFormat::kCsv:
    case DataFormat::kTsv:
      FillColumns(lines, path, &config);
      break;
    case DataFormat::kLibffm:
      config.fields = CountFields(env, path);
      break;
    case DataFormat::kLibsvm:
    case DataFormat::kSynthetic:
      break;
  }
  return config;
}

}  // namespace terrace
