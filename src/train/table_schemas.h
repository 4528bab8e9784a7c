// The tables of a run, as its config makes them.
#pragma once

#include <vector>

#include "data/features.h"
#include "model/model.h"
#include "table/schema.h"
#include "train/run_config.h"

namespace terrace {

// By key group: of each table of spec.group_names. Throws Error(kUsage) for rows that cannot be.
std::vector<TableSchema> TableSchemas(const RunConfig& config, const FeatureSpec& spec);

// What these tables, with the dense columns, bring to the model.
ModelInputs InputsOf(const std::vector<TableSchema>& schemas, const FeatureSpec& spec);

}  // namespace terrace
