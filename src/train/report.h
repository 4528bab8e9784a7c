// What a run tells: the summary for scripts, the table for people.
#pragma once

#include <string>

#include "train/run_config.h"
#include "train/trainer.h"

namespace terrace {

// One JSON object; its names are listed in docs/summary.md.
std::string SummaryJson(const RunConfig& config, const RunReport& report);
// The table at the end of `terrace train`.
std::string ReportTable(const RunConfig& config, const RunReport& report);

// The same of `terrace eval`: `report` is EvaluateSnapshot's, `snapshot` a path.
std::string EvalSummaryJson(const RunConfig& config, const RunReport& report,
                            const std::string& snapshot);
std::string EvalReportTable(const RunConfig& config, const RunReport& report);

}  // namespace terrace
