#include "model/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <map>

namespace terrace {
namespace {

using Floats = std::vector<float>;

// The definition: over all pairs, how often the positive one scores higher.
double NaiveAuc(const Floats& scores, const Floats& labels, const Floats& weights) {
  double wins = 0;
  double pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      const double wi = weights.empty() ? 1 : weights[i];
      const double wj = weights.empty() ? 1 : weights[j];
      const double pair = wi * labels[i] * wj * (1 - static_cast<double>(labels[j]));
      pairs += pair;
      wins += pair * (scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0);
    }
  }
  return pairs > 0 ? wins / pairs : std::numeric_limits<double>::quiet_NaN();
}

struct Sample {
  Floats scores, labels, weights;
};

// Scores from a few levels, so that ties are common; labels 0, 1 or fractional; maybe weights.
Sample AnySample(bool fractional) {
  const int n = *rc::gen::inRange(0, 60);
  const bool weighted = *rc::gen::arbitrary<bool>();
  const int levels = *rc::gen::element(1, 3, 1000);
  Sample s;
  for (int i = 0; i < n; ++i) {
    s.scores.push_back(static_cast<float>(*rc::gen::inRange(0, levels + 1)) / levels);
    s.labels.push_back(fractional ? static_cast<float>(*rc::gen::inRange(0, 9)) / 8
                                  : static_cast<float>(*rc::gen::inRange(0, 2)));
    if (weighted) s.weights.push_back(static_cast<float>(*rc::gen::inRange(0, 5)) / 2);
  }
  return s;
}

bool SameOrBothNan(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-12;
}

TEST(ExactAuc, IsTheShareOfPairsInOrder) {
  EXPECT_TRUE(rc::check([] {
    const Sample s = AnySample(*rc::gen::arbitrary<bool>());
    RC_ASSERT(SameOrBothNan(ExactAuc(s.scores, s.labels, s.weights),
                            NaiveAuc(s.scores, s.labels, s.weights)));
  }));
}

TEST(ExactAuc, TakesAnyFiniteScoreAndTreatsBothZerosAsOne) {
  const float big = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const Floats scores = {-big, -1.5f, -tiny, -0.0f, 0.0f, tiny, 2.0f, big};
  const Floats labels = {1, 0, 1, 1, 0, 0, 1, 1};
  EXPECT_DOUBLE_EQ(ExactAuc(scores, labels, {}), NaiveAuc(scores, labels, {}));
  EXPECT_DOUBLE_EQ(ExactAuc(Floats{-0.0f, 0.0f}, Floats{0, 1}, {}), 0.5);
}

TEST(ExactAuc, IsUndefinedForOneClassOrNoWeight) {
  EXPECT_TRUE(std::isnan(ExactAuc({}, {}, {})));
  EXPECT_TRUE(std::isnan(ExactAuc(Floats{0.1f, 0.2f}, Floats{1, 1}, {})));
  EXPECT_TRUE(std::isnan(ExactAuc(Floats{0.1f, 0.2f}, Floats{0, 0}, {})));
  EXPECT_TRUE(std::isnan(ExactAuc(Floats{0.1f, 0.2f}, Floats{0, 1}, Floats{1, 0})));
}

TEST(ExactAuc, IsOneHalfWhenEverythingTies) {
  EXPECT_EQ(ExactAuc(Floats(5, 0.3f), Floats{0, 1, 1, 0, 1}, {}), 0.5);
}

TEST(ExactAuc, CountsAWeightAsRepeatedExamples) {
  const double weighted =
      ExactAuc(Floats{0.1f, 0.4f, 0.3f, 0.8f}, Floats{0, 0, 1, 1}, Floats{1, 2, 3, 1});
  const double repeated =
      ExactAuc(Floats{0.1f, 0.4f, 0.4f, 0.3f, 0.3f, 0.3f, 0.8f}, Floats{0, 0, 0, 1, 1, 1, 1}, {});
  EXPECT_DOUBLE_EQ(weighted, repeated);
}

TEST(BucketedAuc, IsTheExactAucOfScoresRoundedToBuckets) {
  EXPECT_TRUE(rc::check([] {
    const Sample s = AnySample(*rc::gen::arbitrary<bool>());
    const int64_t buckets = *rc::gen::element<int64_t>(1, 7, 64, 4096);
    BucketedAuc auc(buckets);
    // In two parts: the sum goes on across calls.
    const size_t cut = s.scores.size() / 3;
    const auto part = [](const Floats& v, size_t begin, size_t end) {
      return v.empty() ? std::span<const float>() : std::span(v).subspan(begin, end - begin);
    };
    for (auto [begin, end] : {std::pair(size_t{0}, cut), std::pair(cut, s.scores.size())})
      auc.Add(part(s.scores, begin, end), part(s.labels, begin, end), part(s.weights, begin, end));
    Floats rounded;
    for (float score : s.scores)
      rounded.push_back(std::min(std::floor(score * buckets), static_cast<float>(buckets - 1)));
    RC_ASSERT(SameOrBothNan(auc.Value(), NaiveAuc(rounded, s.labels, s.weights)));
    auc.Clear();
    RC_ASSERT(std::isnan(auc.Value()));
  }));
}

TEST(BucketedAuc, KeepsScoresOutsideTheUnitIntervalInTheEndBuckets) {
  BucketedAuc auc(8);
  auc.Add(Floats{-3.0f, 0.0f, 1.0f, 7.0f}, Floats{0, 0, 1, 1}, {});
  EXPECT_EQ(auc.Value(), 1.0);
}

TEST(GroupAuc, IsTheMeanOverGroupsByTheirWeight) {
  EXPECT_TRUE(rc::check([] {
    const Sample s = AnySample(*rc::gen::arbitrary<bool>());
    std::vector<uint64_t> groups;
    std::map<uint64_t, Sample> by_group;
    for (size_t i = 0; i < s.scores.size(); ++i) {
      groups.push_back(*rc::gen::element<uint64_t>(0, 5, ~uint64_t{0}, 1));
      Sample& g = by_group[groups.back()];
      g.scores.push_back(s.scores[i]);
      g.labels.push_back(s.labels[i]);
      g.weights.push_back(s.weights.empty() ? 1 : s.weights[i]);
    }
    double sum = 0;
    double weights = 0;
    int64_t skipped = 0;
    for (const auto& [id, g] : by_group) {
      const double auc = NaiveAuc(g.scores, g.labels, g.weights);
      if (std::isnan(auc)) {
        ++skipped;
        continue;
      }
      for (float w : g.weights) {
        sum += w * auc;
        weights += w;
      }
    }
    const GroupAuc got = ComputeGroupAuc(s.scores, s.labels, s.weights, groups);
    RC_ASSERT(got.skipped_groups == skipped);
    RC_ASSERT(got.groups == static_cast<int64_t>(by_group.size()) - skipped);
    RC_ASSERT(SameOrBothNan(got.value, weights > 0 ? sum / weights : std::nan("")));
  }));
}

double LossSum(const Floats& p, const Floats& y, const Floats& w) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    sum -= (w.empty() ? 1 : w[i]) * (y[i] * std::log(p[i]) + (1 - y[i]) * std::log1p(-p[i]));
  return sum;
}

TEST(MetricsCollector, ComputesEveryMetricOfASmallRun) {
  const Floats p = {0.2f, 0.9f, 0.5f, 0.4f};
  const Floats y = {0, 1, 1, 0};
  const Floats w = {1, 2, 1, 4};
  const std::vector<uint64_t> groups = {7, 7, 9, 9};
  const Floats truth = {0.6f, 0.7f, 0.1f, 0.5f};
  MetricsCollector collector(4);
  for (size_t i = 0; i < 4; i += 2) {
    const auto two = [i](const auto& v) { return std::span(v).subspan(i, 2); };
    const auto copy = [&](const Floats& v) { return Floats(two(v).begin(), two(v).end()); };
    collector.Add(two(p), two(y), two(w), two(groups), two(truth),
                  LossSum(copy(p), copy(y), copy(w)));
  }
  const Metrics m = collector.Compute();
  EXPECT_EQ(m.examples, 4);
  EXPECT_EQ(collector.examples(), 4);
  EXPECT_TRUE(m.auc_exact);
  EXPECT_DOUBLE_EQ(m.auc, NaiveAuc(p, y, w));
  EXPECT_DOUBLE_EQ(m.auc_bucketed, NaiveAuc(p, y, w));
  EXPECT_NEAR(m.logloss, LossSum(p, y, w) / 8, 1e-12);
  EXPECT_DOUBLE_EQ(m.label_rate, 3.0 / 8);
  const double entropy = -(3.0 / 8 * std::log(3.0 / 8) + 5.0 / 8 * std::log(5.0 / 8));
  EXPECT_NEAR(m.normalized_entropy, LossSum(p, y, w) / 8 / entropy, 1e-12);
  EXPECT_NEAR(m.copc, 3 / (0.2 + 1.8 + 0.5 + 1.6), 1e-6);
  ASSERT_TRUE(m.has_gauc);
  EXPECT_EQ(m.gauc.groups, 2);
  EXPECT_EQ(m.gauc.value, 1.0);
  ASSERT_TRUE(m.has_best_auc);
  EXPECT_DOUBLE_EQ(m.best_auc, NaiveAuc(truth, y, w));
}

TEST(MetricsCollector, FallsBackToBucketsBeyondTheLimit) {
  MetricsCollector collector(3);
  const Floats p = {0.300000f, 0.300001f};  // one bucket
  const Floats truth = {0.2f, 0.8f};
  const std::vector<uint64_t> groups = {1, 1};
  for (int i = 0; i < 2; ++i) collector.Add(p, Floats{0, 1}, {}, groups, truth, 0.5);
  const Metrics m = collector.Compute();
  EXPECT_FALSE(m.auc_exact);
  EXPECT_EQ(m.auc, 0.5);
  EXPECT_EQ(m.auc_bucketed, 0.5);
  EXPECT_EQ(m.best_auc, 1.0);
  EXPECT_FALSE(m.has_gauc);
  EXPECT_DOUBLE_EQ(m.logloss, 0.25);
}

TEST(MetricsCollector, LeavesUndefinedMetricsNaN) {
  const Metrics none = MetricsCollector(10).Compute();
  EXPECT_EQ(none.examples, 0);
  for (double v : {none.auc, none.logloss, none.copc, none.label_rate, none.normalized_entropy})
    EXPECT_TRUE(std::isnan(v));
  EXPECT_FALSE(none.has_gauc);
  EXPECT_FALSE(none.has_best_auc);

  MetricsCollector collector(10);
  collector.Add(Floats{0.25f, 0.75f}, Floats{1, 1}, {}, {}, {}, 1.0);
  const Metrics one_class = collector.Compute();
  EXPECT_TRUE(std::isnan(one_class.auc));
  EXPECT_TRUE(std::isnan(one_class.normalized_entropy));
  EXPECT_EQ(one_class.label_rate, 1.0);
  EXPECT_EQ(one_class.copc, 2.0);
}

}  // namespace
}  // namespace terrace
