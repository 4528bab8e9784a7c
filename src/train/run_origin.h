// What a run goes on from: nothing, or the last snapshot in its directory.
//
// Used by the train stage's thread while the run starts. Failure: Error(kUsage) for snapshots that
// are not asked for or of another model, what Snapshot throws for damaged ones; nothing has changed
// then but leftovers of earlier runs, which are removed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "checkpoint/snapshot.h"
#include "train/growth.h"
#include "train/model_state.h"
#include "train/run_config.h"
#include "train/trainer.h"
#include "train/work_item.h"

namespace terrace {

class RunningTrainMetrics;

class RunOrigin {
 public:
  // Locks snapshot.dir for as long as this lives, and checks that the run may go on from what is
  // there. All outlive it.
  RunOrigin(Env& env, const RunConfig& config, const RunOptions& options);

  bool takes_snapshots() const { return lock_ != nullptr; }
  bool resumes() const { return from_ != nullptr; }

  // If it resumes: all but the rows.
  void LoadFeatures(FeatureSpec* spec) const;
  ReaderState Restore(ModelState* state, RunReport* report, RunningTrainMetrics* running,
                      int64_t* epoch);
  // The stores that the run needs, with the rows it begins with. The snapshot is closed then.
  void OpenStores(ModelState* state, RunReport* report);

  // Of the snapshots that the run will take.
  const std::vector<std::string>& lineage() const { return lineage_; }

 private:
  void ReportGrowth(RunReport* report);
  // Of stores behind tables in memory alone.
  std::string LiveStores() const { return config_.snapshot.dir + "/live"; }

  Env& env_;
  const RunConfig& config_;
  const RunOptions& options_;
  std::unique_ptr<FileLock> lock_;  // null: no snapshots are taken
  std::unique_ptr<Snapshot> from_;  // null: from the start
  std::unique_ptr<Growth> growth_;  // null: the same model
  std::vector<std::string> lineage_;
};

}  // namespace terrace
