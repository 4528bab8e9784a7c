// What a run knows of itself beside the model: where it stands in the data and what it measured. In
// snapshots, so that a resumed run tells the same as one that was never interrupted.
//
// Load functions throw Error(kCorruption) for anything that Save does not write.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/batch.h"
#include "model/metrics.h"
#include "train/work_item.h"

namespace terrace {

struct RunReport;

// Loss and AUC of the training examples since the start of an epoch, each before its update.
class RunningTrainMetrics {
 public:
  void Add(const Batch& batch, std::span<const float> probabilities, double loss);
  void Clear();
  double loss() const { return loss_ / weight_; }
  double auc() const { return auc_.Value(); }

  void Save(std::string* to) const;
  void Load(std::string_view* saved);

 private:
  // Small, so that it stays in the cache.
  static constexpr int64_t kBuckets = 4096;
  BucketedAuc auc_{kBuckets};
  double loss_ = 0;
  double weight_ = 0;
};

std::string SaveReader(const ReaderState& reader);
ReaderState LoadReader(std::string_view saved);

// Examples, batches, epochs, evaluations and counters of the report, and the running metrics of
// `epoch`.
std::string SaveProgress(const RunReport& report, const RunningTrainMetrics& running,
                         int64_t epoch);
void LoadProgress(std::string_view saved, RunReport* report, RunningTrainMetrics* running,
                  int64_t* epoch);

}  // namespace terrace
