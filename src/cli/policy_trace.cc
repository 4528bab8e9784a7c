#include "cli/policy_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "tier/key_dedup.h"

namespace terrace {
namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

// A tier of which only positions exist. Batches are counted from 1.
class TierSimulation {
 public:
  TierSimulation(const PolicyTrace& trace, PolicyKind kind, const TierShape& tier)
      : trace_(trace),
        rows_(tier.rows),
        window_(kind == PolicyKind::kNextUse ? tier.window : 0),
        policy_(EvictionPolicy::Make(kind)),
        position_of_(trace.keys, 0),
        last_use_(trace.keys, 0),
        key_at_(tier.rows + 1),
        pins_(tier.rows + 1, 0) {
    policy_->Resize(rows_);
    score_.kind = kind;
  }

  PolicyScore Run() {
    const auto batches = static_cast<uint32_t>(trace_.batches.size());
    for (uint32_t now = 1; now <= batches; ++now) {
      if (now == batches / 2 + 1) StartCounting();
      const TraceBatch& batch = trace_.batches[now - 1];
      LookAhead(now);
      Place(batch.keys, now);
      score_.examples += batch.examples;
      for (const uint32_t key : batch.keys) known_keys_ -= last_use_[key] == now ? 1 : 0;
    }
    const auto rows = static_cast<double>(rows_);
    score_.row_bytes = static_cast<double>(policy_->bytes()) / rows;
    score_.use_ns = Ratio(use_seconds_ * 1e9, static_cast<double>(score_.hits));
    score_.victim_ns = Ratio(pick_seconds_ * 1e9, static_cast<double>(victims_chosen_));
    return score_;
  }

 private:
  void StartCounting() {
    score_ = PolicyScore{.kind = score_.kind};
    use_seconds_ = pick_seconds_ = 0;
    victims_chosen_ = 0;
  }

  // Takes note of the batches from `now` to the window's end. It ends sooner where their keys would
  // fill the tier: so there are always enough rows that are not pinned.
  void LookAhead(uint32_t now) {
    const size_t end = std::min<size_t>(trace_.batches.size(), now + window_);
    for (; looked_at_ < end; ++looked_at_) {
      const Array<uint32_t>& keys = trace_.batches[looked_at_].keys;
      if (looked_at_ >= now && known_keys_ + static_cast<int64_t>(keys.size()) > rows_) return;
      for (const uint32_t key : keys) {
        known_keys_ += last_use_[key] < now ? 1 : 0;
        last_use_[key] = static_cast<uint32_t>(looked_at_ + 1);
        pins_[position_of_[key]] = last_use_[key];
      }
    }
  }

  // Gives every key of the batch a position.
  void Place(std::span<const uint32_t> keys, uint32_t now) {
    found_.clear();
    missing_.clear();
    for (const uint32_t key : keys) {
      if (position_of_[key] == 0)
        missing_.push_back(key);
      else
        found_.push_back(position_of_[key]);
    }
    score_.hits += static_cast<int64_t>(found_.size());
    {
      ScopedSeconds time(&use_seconds_);
      policy_->Use(found_, now);
    }
    MakeRoom(now);
    added_.clear();
    for (const uint32_t key : missing_) {
      // Keys are numbered by first use.
      (key >= seen_keys_ ? score_.fresh : score_.misses) += 1;
      seen_keys_ = std::max(seen_keys_, key + 1);
      const uint32_t position = free_.back();
      free_.pop_back();
      position_of_[key] = position;
      key_at_[position] = key;
      pins_[position] = last_use_[key];
      added_.push_back(position);
    }
    policy_->Add(added_, now);
  }

  // Until there is a free position for each missing key.
  void MakeRoom(uint32_t now) {
    while (free_.size() < missing_.size() && used_ < rows_)
      free_.push_back(static_cast<uint32_t>(++used_));
    if (free_.size() >= missing_.size()) return;
    const size_t kept = free_.size(), wanted = missing_.size() - kept;
    {
      ScopedSeconds time(&pick_seconds_);
      policy_->Pick(static_cast<int64_t>(wanted), pins_, now - 1, &free_);
    }
    TERRACE_CHECK(free_.size() == missing_.size());
    victims_chosen_ += static_cast<int64_t>(wanted);
    for (size_t i = kept; i < free_.size(); ++i) position_of_[key_at_[free_[i]]] = 0;
  }

  const PolicyTrace& trace_;
  const int64_t rows_;
  const int64_t window_;
  const std::unique_ptr<EvictionPolicy> policy_;

  Array<uint32_t> position_of_;  // by key; 0: not in memory
  Array<uint32_t> last_use_;     // by key: the last batch known to use it
  Array<uint32_t> key_at_;       // by position
  Array<uint32_t> pins_;         // by position: last_use_ of its key
  Array<uint32_t> free_;
  int64_t used_ = 0;  // positions 1 to this were used
  size_t looked_at_ = 0;
  int64_t known_keys_ = 0;  // distinct, from this batch to the last one looked at
  uint32_t seen_keys_ = 0;

  Array<uint32_t> found_, missing_, added_;  // of a batch
  PolicyScore score_;
  double use_seconds_ = 0;
  double pick_seconds_ = 0;
  int64_t victims_chosen_ = 0;
};

}  // namespace

int64_t PolicyTrace::examples() const {
  int64_t sum = 0;
  for (const TraceBatch& batch : batches) sum += batch.examples;
  return sum;
}

int64_t PolicyTrace::lookups() const {
  int64_t sum = 0;
  for (const TraceBatch& batch : batches) sum += static_cast<int64_t>(batch.keys.size());
  return sum;
}

int64_t PolicyTrace::largest_batch() const {
  size_t most = 0;
  for (const TraceBatch& batch : batches) most = std::max(most, batch.keys.size());
  return static_cast<int64_t>(most);
}

double PolicyScore::hit_rate() const {
  return Ratio(static_cast<double>(hits), static_cast<double>(hits + misses));
}

double PolicyScore::misses_per_example() const {
  return Ratio(static_cast<double>(misses), static_cast<double>(examples));
}

PolicyTrace RecordTrace(BatchSource& source, int64_t batch_size, const std::atomic<bool>& stop) {
  PolicyTrace trace;
  KeyDedup dedup;
  Array<uint64_t> all, distinct;  // keys of all batches, of one
  Array<uint32_t> numbers;
  for (Batch batch; source.Next(batch_size, &batch);) {
    if (stop.load(std::memory_order_relaxed))
      throw Error(ErrorCode::kInterrupted, "interrupted while the trace was recorded");
    dedup.Run(batch.groups[0].keys, &distinct, &numbers);
    if (all.size() + distinct.size() >= KeyDedup::kMaxKeys)
      throw Error(ErrorCode::kUsage,
                  fmt::format("the trace has more than {} keys after {} batches; lower --examples",
                              WithCommas(KeyDedup::kMaxKeys), trace.batches.size()));
    all.insert(all.end(), distinct.begin(), distinct.end());
    trace.batches.push_back({Array<uint32_t>(distinct.size()), batch.examples});
  }
  if (trace.batches.size() < 2 || all.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("the trace has {} batches with {} keys; a comparison needs two "
                            "batches or more: raise --examples or lower --batch",
                            trace.batches.size(), all.size()));
  dedup.Run(all, &distinct, &numbers);
  trace.keys = static_cast<int64_t>(distinct.size());
  auto next = numbers.begin();
  for (TraceBatch& batch : trace.batches) {
    std::copy_n(next, batch.keys.size(), batch.keys.begin());
    next += static_cast<std::ptrdiff_t>(batch.keys.size());
  }
  return trace;
}

PolicyScore ScorePolicy(const PolicyTrace& trace, PolicyKind kind, const TierShape& tier) {
  if (tier.rows < trace.largest_batch())
    throw Error(ErrorCode::kUsage,
                fmt::format("a tier of {} rows does not hold the {} keys of the largest batch; use "
                            "a smaller --share or --batch, or give --rows",
                            WithCommas(tier.rows), WithCommas(trace.largest_batch())));
  return TierSimulation(trace, kind, tier).Run();
}

}  // namespace terrace
