#include "data/column_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kMaxNamesShown = 60;

// Looks columns up by name.
class Header {
 public:
  Header(const std::vector<std::string>& names, const std::string& file)
      : names_(names), file_(file) {
    for (size_t i = 0; i < names.size(); ++i) places_[names[i]].push_back(i);
  }

  uint32_t Find(const std::string& name, const std::string& wanted_by) const {
    const auto found = places_.find(name);
    if (found == places_.end()) FailMissing(name, wanted_by);
    if (found->second.size() > 1)
      throw Error(ErrorCode::kData,
                  fmt::format("{}:1: the header has {} columns \"{}\", needed by {}; rename them",
                              file_, found->second.size(), name, wanted_by));
    return static_cast<uint32_t>(found->second[0]);
  }
  int64_t FindOptional(const std::string& name, const char* wanted_by) const {
    return name.empty() ? -1 : int64_t{Find(name, wanted_by)};
  }

 private:
  [[noreturn]] void FailMissing(const std::string& name, const std::string& wanted_by) const {
    const size_t shown = std::min(names_.size(), kMaxNamesShown);
    const std::string nearest = NearestName(name, names_);
    throw Error(
        ErrorCode::kData,
        fmt::format("{}:1: the header has no column \"{}\", needed by {}{}. Columns found: {}{}. "
                    "Correct the config, or the header.",
                    file_, name, wanted_by,
                    nearest.empty() ? "" : fmt::format(" (nearest: \"{}\")", nearest),
                    fmt::join(names_.begin(), names_.begin() + shown, ", "),
                    shown < names_.size() ? fmt::format(", ... ({} in all)", names_.size()) : ""));
  }

  const std::vector<std::string>& names_;
  const std::string& file_;
  std::unordered_map<std::string_view, std::vector<size_t>> places_;
};

DenseCell MakeDenseCell(const DenseColumn& transform, uint32_t column) {
  DenseCell cell;
  cell.column = column;
  cell.missing = static_cast<float>(transform.config.missing);
  cell.transform = transform;
  for (uint32_t i = 0; i < kSmallNumbers; ++i) cell.small.push_back(transform.Transform(i));
  if (!std::all_of(cell.small.begin(), cell.small.end(), [](float x) { return std::isfinite(x); }))
    cell.small.clear();
  return cell;
}

bool IsPlain(const SlotConfig& config) {
  return config.separator.empty() && config.bucket == Bucketing::kNone &&
         config.missing == MissingKey::kKey;
}

}  // namespace

ColumnPlan::ColumnPlan(const DataConfig& config, const FeatureSpec& features,
                       const std::vector<std::string>& columns, const std::string& file,
                       bool labels)
    : spec(features), names(columns) {
  const Header header(columns, file);
  if (labels) label = header.Find(config.label, "data.label");
  weight = header.FindOptional(config.weight, "data.weight");
  timestamp = header.FindOptional(config.timestamp, "data.timestamp");
  group = header.FindOptional(config.group, "data.group");
  group_seed = SlotSeed(config.group);
  for (const DenseColumn& column : spec.dense)
    dense.push_back(MakeDenseCell(
        column,
        header.Find(column.config.column, fmt::format("dense column \"{}\"", column.config.name))));
  for (const std::vector<int>& slots : spec.group_slots) {
    std::vector<SlotCell>& cells = groups.emplace_back(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot& slot = spec.slots[slots[i]];
      cells[i].column =
          header.Find(slot.config.column, fmt::format("slot \"{}\"", slot.config.name));
      cells[i].seed = slot.seed;
      cells[i].separator = slot.config.separator.empty() ? '\0' : slot.config.separator[0];
      cells[i].config = &slot.config;
    }
    uint32_t run = 0;
    for (auto cell = cells.rbegin(); cell != cells.rend(); ++cell)
      cell->plain_run = run = IsPlain(*cell->config) ? run + 1 : 0;
  }
}

}  // namespace terrace
