#include "train/table_schemas.h"

#include "model/model.h"

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

}  // namespace terrace
