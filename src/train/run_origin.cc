#include "train/run_origin.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "data/open_data.h"
#include "train/resume.h"
#include "train/run_progress.h"

namespace terrace {

RunOrigin::RunOrigin(Env& env, const RunConfig& config, const RunOptions& options)
    : env_(env), config_(config), options_(options) {
  const std::string& dir = config_.snapshot.dir;
  if (dir.empty()) return;
  lock_ = LockSnapshots(env_, dir);
  RemoveSnapshotLeftovers(env_, dir);
  if (env_.Exists(LiveStores())) RemoveTree(env_, LiveStores());
  const std::vector<SnapshotEntry> snapshots = ListSnapshots(env_, dir);
  if (snapshots.empty()) {
    if (options_.resume && options_.show_progress)
      fmt::print(stderr, "{}: no snapshot to go on from; training from the start\n", dir);
    return;
  }
  if (!options_.resume)
    throw Error(ErrorCode::kUsage,
                fmt::format("{} holds {} snapshot{} of an earlier run, the last after batch {}: "
                            "go on from it with --resume, or name another snapshot.dir",
                            dir, snapshots.size(), snapshots.size() == 1 ? "" : "s",
                            snapshots.back().batch));
  from_ = Snapshot::Open(env_, snapshots.back().path);
  const RunConfig saved = ReadSnapshotConfig(*from_);
  const ResumeCheck check = CheckResumable(*from_, saved, config_, options_.allow_new_slots);
  for (const std::string& note : check.notes)
    if (options_.show_progress) fmt::print(stderr, "changed since the snapshot: {}\n", note);
  if (check.grown) growth_ = std::make_unique<Growth>(*from_, saved, config_);
}

void RunOrigin::LoadFeatures(FeatureSpec* spec) const {
  LoadDenseStats(from_->ReadFile(kFeaturesFile), spec);
}

ReaderState RunOrigin::Restore(ModelState* state, RunReport* report, RunningTrainMetrics* running,
                               int64_t* epoch) {
  LoadModel(*from_, state, growth_.get());
  LoadProgress(from_->ReadFile(kProgressFile), report, running, epoch);
  const SnapshotInfo& info = from_->info();
  report->resumed_from = info.batch;
  report->resumed_examples = report->examples;
  lineage_ = info.lineage;
  lineage_.push_back(fmt::format("batch {}, {}", info.batch, info.created));
  if (options_.show_progress)
    fmt::print(stderr, "going on after batch {} of {}\n", info.batch, info.created);
  return LoadReader(from_->ReadFile(kReaderFile));
}

void RunOrigin::OpenStores(ModelState* state, RunReport* report) {
  ModelState::SavedRowsOf from;
  if (from_ != nullptr)
    from = [this](const std::string& table) {
      if (growth_ != nullptr) return growth_->RowsOf(table);
      return ModelState::SavedRows{from_->TablePath(table), nullptr};
    };
  ProgressLine progress;
  if (growth_ != nullptr && !growth_->report().wider_tables.empty() && options_.show_progress)
    progress.Show("rewriting the rows of wider tables");
  if (!config_.tiers.disk.path.empty())
    state->OpenDiskTier(config_.tiers, &env_, options_.open_store, from);
  else if (takes_snapshots())
    state->OpenSaveStores(LiveStores(), SaveMemory(config_.snapshot, config_.tiers), &env_,
                          options_.open_store, from);
  progress.Clear();
  if (growth_ != nullptr) ReportGrowth(report);
  from_.reset();
}

void RunOrigin::ReportGrowth(RunReport* report) {
  report->grown = true;
  report->growth = growth_->report();
  const std::vector<std::string> lines = report->growth.Lines();
  lineage_.push_back(fmt::format("{}", fmt::join(lines, "; ")));
  growth_.reset();
  if (!options_.show_progress) return;
  for (const std::string& line : lines) fmt::print(stderr, "{}\n", line);
}

}  // namespace terrace
