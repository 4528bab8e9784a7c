#include "data/feature_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "data/features.h"

namespace terrace {
namespace {

constexpr int64_t kMaxLineBytes = int64_t{1} << 30;

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

bool HasColumns(DataFormat format) {
  return format == DataFormat::kCriteo || format == DataFormat::kCsv || format == DataFormat::kTsv;
}

void CheckSlot(const DataConfig& config, const SlotConfig& slot) {
  const std::string where = fmt::format("data.slots: slot \"{}\"", slot.name);
  if (slot.table.empty()) Fail("{}: table is empty; name the table of its rows", where);
  if (!HasColumns(config.format) &&
      (!slot.separator.empty() || slot.bucket != Bucketing::kNone || slot.column != slot.name))
    Fail("{}: column, separator and bucket are for formats with columns, not for \"{}\"", where,
         FormatName(config.format));
  if (slot.separator.size() > 1 || slot.separator == "\n" || slot.separator == "\r")
    Fail("{}: separator has {} bytes, expected one character within a line", where,
         slot.separator.size());
  if ((slot.bucket == Bucketing::kBoundaries) == slot.boundaries.empty())
    Fail("{}: bucket = \"boundaries\" and boundaries = [...] go together; found only one of them",
         where);
  for (size_t i = 1; i < slot.boundaries.size(); ++i)
    if (slot.boundaries[i] <= slot.boundaries[i - 1])
      Fail("{}: boundaries must ascend; found {} after {}", where, slot.boundaries[i],
           slot.boundaries[i - 1]);
}

// A table whose slots have a linear_table has rows without linear weight: that must hold for all of
// its slots, and nobody can look for linear weights there.
void CheckLinearTables(const std::vector<SlotConfig>& slots) {
  std::map<std::string, const SlotConfig*> first_of;  // by table
  for (const SlotConfig& slot : slots) {
    const SlotConfig& first = *first_of.try_emplace(slot.table, &slot).first->second;
    if (slot.linear_table.empty() != first.linear_table.empty()) {
      const bool has = first.linear_table.empty();
      Fail(
          "data.slots: slot \"{}\" has a linear_table and slot \"{}\" has none, but both are of "
          "table \"{}\", whose rows either have linear weights or not; give both slots one, or "
          "use two tables",
          has ? slot.name : first.name, has ? first.name : slot.name, slot.table);
    }
  }
  for (const SlotConfig& slot : slots) {
    const auto vectors = first_of.find(slot.linear_table);
    if (vectors == first_of.end() || vectors->second->linear_table.empty()) continue;
    if (slot.table == slot.linear_table)
      Fail(
          "data.slots: slot \"{}\": table and linear_table are both \"{}\"; name a second table, "
          "or leave linear_table out",
          slot.name, slot.table);
    Fail(
        "data.slots: table \"{0}\" is the linear_table of slot \"{1}\", but it holds the vectors "
        "of slot \"{2}\", which has a linear_table of its own; name a table with linear weights",
        slot.linear_table, slot.name, vectors->second->name);
  }
}

void CheckDense(const DenseConfig& column) {
  const std::string where = fmt::format("data.dense: column \"{}\"", column.name);
  if (!column.clip.empty()) {
    if (column.clip.size() != 2)
      Fail("{}: clip has {} numbers, expected [low, high]", where, column.clip.size());
    if (!(column.clip[0] < column.clip[1]))
      Fail("{}: clip = [{}, {}], expected low < high", where, column.clip[0], column.clip[1]);
  }
  if (!std::isfinite(static_cast<float>(column.missing)))
    Fail("{}: missing = {}, expected a number that a float can hold", where, column.missing);
}

template <typename T>
void CheckDistinct(const std::vector<T>& list, const char* where) {
  std::set<std::string> seen;
  for (const T& element : list)
    if (!seen.insert(element.name).second)
      Fail(
          "{}: the name \"{}\" occurs twice; names must differ (use column = \"...\" to read a "
          "column twice)",
          where, element.name);
}

void CheckCriteoColumn(const std::string& column, const std::string& where) {
  const std::vector<std::string>& known = CriteoColumns();
  if (std::find(known.begin(), known.end(), column) != known.end()) return;
  const std::string nearest = NearestName(column, known);
  Fail("{}: found column \"{}\", expected a Criteo column (label, I1..I13, C1..C26){}", where,
       column, nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
}

// The options that name columns of their own: allowed where the format has columns.
void CheckOtherColumns(const DataConfig& config) {
  const bool qid = config.format == DataFormat::kLibsvm && config.group == "qid";
  const std::pair<const char*, const std::string*> options[] = {
      {"data.weight", &config.weight},
      {"data.timestamp", &config.timestamp},
      {"data.group", &config.group}};
  for (const auto& [name, column] : options) {
    if (column->empty() || (qid && column == &config.group)) continue;
    if (!HasColumns(config.format))
      Fail("{} = \"{}\": format \"{}\" has no such column{}", name, *column,
           FormatName(config.format),
           config.format == DataFormat::kLibsvm ? " (data.group = \"qid\" is possible)" : "");
    if (config.format == DataFormat::kCriteo) CheckCriteoColumn(*column, name);
  }
  if (!HasColumns(config.format)) return;
  if (config.label.empty()) Fail("data.label is empty; name the column of the label");
  if (config.format == DataFormat::kCriteo) CheckCriteoColumn(config.label, "data.label");
}

void CheckText(const DataConfig& config) {
  if (config.max_line_bytes < 1 || config.max_line_bytes > kMaxLineBytes)
    Fail("data.max_line_bytes = {}, expected 1 to {}", config.max_line_bytes, kMaxLineBytes);
  if (config.delimiter.empty()) return;
  if (config.format != DataFormat::kCsv && config.format != DataFormat::kTsv)
    Fail("data.delimiter is for csv and tsv; format \"{}\" has its own", FormatName(config.format));
  if (config.delimiter.size() != 1 || config.delimiter.find_first_of("\"\r\n") == 0)
    Fail("data.delimiter: expected one character other than a quote or a line end");
}

}  // namespace

const char* FormatName(DataFormat format) {
  switch (format) {
    case DataFormat::kCriteo:
      return "criteo";
    case DataFormat::kCsv:
      return "csv";
    case DataFormat::kTsv:
      return "tsv";
    case DataFormat::kLibsvm:
      return "libsvm";
    case DataFormat::kLibffm:
      return "libffm";
    case DataFormat::kSynthetic:
      return "synthetic";
  }
  return "?";
}

const std::vector<std::string>& CriteoColumns() {
  static const std::vector<std::string> columns = [] {
    std::vector<std::string> names = {"label"};
    for (int i = 1; i <= 13; ++i) names.push_back(fmt::format("I{}", i));
    for (int i = 1; i <= 26; ++i) names.push_back(fmt::format("C{}", i));
    return names;
  }();
  return columns;
}

void CheckFeatures(const DataConfig& config, const std::vector<SlotConfig>& slots,
                   const std::vector<DenseConfig>& dense) {
  CheckText(config);
  CheckOtherColumns(config);
  CheckDistinct(slots, "data.slots");
  CheckDistinct(dense, "data.dense");
  CheckLinearTables(slots);
  if (!dense.empty() && !HasColumns(config.format) && config.format != DataFormat::kSynthetic)
    Fail("data.dense: format \"{}\" has no dense columns", FormatName(config.format));
  for (const SlotConfig& slot : slots) {
    CheckSlot(config, slot);
    if (config.format == DataFormat::kCriteo) CheckCriteoColumn(slot.column, "data.slots");
    if (HasColumns(config.format) && slot.column == config.label)
      Fail("data.slots: slot \"{}\" reads the label's column \"{}\"", slot.name, config.label);
  }
  for (const DenseConfig& column : dense) {
    CheckDense(column);
    if (config.format == DataFormat::kCriteo) CheckCriteoColumn(column.column, "data.dense");
    if (HasColumns(config.format) && column.column == config.label)
      Fail("data.dense: column \"{}\" reads the label's column \"{}\"", column.name, config.label);
  }
}

}  // namespace terrace
