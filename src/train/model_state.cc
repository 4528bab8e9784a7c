#include "train/model_state.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/random.h"
#include "tier/digest.h"

namespace terrace {

ModelState::ModelState(const RunConfig& config, const FeatureSpec& spec, Device* device) {
  const bool vectors = UsesVectors(config.model.kind);
  ModelInputs inputs;
  inputs.dense_columns = spec.shape.dense_columns;
  const auto seed = static_cast<uint64_t>(config.seed);
  int64_t column = 0;
  for (size_t g = 0; g < spec.group_names.size(); ++g) {
    TableConfig table = config.tables.at(spec.group_names[g]);
    if (!vectors) table.dim = 0;
    tables.push_back(std::make_unique<MemoryTier>(
        TableSchema::Make(spec.group_names[g], table, UsesLinear(config.model.kind), seed)));
    group_column.push_back(column);
    mean_slots.emplace_back();
    for (int s : spec.group_slots[g]) {
      inputs.slot_dims.push_back(static_cast<int>(table.dim));
      inputs.slot_names.push_back(spec.slots[s].config.name);
      mean_slots[g].push_back(spec.slots[s].config.pooling == Pooling::kMean);
      column += table.dim;
    }
  }
  model = Model::Make(config.model, inputs, device);
  params = Buffer<float>(device, model->param_count());
  dense_state =
      Buffer<float>(device, model->param_count() * DenseStatePerParam(config.optimizer.kind));
  model->InitParams(RandomBits(seed, HashBytes("dense", 0)), params.data());
}

std::string ModelState::Digest() const {
  std::vector<Hash128> parts;
  for (const auto& table : tables) parts.push_back(RowsDigest(*table));
  parts.push_back(HashBytes128(params.data(), params.size() * sizeof(float), 1));
  parts.push_back(HashBytes128(dense_state.data(), dense_state.size() * sizeof(float), 2));
  const Hash128 all = HashBytes128(parts.data(), parts.size() * sizeof(Hash128), 3);
  return fmt::format("{:016x}{:016x}", all.high, all.low);
}

int64_t ModelState::rows() const {
  int64_t total = 0;
  for (const auto& table : tables) total += table->rows();
  return total;
}

}  // namespace terrace
