#include "model/param_map.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace terrace {
namespace {

std::vector<ColumnName> NamesOn(const ParamAxis& axis, const ColumnNames& names) {
  std::vector<ColumnName> all;
  for (const LayerInput& columns : axis.columns) {
    const std::vector<ColumnName> some = NamesOf(names, columns);
    all.insert(all.end(), some.begin(), some.end());
  }
  TERRACE_CHECK(static_cast<int64_t>(all.size()) == axis.size);
  return all;
}

// Of each element of `to`, the one of `from`, or -1.
std::vector<int64_t> MatchAxis(const ParamAxis& from, const ColumnNames& from_names,
                               const ParamAxis& to, const ColumnNames& to_names) {
  std::vector<int64_t> match(static_cast<size_t>(to.size), -1);
  if (to.columns.empty()) {
    for (int64_t i = 0; i < std::min(from.size, to.size); ++i) match[static_cast<size_t>(i)] = i;
    return match;
  }
  std::map<ColumnName, int64_t> places;
  for (const ColumnName& name : NamesOn(from, from_names)) {
    const auto next = static_cast<int64_t>(places.size());
    TERRACE_CHECK(places.emplace(name, next).second);  // a name is of one column
  }
  const std::vector<ColumnName> names = NamesOn(to, to_names);
  for (size_t i = 0; i < names.size(); ++i)
    if (const auto at = places.find(names[i]); at != places.end()) match[i] = at->second;
  return match;
}

}  // namespace

std::vector<int64_t> MatchParams(const Model& from, const Model& to) {
  const std::vector<ParamBlock> from_blocks = from.param_blocks();
  const ColumnNames from_names = from.column_names(), to_names = to.column_names();
  std::vector<int64_t> match(static_cast<size_t>(to.param_count()), -1);
  for (const ParamBlock& block : to.param_blocks()) {
    const auto old = std::ranges::find(from_blocks, block.name, &ParamBlock::name);
    if (old == from_blocks.end() || old->axes.size() != block.axes.size()) continue;
    std::vector<int64_t> places = {0};  // within the old block, of the axes so far
    for (size_t a = 0; a < block.axes.size(); ++a) {
      const std::vector<int64_t> axis =
          MatchAxis(old->axes[a], from_names, block.axes[a], to_names);
      std::vector<int64_t> next;
      next.reserve(places.size() * axis.size());
      for (const int64_t place : places)
        for (const int64_t i : axis)
          next.push_back(place < 0 || i < 0 ? -1 : place * old->axes[a].size + i);
      places = std::move(next);
    }
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] >= 0) match[static_cast<size_t>(block.begin) + i] = old->begin + places[i];
  }
  return match;
}

}  // namespace terrace
