#include "train/table_schemas.h"

namespace terrace {

std::vector<TableSchema> TableSchemas(const RunConfig& config, const FeatureSpec& spec) {
  std::vector<TableSchema> schemas;
  for (size_t g = 0; g < spec.group_names.size(); ++g) {
    const std::string& name = spec.group_names[g];
    TableConfig table = config.tables.at(name);
    if (!UsesVectors(config.model.kind)) table.dim = 0;
    const bool linear = UsesLinear(config.model.kind) && spec.vectors_only[g] == 0;
    schemas.push_back(TableSchema::Make(name, table, linear, static_cast<uint64_t>(config.seed)));
  }
  return schemas;
}

ModelInputs InputsOf(const std::vector<TableSchema>& schemas, const FeatureSpec& spec) {
  ModelInputs inputs;
  for (size_t g = 0; g < schemas.size(); ++g) {
    for (int s : spec.group_slots[g]) {
      inputs.slot_dims.push_back(schemas[g].layout.dim);
      inputs.slot_names.push_back(spec.slots[s].config.name);
    }
  }
  inputs.dense_columns = spec.shape.dense_columns;
  for (const DenseColumn& column : spec.dense) inputs.dense_names.push_back(column.config.name);
  return inputs;
}

}  // namespace terrace
