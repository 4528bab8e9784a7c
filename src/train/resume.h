// Goes on from a snapshot: which runs may, and how their state comes back.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "train/model_state.h"
#include "train/run_config.h"

namespace terrace {

// The names of a snapshot's files that the train stage writes; those of each table come with it.
inline constexpr const char* kConfigFile = "config.toml";
inline constexpr const char* kReaderFile = "reader";
inline constexpr const char* kProgressFile = "progress";
inline constexpr const char* kFeaturesFile = "features";

// The config of the run that took it.
RunConfig ReadSnapshotConfig(const Snapshot& snapshot);
std::string ConfigText(const RunConfig& config);

// Throws Error(kUsage) that lists every setting by which `now` would train another model than the
// snapshot's. Returns lines on settings that changed and may: those that make results differ from
// an uninterrupted run. Where rows live, how many threads work and how long the run is may change
// without a word.
std::vector<std::string> CheckResumable(const Snapshot& snapshot, const RunConfig& saved,
                                        const RunConfig& now);

// Everything of the model but rows: the dense part, the life of tables, admissions.
void LoadModel(const Snapshot& snapshot, ModelState* state);

}  // namespace terrace
