// Metrics of click predictions. Every sum has a fixed order, so results are the same run after run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

// Area under the ROC curve, exact: ties count one half. Weighted. NaN (quiet) if only one class.
// Labels in [0, 1] may be fractional: an example counts `label` as positive, the rest as negative.
double ExactAuc(std::span<const float> scores, std::span<const float> labels,
                std::span<const float> weights);  // weights may be empty

// AUC over scores rounded into equal buckets of [0, 1]: streaming, fixed memory.
class BucketedAuc {
 public:
  explicit BucketedAuc(int64_t buckets = 1 << 16);
  void Add(std::span<const float> probabilities, std::span<const float> labels,
           std::span<const float> weights);
  double Value() const;
  void Clear();

  void Save(std::string* to) const;
  // Takes what Save wrote off the front. Throws Error(kCorruption); then nothing has changed.
  void Load(std::string_view* saved);

 private:
  std::vector<double> positives_;
  std::vector<double> negatives_;
};

// Mean AUC of the groups, weighted by their examples (the sum of their weights); groups with one
// class only are left out. NaN if none is left.
struct GroupAuc {
  double value = 0;
  int64_t groups = 0;          // that counted
  int64_t skipped_groups = 0;  // one class only
};
GroupAuc ComputeGroupAuc(std::span<const float> scores, std::span<const float> labels,
                         std::span<const float> weights, std::span<const uint64_t> groups);

// NaN stands for what the examples do not define (no examples, one class only).
struct Metrics {
  int64_t examples = 0;
  double auc = 0;  // exact, or bucketed where there were more than the limit of examples
  bool auc_exact = true;
  double auc_bucketed = 0;
  double logloss = 0;
  double normalized_entropy = 0;  // log loss / entropy of the base rate
  double copc = 0;                // clicks observed / clicks predicted: 1 is calibrated
  double label_rate = 0;
  bool has_gauc = false;
  GroupAuc gauc;
  bool has_best_auc = false;
  double best_auc = 0;  // of the generator's own probabilities
};

// Collects predictions and computes everything at the end. One thread.
class MetricsCollector {
 public:
  // Beyond exact_limit examples only streaming metrics are kept (bucketed AUCs; no GAUC).
  explicit MetricsCollector(int64_t exact_limit) : exact_limit_(exact_limit) {}
  // weights, group_ids and truth: for every example, or empty in every call.
  void Add(std::span<const float> probabilities, std::span<const float> labels,
           std::span<const float> weights, std::span<const uint64_t> group_ids,
           std::span<const float> truth, double loss_sum);
  Metrics Compute() const;
  int64_t examples() const { return examples_; }

 private:
  const int64_t exact_limit_;
  int64_t examples_ = 0;
  double loss_sum_ = 0;
  double weight_sum_ = 0;
  double label_sum_ = 0;       // weighted
  double prediction_sum_ = 0;  // weighted
  BucketedAuc bucketed_;
  bool has_truth_ = false;
  BucketedAuc bucketed_truth_;
  std::vector<float> scores_, labels_, weights_, truth_;
  std::vector<uint64_t> group_ids_;
};

}  // namespace terrace
