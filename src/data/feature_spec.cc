#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "data/feature_checks.h"
#include "data/features.h"
#include "data/name_range.h"

namespace terrace {
namespace {

template <typename... Args>
[[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

// Elements with ranges in `name` (and, of the same length, in `column`) written out.
template <typename T>
std::vector<T> ExpandList(const std::vector<T>& list, const char* where) {
  std::vector<T> expanded;
  for (const T& element : list) {
    if (element.name.empty()) Fail("{}: an element has no name; give it name = \"...\"", where);
    const std::vector<std::string> names = ExpandNames(element.name, where);
    const std::vector<std::string> columns = ExpandNames(element.column, where);
    if (!element.column.empty() && names.size() != columns.size())
      Fail("{}: \"{}\" stands for {} names and its column \"{}\" for {}; expected as many", where,
           element.name, names.size(), element.column, columns.size());
    for (size_t i = 0; i < names.size(); ++i) {
      expanded.push_back(element);
      expanded.back().name = names[i];
      expanded.back().column = element.column.empty() ? names[i] : columns[i];
    }
  }
  return expanded;
}

template <typename T>
T Named(const std::string& name) {
  T element;
  element.name = element.column = name;
  return element;
}

template <typename T>
std::vector<T> Numbered(const char* prefix, int64_t first, int64_t count) {
  std::vector<T> list;
  for (int64_t i = first; i < first + count; ++i)
    list.push_back(Named<T>(fmt::format("{}{}", prefix, i)));
  return list;
}

std::vector<SlotConfig> ResolveSlots(const DataConfig& config) {
  std::vector<SlotConfig> slots = ExpandList(config.slots, "data.slots");
  const bool given = !slots.empty();
  switch (config.format) {
    case DataFormat::kCriteo:
      if (!given) slots = Numbered<SlotConfig>("C", 1, 26);
      break;
    case DataFormat::kCsv:
    case DataFormat::kTsv:
      if (!given)
        Fail(
            "data.slots is empty; format = \"{}\" needs the columns that become keys, for example "
            "slots = [\"user_id\", \"ad_id\"]",
            FormatName(config.format));
      break;
    case DataFormat::kLibsvm:
      if (!given) slots = {Named<SlotConfig>("features")};
      if (slots.size() != 1)
        Fail("data.slots: found {} slots, expected one: every index of a libsvm line belongs to it",
             slots.size());
      break;
    case DataFormat::kLibffm:
      if (!given && config.fields == 0)
        Fail(
            "data.fields is 0; format = \"libffm\" needs the number of fields (or data.slots, one "
            "for each field)");
      if (!given) slots = Numbered<SlotConfig>("field", 0, config.fields);
      if (config.fields != 0 && config.fields != static_cast<int64_t>(slots.size()))
        Fail("data.slots: found {} slots, expected data.fields = {}: one for each field, in order",
             slots.size(), config.fields);
      break;
    case DataFormat::kSynthetic:
      if (!given) slots = Numbered<SlotConfig>("s", 0, config.synthetic.slots);
      if (config.synthetic.slots != static_cast<int64_t>(slots.size()))
        Fail("data.slots: found {} slots, expected data.synthetic.slots = {}", slots.size(),
             config.synthetic.slots);
      break;
  }
  // A feature that a sparse line does not name is absent, not empty.
  if (config.format == DataFormat::kLibsvm || config.format == DataFormat::kLibffm)
    for (SlotConfig& slot : slots) slot.missing = MissingKey::kSkip;
  return slots;
}

std::vector<DenseConfig> ResolveDense(const DataConfig& config,
                                      const std::vector<SlotConfig>& slots) {
  std::vector<DenseConfig> dense = ExpandList(config.dense, "data.dense");
  if (config.format == DataFormat::kCriteo && dense.empty()) {
    for (DenseConfig& column : Numbered<DenseConfig>("I", 1, 13)) {
      column.log = true;
      const bool used = std::any_of(slots.begin(), slots.end(), [&](const SlotConfig& slot) {
        return slot.column == column.name;
      });
      if (!used) dense.push_back(column);
    }
  }
  if (config.format == DataFormat::kSynthetic) {
    if (dense.empty()) dense = Numbered<DenseConfig>("d", 0, config.synthetic.dense);
    if (config.synthetic.dense != static_cast<int64_t>(dense.size()))
      Fail("data.dense: found {} columns, expected data.synthetic.dense = {}", dense.size(),
           config.synthetic.dense);
  }
  return dense;
}

// The slot whose name seeds the keys of `slot`.
const std::string& SeedName(const SlotConfig& slot, const std::vector<SlotConfig>& slots) {
  if (slot.same_keys_as.empty()) return slot.name;
  const std::string where = fmt::format("data.slots: slot \"{}\"", slot.name);
  std::vector<std::string> names;
  for (const SlotConfig& other : slots) {
    names.push_back(other.name);
    if (other.name != slot.same_keys_as) continue;
    if (!other.same_keys_as.empty())
      Fail(
          "{}: same_keys_as = \"{}\", a slot that itself has same_keys_as; name the slot at the "
          "end of the chain",
          where, slot.same_keys_as);
    if (other.table != slot.table)
      Fail(
          "{}: same_keys_as = \"{}\" shares rows, but the tables are \"{}\" and \"{}\"; give both "
          "slots one table",
          where, slot.same_keys_as, slot.table, other.table);
    if (other.linear_table != slot.linear_table)
      Fail(
          "{}: same_keys_as = \"{}\" shares rows, but linear_table is \"{}\" and \"{}\"; give both "
          "slots the same",
          where, slot.same_keys_as, slot.linear_table, other.linear_table);
    return other.name;
  }
  const std::string nearest = NearestName(slot.same_keys_as, names);
  Fail("{}: same_keys_as = \"{}\" is not a slot{}", where, slot.same_keys_as,
       nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
}

// Gives slot number `slot` the next place of a group.
int AddPlace(FeatureSpec* spec, int group, size_t slot) {
  std::vector<int>& places = spec->group_slots[group];
  places.push_back(static_cast<int>(slot));
  return static_cast<int>(places.size()) - 1;
}

}  // namespace

FeatureSpec FeatureSpec::Resolve(const DataConfig& config) {
  const std::vector<SlotConfig> slots = ResolveSlots(config);
  const std::vector<DenseConfig> dense = ResolveDense(config, slots);
  CheckFeatures(config, slots, dense);

  FeatureSpec spec;
  std::map<std::string, int> group_of;  // sorted: groups are in table-name order
  for (const SlotConfig& slot : slots) {
    group_of[slot.table] = 0;
    if (!slot.linear_table.empty()) group_of[slot.linear_table] = 0;
  }
  for (auto& [table, group] : group_of) {
    group = static_cast<int>(spec.group_names.size());
    spec.group_names.push_back(table);
  }
  spec.group_slots.resize(spec.group_names.size());
  spec.vectors_only.resize(spec.group_names.size(), 0);
  for (const SlotConfig& slot : slots) {
    Slot resolved;
    resolved.config = slot;
    resolved.seed = SlotSeed(SeedName(slot, slots));
    resolved.missing_key = TextKey(resolved.seed, "");
    resolved.group = group_of[slot.table];
    resolved.index_in_group = AddPlace(&spec, resolved.group, spec.slots.size());
    if (!slot.linear_table.empty()) {
      spec.vectors_only[resolved.group] = 1;
      resolved.linear_group = group_of[slot.linear_table];
      resolved.linear_index = AddPlace(&spec, resolved.linear_group, spec.slots.size());
    }
    spec.slots.push_back(std::move(resolved));
  }
  for (const DenseConfig& column : dense) spec.dense.push_back(DenseColumn{.config = column});

  for (const std::vector<int>& places : spec.group_slots)
    spec.shape.group_slots.push_back(static_cast<int>(places.size()));
  spec.shape.dense_columns = static_cast<int>(spec.dense.size());
  spec.shape.has_values =
      config.format == DataFormat::kLibsvm || config.format == DataFormat::kLibffm;
  spec.shape.has_weights = !config.weight.empty();
  spec.shape.has_group_ids = !config.group.empty();
  spec.shape.has_timestamps = !config.timestamp.empty();
  spec.shape.has_truth = config.format == DataFormat::kSynthetic;
  return spec;
}

}  // namespace terrace
