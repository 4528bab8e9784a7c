// The sparse side of a training step on one thread, stage by stage: ns per key occurrence.
//
//   sparse_bench [batches] [shape] [weights/state ...]
//
// Batches of 4,096 examples, keys by a Zipf law of exponent 1.05 over 5 M rows that exist already,
// at positions that have nothing to do with their frequency; AdaGrad rows with a linear weight.
// Each number is the median over batches, in CPU time of the thread. `prototype` is what a plain
// program without slices, index by any key or bounded memory needed for the same shapes, on another
// machine. Codecs to compare: sparse_bench 30 ads100 fp32/fp32 int8/fp32 int8/int8. They take
// turns, batch by batch.
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/slice_tree.h"
#include "base/text.h"
#include "data/zipf.h"
#include "device/embedding_ops.h"
#include "table/row_optimizer.h"
#include "tier/planner.h"

namespace terrace {
namespace {

constexpr int64_t kExamples = 4096;
constexpr int64_t kSlices = 8;
constexpr uint64_t kRows = 5'000'000;
constexpr double kExponent = 1.05;
constexpr int64_t kRowBlock = 256;

struct Shape {
  const char* name;
  int slots;
  int keys_per_slot;
  int dim;
  double prototype[5];  // dedup, index, inverse, gather, row gradient + AdaGrad
};
constexpr Shape kShapes[] = {
    {"ads100", 20, 5, 8, {9.6, 3.5, 5.9, 7.2, 8.7}},
    {"ads500", 50, 10, 8, {9.9, 2.2, 6.9, 7.7, 14.2}},
    {"criteo", 26, 1, 16, {7.1, 3.5, 4.3, 5.7, 8.8}},
};
constexpr const char* kStages[] = {"dedup", "index", "inverse", "gather", "gradient + AdaGrad"};

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Timed(const std::function<void()>& f) {
  const double start = CpuSeconds();
  f();
  return CpuSeconds() - start;
}

uint64_t KeyOfRank(uint64_t rank) { return Mix64(rank + 1); }

// Every key in an order of its own.
void CreateRows(MemoryTier* tier) {
  std::vector<uint64_t> keys;
  for (uint64_t rank = 0; rank < kRows; ++rank) keys.push_back(KeyOfRank(rank));
  for (uint64_t i = kRows; i-- > 1;) std::swap(keys[i], keys[BelowN(RandomBits(1, i), i + 1)]);
  std::vector<uint32_t> positions(keys.size());
  tier->FindOrCreate(keys, positions);
}

struct Codecs {
  RowCodec weights = RowCodec::kFp32;
  RowCodec state = RowCodec::kFp32;
};

RowCodec CodecOf(const std::string& name) {
  const char* const names[] = {"fp32", "fp16", "bf16", "int16", "int8"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<RowCodec>(i);
  throw Error(ErrorCode::kUsage,
              "codecs: weights/state, each of fp32 fp16 bf16 int16 int8; not " + name);
}

Codecs CodecsOf(const std::string& text) {
  const size_t slash = text.find('/');
  return {CodecOf(text.substr(0, slash)),
          slash == std::string::npos ? RowCodec::kFp32 : CodecOf(text.substr(slash + 1))};
}

class Bench {
 public:
  Bench(const Shape& shape, const Codecs& codecs)
      : shape_(shape), tier_(Schema(shape, codecs)), stream_(&CpuDevice()) {
    CreateRows(&tier_);
    width_ = int64_t{shape.slots} * shape.dim;
    pooled_ = Buffer<float>(&CpuDevice(), kExamples * width_);
    linear_ = Buffer<float>(&CpuDevice(), kExamples);
    row_grads_ = Buffer<float>(&CpuDevice(), kRowBlock * (shape.dim + 1));
    scratch_ = Buffer<float>(&CpuDevice(), RowScratchFloats(tier_.schema().layout));
    mean_slots_.resize(shape.slots);
    for (int64_t bag = 0; bag <= kExamples * shape.slots; ++bag)
      offsets_.push_back(static_cast<uint32_t>(bag * shape.keys_per_slot));
    keys_.resize(offsets_.back());
  }

  // The stages' times over one more batch.
  void Step() {
    for (uint64_t& key : keys_) key = KeyOfRank(zipf_.Draw(random_.Next(), random_.Next()));
    const PlanInput input{keys_, offsets_, {}, shape_.slots, mean_slots_};
    const double plan = Timed([&] { planner_.PlanTrain(input, &plan_); });
    const double dedup = Timed([&] { dedup_.Run(keys_, &plan_.row_keys, &plan_.rows); });
    const double index = Timed([&] { PlaceRows(&tier_, &plan_); });
    const double seconds[] = {dedup, index, plan - dedup, Timed([&] { Gather(); }),
                              Timed([&] { UpdateAll(++step_); })};
    const auto keys = static_cast<double>(keys_.size());
    for (size_t s = 0; s < std::size(kStages); ++s) times_[s].push_back(seconds[s] * 1e9 / keys);
    times_.back().push_back(static_cast<double>(plan_.row_positions.size()) / keys);
  }

  // Of the stages in ns a key, then the share of distinct keys.
  std::vector<double> Medians() {
    std::vector<double> medians;
    for (std::vector<double>& t : times_) {
      std::sort(t.begin(), t.end());
      medians.push_back(t[t.size() / 2]);
    }
    return medians;
  }
  int64_t row_bytes() const { return tier_.schema().layout.stride; }

 private:
  static TableSchema Schema(const Shape& shape, const Codecs& codecs) {
    TableConfig config;
    config.dim = shape.dim;
    config.weight_codec = codecs.weights;
    config.state_codec = codecs.state;
    return TableSchema::Make(shape.name, config, true, 1);
  }

  void Gather() {
    const SliceShape slices = SliceShape::For(kExamples, kSlices);
    for (int64_t s = 0; s < kSlices; ++s) {
      GatherArgs args;
      const RowLayout& layout = tier_.schema().layout;
      args.arena = layout.View(tier_.base());
      args.slots = shape_.slots;
      args.first = slices.Begin(s);
      args.last = slices.End(s, kExamples);
      args.bag_offsets = offsets_.data();
      args.positions = plan_.positions.data();
      args.pooled = {pooled_.data() + args.first * width_, slices.length, width_, width_};
      args.linear = linear_.data() + args.first;
      GatherPool(stream_, args);
    }
  }

  void UpdateAll(int64_t step) {
    RowGradArgs sum;
    sum.dim = shape_.dim;
    sum.linear = 1;
    sum.slots = shape_.slots;
    sum.row_offsets = plan_.row_offsets.data();
    sum.bags = plan_.row_bags.data();
    sum.slice_examples = SliceShape::For(kExamples, kSlices).length;
    sum.pooled_grad = Matrix{pooled_.data(), kExamples, width_, width_};
    sum.linear_grad = linear_.data();
    sum.out = row_grads_.data();
    const RowLayout& layout = tier_.schema().layout;
    sum.prefetch = RowsToUpdate(layout, tier_.base(), plan_.row_positions.data());
    RowUpdateArgs update;
    update.base = tier_.base();
    update.stride_bytes = layout.stride;
    update.grads = row_grads_.data();
    update.lr = 1e-3;
    update.step = step;
    update.scratch = scratch_.data();
    const auto rows = static_cast<int64_t>(plan_.row_positions.size());
    for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
      sum.first = begin;
      sum.last = std::min(begin + kRowBlock, rows);
      SumRowGradients(stream_, sum);
      update.positions = plan_.row_positions.data() + begin;
      update.rows = sum.last - begin;
      UpdateRows(stream_, tier_.schema(), update);
    }
  }

  const Shape shape_;
  MemoryTier tier_;
  Planner planner_;
  KeyDedup dedup_;
  Stream stream_;
  TablePlan plan_;
  int64_t width_ = 0;
  std::vector<uint64_t> keys_;
  std::vector<uint32_t> offsets_;
  std::vector<uint8_t> mean_slots_;
  Buffer<float> pooled_;
  Buffer<float> linear_;
  Buffer<float> row_grads_;
  Buffer<float> scratch_;
  const ZipfSampler zipf_{kRows, kExponent};
  RandomStream random_{2, 3};
  int64_t step_ = 0;
  std::vector<std::vector<double>> times_ =
      std::vector<std::vector<double>>(std::size(kStages) + 1);
};

void RunAll(int batches, const std::string& only, const std::vector<std::string>& codecs) {
  TextTable table(
      {"shape", "codecs", "row bytes", "distinct", "stage", "ns/key", "prototype", "ratio"});
  for (const Shape& shape : kShapes) {
    if (!only.empty() && only != shape.name) continue;
    std::vector<std::unique_ptr<Bench>> benches;
    for (const std::string& c : codecs)
      benches.push_back(std::make_unique<Bench>(shape, CodecsOf(c)));
    for (int b = 0; b < batches; ++b)
      for (const auto& bench : benches) bench->Step();
    for (size_t c = 0; c < codecs.size(); ++c) {
      const std::vector<double> medians = benches[c]->Medians();
      for (size_t s = 0; s < std::size(kStages); ++s)
        table.AddRow({shape.name, codecs[c], fmt::format("{}", benches[c]->row_bytes()),
                      fmt::format("{:.0f}%", medians.back() * 100), kStages[s],
                      fmt::format("{:.1f}", medians[s]), fmt::format("{:.1f}", shape.prototype[s]),
                      fmt::format("{:.2f}", shape.prototype[s] / medians[s])});
    }
  }
  std::fputs(table.Render().c_str(), stdout);
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  std::vector<std::string> codecs(argv + std::min(argc, 3), argv + argc);
  if (codecs.empty()) codecs = {"fp32/fp32"};
  terrace::RunAll(argc > 1 ? std::atoi(argv[1]) : 30, argc > 2 ? argv[2] : "", codecs);
}
