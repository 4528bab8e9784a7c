// What the parameters of a model are, by name.
#include <fmt/format.h>

#include "base/error.h"
#include "model/model.h"

namespace terrace {
namespace {

std::string NameOr(const std::vector<std::string>& names, size_t i) {
  return i < names.size() ? names[i] : fmt::format("#{}", i);
}

}  // namespace

std::vector<int64_t> ParamBlock::shape() const {
  std::vector<int64_t> sizes;
  for (const ParamAxis& axis : axes) sizes.push_back(axis.size);
  return sizes;
}

int64_t ParamBlock::size() const {
  int64_t size = 1;
  for (const ParamAxis& axis : axes) size *= axis.size;
  return size;
}

std::vector<ColumnName> NamesOf(const ColumnNames& names, const LayerInput& columns) {
  const std::vector<ColumnName>& all = names[columns.tensor];
  TERRACE_CHECK(columns.begin + columns.cols <= static_cast<int64_t>(all.size()));
  const auto begin = all.begin() + columns.begin;
  return {begin, begin + columns.cols};
}

std::vector<ParamBlock> Model::param_blocks() const {
  std::vector<ParamBlock> all;
  int64_t params = 0;
  for (const auto& layer : layers_)
    for (ParamBlock& block : layer->blocks()) {
      TERRACE_CHECK(block.begin == params);
      params += block.size();
      all.push_back(std::move(block));
    }
  TERRACE_CHECK(params == param_count_);
  return all;
}

ColumnNames Model::column_names() const {
  ColumnNames names(tensor_width_.size());
  std::vector<ColumnName>& input = names[SliceRun::kInput];
  for (size_t s = 0; s < inputs_.slot_dims.size(); ++s)
    for (int i = 0; i < inputs_.slot_dims[s]; ++i)
      input.push_back({"slot " + NameOr(inputs_.slot_names, s), "", i});
  for (size_t c = 0; c < static_cast<size_t>(dense_columns_); ++c)
    input.push_back({"dense " + NameOr(inputs_.dense_names, c), "", 0});
  for (const auto& layer : layers_) layer->NameColumns(&names);
  return names;
}

}  // namespace terrace
