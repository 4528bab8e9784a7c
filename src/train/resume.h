// Goes on from a snapshot: which runs may, and how their state comes back.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "train/growth.h"
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

struct ResumeCheck {
  // On settings that changed and may: those that make results differ from an uninterrupted run.
  std::vector<std::string> notes;
  bool grown = false;  // there are new slots, new tables or larger dims
};
// Throws Error(kUsage) that lists every setting by which `now` would train another model than the
// snapshot's; growth is none of these if it is allowed. Where rows live, how many threads work and
// how long the run is may change without a word.
ResumeCheck CheckResumable(const Snapshot& snapshot, const RunConfig& saved, const RunConfig& now,
                           bool allow_growth);

// Everything of the model but rows: the dense part, the life of tables, admissions. `growth`: null
// if the model is the snapshot's.
void LoadModel(const Snapshot& snapshot, ModelState* state, Growth* growth);

}  // namespace terrace
