#include "model/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"

namespace terrace {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// An integer that orders as the score does. -0 and +0 are one score, hence the addition.
uint32_t OrderedBits(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

// (score, example) packed so that plain integer order is score order, then example order.
uint64_t PackRank(float score, size_t example) {
  return static_cast<uint64_t>(OrderedBits(score)) << 32 | example;
}

// The area under the curve, met from the lowest score up: a positive beats every negative below it
// and half of those that tie with it.
class AucSweep {
 public:
  // The positive and negative mass of one score.
  void AddTies(double positive, double negative) {
    wins_ += positive * (negatives_ + 0.5 * negative);
    positives_ += positive;
    negatives_ += negative;
  }
  double Value() const {
    const double pairs = positives_ * negatives_;
    return pairs > 0 ? wins_ / pairs : kUndefined;
  }

 private:
  double wins_ = 0;
  double positives_ = 0;
  double negatives_ = 0;
};

struct Examples {
  std::span<const float> labels;
  std::span<const float> weights;

  double Weight(size_t i) const { return weights.empty() ? 1.0 : weights[i]; }
};

// AUC of the examples named by `ranks`, which are sorted.
double AucOfSorted(std::span<const uint64_t> ranks, const Examples& examples) {
  AucSweep sweep;
  for (size_t i = 0; i < ranks.size();) {
    const uint64_t score = ranks[i] >> 32;
    double positive = 0;
    double negative = 0;
    for (; i < ranks.size() && ranks[i] >> 32 == score; ++i) {
      const uint32_t e = static_cast<uint32_t>(ranks[i]);
      const double weight = examples.Weight(e);
      const double label = examples.labels[e];
      positive += weight * label;
      negative += weight * (1 - label);
    }
    sweep.AddTies(positive, negative);
  }
  return sweep.Value();
}

void CheckSizes(size_t n, std::span<const float> labels, std::span<const float> weights) {
  TERRACE_CHECK(labels.size() == n);
  TERRACE_CHECK(weights.empty() || weights.size() == n);
  TERRACE_CHECK(n <= std::numeric_limits<uint32_t>::max());
}

double Entropy(double rate) {
  if (!(rate > 0 && rate < 1)) return kUndefined;
  return -rate * std::log(rate) - (1 - rate) * std::log1p(-rate);
}

double Ratio(double a, double b) { return b != 0 ? a / b : kUndefined; }

template <typename T>
void Append(std::span<const T> from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

template <typename T>
void Release(std::vector<T>* v) {
  std::vector<T>().swap(*v);
}

}  // namespace

double ExactAuc(std::span<const float> scores, std::span<const float> labels,
                std::span<const float> weights) {
  CheckSizes(scores.size(), labels, weights);
  std::vector<uint64_t> ranks(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) ranks[i] = PackRank(scores[i], i);
  std::sort(ranks.begin(), ranks.end());
  return AucOfSorted(ranks, {labels, weights});
}

BucketedAuc::BucketedAuc(int64_t buckets) : positives_(buckets, 0.0), negatives_(buckets, 0.0) {
  TERRACE_CHECK(buckets >= 1);
}

void BucketedAuc::Add(std::span<const float> probabilities, std::span<const float> labels,
                      std::span<const float> weights) {
  CheckSizes(probabilities.size(), labels, weights);
  const Examples examples{labels, weights};
  const float buckets = static_cast<float>(positives_.size());
  const float last = buckets - 1;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const float place = probabilities[i] * buckets;
    const size_t b = static_cast<size_t>(place > 0 ? std::min(place, last) : 0.0f);
    const double weight = examples.Weight(i);
    positives_[b] += weight * labels[i];
    negatives_[b] += weight * (1 - static_cast<double>(labels[i]));
  }
}

double BucketedAuc::Value() const {
  AucSweep sweep;
  for (size_t b = 0; b < positives_.size(); ++b) sweep.AddTies(positives_[b], negatives_[b]);
  return sweep.Value();
}

void BucketedAuc::Clear() {
  std::fill(positives_.begin(), positives_.end(), 0.0);
  std::fill(negatives_.begin(), negatives_.end(), 0.0);
}

void BucketedAuc::Save(std::string* to) const {
  AppendValue(to, uint64_t{positives_.size()});
  for (const std::vector<double>* side : {&positives_, &negatives_})
    for (double weight : *side) AppendValue(to, weight);
}

void BucketedAuc::Load(std::string_view* saved) {
  if (TakeValue<uint64_t>(saved) != positives_.size())
    throw Error(ErrorCode::kCorruption, "another number of AUC buckets; restore an older snapshot");
  std::vector<double> sides[2];
  for (std::vector<double>& side : sides)
    for (size_t i = 0; i < positives_.size(); ++i) side.push_back(TakeValue<double>(saved));
  positives_.swap(sides[0]);
  negatives_.swap(sides[1]);
}

GroupAuc ComputeGroupAuc(std::span<const float> scores, std::span<const float> labels,
                         std::span<const float> weights, std::span<const uint64_t> groups) {
  CheckSizes(scores.size(), labels, weights);
  TERRACE_CHECK(groups.size() == scores.size());
  struct Entry {
    uint64_t group;
    uint64_t rank;
    auto operator<=>(const Entry&) const = default;
  };
  std::vector<Entry> entries(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) entries[i] = {groups[i], PackRank(scores[i], i)};
  std::sort(entries.begin(), entries.end());

  const Examples examples{labels, weights};
  GroupAuc result;
  double weighted_auc = 0;
  double weight_sum = 0;
  std::vector<uint64_t> ranks;
  for (size_t i = 0; i < entries.size();) {
    const uint64_t group = entries[i].group;
    double weight = 0;
    ranks.clear();
    for (; i < entries.size() && entries[i].group == group; ++i) {
      ranks.push_back(entries[i].rank);
      weight += examples.Weight(static_cast<uint32_t>(entries[i].rank));
    }
    const double auc = AucOfSorted(ranks, examples);
    if (std::isnan(auc)) {
      ++result.skipped_groups;
      continue;
    }
    ++result.groups;
    weighted_auc += weight * auc;
    weight_sum += weight;
  }
  result.value = Ratio(weighted_auc, weight_sum);
  return result;
}

void MetricsCollector::Add(std::span<const float> probabilities, std::span<const float> labels,
                           std::span<const float> weights, std::span<const uint64_t> group_ids,
                           std::span<const float> truth, double loss_sum) {
  CheckSizes(probabilities.size(), labels, weights);
  TERRACE_CHECK(group_ids.empty() || group_ids.size() == probabilities.size());
  TERRACE_CHECK(truth.empty() || truth.size() == probabilities.size());
  loss_sum_ += loss_sum;
  const Examples examples{labels, weights};
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const double weight = examples.Weight(i);
    weight_sum_ += weight;
    label_sum_ += weight * labels[i];
    prediction_sum_ += weight * probabilities[i];
  }
  bucketed_.Add(probabilities, labels, weights);
  if (!truth.empty()) {
    has_truth_ = true;
    bucketed_truth_.Add(truth, labels, weights);
  }

  examples_ += static_cast<int64_t>(probabilities.size());
  if (examples_ > exact_limit_) {
    for (auto* v : {&scores_, &labels_, &weights_, &truth_}) Release(v);
    Release(&group_ids_);
    return;
  }
  Append(probabilities, &scores_);
  Append(labels, &labels_);
  Append(weights, &weights_);
  Append(truth, &truth_);
  Append(group_ids, &group_ids_);
}

Metrics MetricsCollector::Compute() const {
  Metrics m;
  m.examples = examples_;
  m.logloss = Ratio(loss_sum_, weight_sum_);
  m.label_rate = Ratio(label_sum_, weight_sum_);
  m.normalized_entropy = m.logloss / Entropy(m.label_rate);
  m.copc = Ratio(label_sum_, prediction_sum_);
  m.auc_bucketed = bucketed_.Value();
  m.has_best_auc = has_truth_;
  m.auc_exact = examples_ <= exact_limit_;
  if (!m.auc_exact) {
    m.auc = m.auc_bucketed;
    if (has_truth_) m.best_auc = bucketed_truth_.Value();
    return m;
  }
  m.auc = ExactAuc(scores_, labels_, weights_);
  if (has_truth_) m.best_auc = ExactAuc(truth_, labels_, weights_);
  m.has_gauc = !group_ids_.empty();
  if (m.has_gauc) m.gauc = ComputeGroupAuc(scores_, labels_, weights_, group_ids_);
  return m;
}

}  // namespace terrace
