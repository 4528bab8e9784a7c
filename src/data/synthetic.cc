#include "data/synthetic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/synthetic_model.h"
#include "data/zipf.h"

namespace terrace {
namespace {

// Enough that the cost of a chunk's hand-over vanishes, few enough that it stays in the cache.
constexpr int64_t kChunkKeys = 1 << 16;
constexpr int64_t kMaxChunkExamples = 1 << 12;
// The sample on which the hidden model is calibrated.
constexpr int64_t kSampleKeys = 1 << 22;
constexpr int64_t kMinSample = 1 << 10;
constexpr int64_t kMaxSample = 1 << 15;

// Of values that are no ranks, which are below.
constexpr uint64_t kNoRank = uint64_t{1} << 63;
// The sample is taken from so many values of each rank, or else the click rate of the first ones
// would count.
constexpr int64_t kSampleGenerations = 16;

// Each example has a stream of random values for each of these.
enum class Purpose : uint64_t { kCounts, kValues, kDense, kLabel, kDrift };
// Numbers of the parts; a sample is a part of its own.
enum PartNumber : uint64_t { kTrainPart = 1, kTestPart = 2, kSamplePart = 3 };

// Standard normal but for its tails, which end at 3.46: the sum of four 16-bit numbers.
float AlmostNormal(uint64_t bits) {
  constexpr double kMean = 2 * 65535.0;
  const double inverse_deviation = std::sqrt(3.0) / 65536.0;
  constexpr uint64_t kEvenWords = 0x0000ffff0000ffffULL;
  const uint64_t pairs = (bits & kEvenWords) + (bits >> 16 & kEvenWords);
  const uint64_t sum = (pairs & 0xffffffff) + (pairs >> 32);
  return static_cast<float>((static_cast<double>(sum) - kMean) * inverse_deviation);
}

// Makes any range of the examples of any part. Constant after construction.
class ExampleGenerator {
 public:
  ExampleGenerator(const SyntheticConfig& config, const FeatureSpec& spec, SyntheticKeys keys)
      : seed_(static_cast<uint64_t>(config.seed)),
        max_keys_(2 * config.values_per_slot - 1),
        one_off_(config.one_off),
        drift_(static_cast<uint64_t>(config.drift)),
        features_(static_cast<uint64_t>(config.features)),
        train_examples_(static_cast<uint64_t>(config.train_examples)),
        keys_(keys),
        dense_(spec.dense),
        zipf_(static_cast<uint64_t>(config.features), config.zipf),
        chunk_examples_(std::clamp<int64_t>(
            kChunkKeys / (static_cast<int64_t>(spec.slots.size()) * config.values_per_slot + 1), 1,
            kMaxChunkExamples)),
        model_(config, static_cast<int64_t>(spec.slots.size()),
               static_cast<int64_t>(spec.dense.size())) {
    for (const Slot& slot : spec.slots)
      slots_.push_back(
          {slot.seed, slot.group, slot.index_in_group, slot.linear_group, slot.linear_index});
    Calibrate(spec.shape, static_cast<int64_t>(slots_.size()) * config.values_per_slot);
  }

  int64_t chunk_examples() const { return chunk_examples_; }

  // Appends examples [first, first + count) of the part to an empty batch.
  void Generate(PartNumber part, int64_t first, int64_t count, Batch* out) const {
    const std::vector<LogitParts> logits = Draw(part, first, count, out);
    out->examples = count;
    out->labels.resize(count);
    out->truth.resize(count);
    for (int64_t e = 0; e < count; ++e) {
      const float probability = model_.Probability(logits[e]);
      out->truth[e] = probability;
      const float u = UnitFloat(StreamOf(part, first + e, Purpose::kLabel).Next());
      out->labels[e] = u < probability ? 1.0f : 0.0f;
    }
  }

 private:
  struct SlotPlace {
    uint64_t seed;
    int group;
    int index;         // in the group
    int linear_group;  // gets the same keys; -1: there is none
    int linear_index;
  };
  struct Scratch {
    std::vector<uint64_t> ranks, values;  // [max_keys_], of one bag
  };

  RandomStream StreamOf(PartNumber part, int64_t example, Purpose purpose) const {
    return RandomStream(RandomBits(seed_, part, static_cast<uint64_t>(purpose)),
                        static_cast<uint64_t>(example));
  }

  void Calibrate(const BatchShape& shape, int64_t keys_an_example) {
    const int64_t examples =
        std::clamp(kSampleKeys / std::max<int64_t>(keys_an_example, 1), kMinSample, kMaxSample);
    sample_examples_ = static_cast<double>(examples);
    std::vector<LogitParts> sample;
    Batch chunk = MakeBatch(shape);
    for (int64_t e = 0; e < examples; e += chunk_examples_) {
      ClearBatch(&chunk);
      const std::vector<LogitParts> logits = Draw(kSamplePart, e, chunk_examples_, &chunk);
      sample.insert(sample.end(), logits.begin(), logits.end());
    }
    model_.Calibrate(sample);
  }

  // Fills offsets, keys and dense columns; returns the parts of the logits.
  std::vector<LogitParts> Draw(PartNumber part, int64_t first, int64_t count, Batch* out) const {
    for (KeyGroup& group : out->groups) group.offsets.resize(count * group.slots + 1);
    DrawOffsets(part, first, count, out);
    for (KeyGroup& group : out->groups) group.keys.resize(group.offsets.back());
    out->dense.resize(count * static_cast<int64_t>(dense_.size()));

    std::vector<LogitParts> logits(count);
    Scratch scratch{std::vector<uint64_t>(max_keys_), std::vector<uint64_t>(max_keys_)};
    HiddenModel::Example hidden(model_);
    for (int64_t e = 0; e < count; ++e) {
      hidden.Start();
      DrawKeys(StreamOf(part, first + e, Purpose::kValues), TimeOf(part, first + e), e, &scratch,
               &hidden, out);
      DrawDense(StreamOf(part, first + e, Purpose::kDense), e, &hidden, out);
      logits[e] = hidden.Finish();
    }
    return logits;
  }

  void DrawOffsets(PartNumber part, int64_t first, int64_t count, Batch* out) const {
    std::vector<uint32_t> used(out->groups.size(), 0);
    for (int64_t e = 0; e < count; ++e) {
      RandomStream random = StreamOf(part, first + e, Purpose::kCounts);
      for (const SlotPlace& slot : slots_) {
        const uint32_t keys = max_keys_ == 1 ? 1 : 1 + BelowN(random.Next(), max_keys_);
        const auto end_bag = [&](int g, int index) {
          KeyGroup& group = out->groups[g];
          used[g] += keys;
          group.offsets[e * group.slots + index + 1] = used[g];
        };
        end_bag(slot.group, slot.index);
        if (slot.linear_group >= 0) end_bag(slot.linear_group, slot.linear_index);
      }
    }
  }

  // The place of an example in the stream that drifts.
  uint64_t TimeOf(PartNumber part, int64_t example) const {
    if (part == kSamplePart) {
      const double generations = kSampleGenerations * static_cast<double>(example);
      return static_cast<uint64_t>(generations / sample_examples_ * static_cast<double>(drift_));
    }
    return static_cast<uint64_t>(example) + (part == kTestPart ? train_examples_ : 0);
  }

  // The value that has this rank at this time.
  uint64_t ValueOf(const SlotPlace& slot, uint64_t rank, uint64_t time) const {
    if (drift_ == 0) return rank;
    const uint64_t bits =
        RandomBits(seed_ + static_cast<uint64_t>(Purpose::kDrift), slot.seed, rank);
    const uint64_t generation = (time + BelowN(bits, drift_)) / drift_;
    return generation == 0 ? rank : kNoRank | Mix64(bits + generation);
  }

  void DrawKeys(RandomStream random, uint64_t time, int64_t example, Scratch* scratch,
                HiddenModel::Example* hidden, Batch* out) const {
    for (const SlotPlace& slot : slots_) {
      KeyGroup& group = out->groups[slot.group];
      const uint32_t* bag = &group.offsets[example * group.slots + slot.index];
      const size_t count = bag[1] - bag[0];
      uint64_t* ranks = scratch->ranks.data();
      uint64_t* keys = group.keys.data() + bag[0];
      uint64_t* values = scratch->values.data();
      if (keys_ == SyntheticKeys::kValues) std::swap(values, keys);
      for (size_t i = 0; i < count; ++i) {
        if (one_off_ > 0 && UnitDouble(random.Next()) < one_off_) {
          ranks[i] = features_;
          values[i] = kNoRank | random.Next();
        } else {
          const uint64_t bin_bits = random.Next();
          ranks[i] = zipf_.Draw(bin_bits, random.Next());
          values[i] = ValueOf(slot, ranks[i], time);
        }
        keys[i] = IntegerKey(slot.seed, values[i]);
      }
      hidden->AddBag({keys, count}, {ranks, count});
      if (slot.linear_group >= 0) {
        KeyGroup& linear = out->groups[slot.linear_group];
        const uint32_t to = linear.offsets[example * linear.slots + slot.linear_index];
        std::copy_n(group.keys.begin() + bag[0], count, linear.keys.begin() + to);
      }
    }
  }

  void DrawDense(RandomStream random, int64_t example, HiddenModel::Example* hidden,
                 Batch* out) const {
    float* row = out->dense.data() + example * static_cast<int64_t>(dense_.size());
    for (size_t d = 0; d < dense_.size(); ++d) {
      const float z = AlmostNormal(random.Next());
      hidden->AddDense(static_cast<int64_t>(d), z);
      row[d] = dense_[d].Transform(z);
    }
  }

  const uint64_t seed_;
  const uint64_t max_keys_;  // of a bag
  const double one_off_;
  const uint64_t drift_;
  const uint64_t features_;
  const uint64_t train_examples_;
  const SyntheticKeys keys_;
  std::vector<SlotPlace> slots_;
  const std::vector<DenseColumn> dense_;
  const ZipfSampler zipf_;
  const int64_t chunk_examples_;
  HiddenModel model_;
  double sample_examples_ = 0;  // on which the model is calibrated
};

struct RangeWork : ChunkWork {
  RangeWork(int64_t f, int64_t c) : first(f), count(c) {}
  const int64_t first;
  const int64_t count;
};

class SyntheticProducer : public ChunkProducer {
 public:
  SyntheticProducer(const SyntheticConfig& config, const FeatureSpec& spec, DataPart part,
                    SyntheticKeys keys, int64_t first)
      : shape_(spec.shape),
        part_(part == DataPart::kTrain ? kTrainPart : kTestPart),
        examples_(part == DataPart::kTrain ? config.train_examples : config.test_examples),
        generator_(config, spec, keys),
        next_(first) {
    shape_.has_truth = true;
  }

  const BatchShape& shape() const override { return shape_; }

  std::unique_ptr<ChunkWork> Claim() override {
    if (next_ >= examples_) return nullptr;
    const int64_t count = std::min(generator_.chunk_examples(), examples_ - next_);
    auto work = std::make_unique<RangeWork>(next_, count);
    work->begin.offset = next_;
    next_ += count;
    return work;
  }

  void Produce(ChunkWork& work, Batch* chunk) override {
    const auto& range = static_cast<const RangeWork&>(work);
    generator_.Generate(part_, range.first, range.count, chunk);
  }

 private:
  BatchShape shape_;
  const PartNumber part_;
  const int64_t examples_;
  const ExampleGenerator generator_;
  int64_t next_;  // example to claim; Claim's callers take turns
};

}  // namespace

std::unique_ptr<ChunkProducer> MakeSyntheticProducer(const SyntheticConfig& config,
                                                     const FeatureSpec& spec, DataPart part,
                                                     SyntheticKeys keys, int64_t first) {
  return std::make_unique<SyntheticProducer>(config, spec, part, keys, first);
}

}  // namespace terrace
