// Training speed with batches already in memory: prints a JSON object for a shape.
//
//   train_bench criteo|ads100|ads500 SECONDS [train.batch=4096 ...]
//
// The product's own stages run: the read stage copies one of 24 batches of 64-bit keys, plan and
// train do all that they do in a run. The first pass over the batches creates the rows and is not
// timed. `limit` is what the machine permits at most: the net's products at the best rate that
// sgemm reaches on all cores, and a fetch of each distinct cache line of rows and index from
// memory, at the rate that prefetched random reads reach on all cores.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "base/random.h"
#include "bench/disk_meter.h"
#include "bench/limits.h"
#include "bench/shapes.h"
#include "data/open_data.h"
#include "train/pipeline.h"
#include "train/step.h"

namespace terrace {
namespace {

constexpr int64_t kRows = 5'000'000;
constexpr double kExponent = 1.05;
constexpr int64_t kBatches = 24;

// A rank of a bounded power law, by inverting its continuous form.
int64_t ZipfRank(double u, int64_t n) {
  const double top = std::pow(static_cast<double>(n + 1), 1 - kExponent);
  const double rank = std::pow(u * (top - 1) + 1, 1 / (1 - kExponent));
  return std::min(static_cast<int64_t>(rank) - 1, n - 1);
}

Batch RandomBatch(const BenchShape& shape, const FeatureSpec& spec, int64_t examples,
                  RandomStream* random) {
  Batch batch = MakeBatch(spec.shape);
  batch.examples = examples;
  KeyGroup& group = batch.groups[0];
  for (int64_t e = 0; e < examples; ++e) {
    for (int j = 0; j < shape.slots; ++j) {
      for (int v = 0; v < shape.values; ++v) {
        const int64_t rank = ZipfRank(UnitDouble(random->Next()), kRows);
        group.keys.push_back(Mix64(static_cast<uint64_t>(rank)));
      }
      group.offsets.push_back(static_cast<uint32_t>(group.keys.size()));
    }
    for (int d = 0; d < shape.dense; ++d) batch.dense.push_back(2 * UnitFloat(random->Next()) - 1);
    batch.labels.push_back(random->Next() % 4 == 0 ? 1.0f : 0.0f);
    if (spec.shape.has_truth) batch.truth.push_back(0.25f);
  }
  return batch;
}

// Hands out copies of the same batches, one pass an epoch.
class MemoryStream : public DataStream {
 public:
  explicit MemoryStream(const std::vector<Batch>& batches, const BatchShape& shape)
      : batches_(batches), shape_(shape) {}
  const BatchShape& shape() const override { return shape_; }
  bool Next(int64_t, Batch* batch) override {
    if (next_ == batches_.size()) return false;
    *batch = batches_[next_++];
    return true;
  }
  int64_t skipped_rows() const override { return 0; }
  double progress() const override { return -1; }
  int64_t buffer_bytes() const override { return 0; }
  int64_t total_examples() const override { return -1; }
  std::string position() const override { return {}; }  // it is never resumed

 private:
  const std::vector<Batch>& batches_;
  const BatchShape& shape_;
  size_t next_ = 0;
};

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<int64_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

double BusyShare(const StageTime& time) {
  return time.busy / (time.busy + time.wait_input + time.wait_output);
}

void Run(const std::string& name, double seconds, std::vector<std::string> sets) {
  const BenchShape& shape = ShapeOf(name);
  sets.insert(sets.begin(), "train.epochs=1000000");
  const RunConfig config = ShapeConfig(shape, sets, "train_bench");
  const int64_t threads = config.train.threads;
  const int64_t batch_size = config.train.batch;
  const FeatureSpec spec = FeatureSpec::Resolve(config.data);
  RandomStream random(1, 0);
  std::vector<Batch> batches;
  for (int64_t b = 0; b < kBatches; ++b)
    batches.push_back(RandomBatch(shape, spec, batch_size, &random));

  ModelState state(config, spec, &CpuDevice());
  Workers workers("train", static_cast<int>(threads));
  StepRunner step(config, &state, &workers);
  std::atomic<bool> stop{false};
  PipelineOptions parts;
  parts.open = [&](const OpenDataOptions&) {
    return std::make_unique<MemoryStream>(batches, spec.shape);
  };
  parts.dedup_threads = DedupThreads(workers.threads());
  Pipeline pipeline(config, spec, parts, &state, stop);
  std::vector<double> times;
  double start = 0;
  double waited = 0;
  double distinct = 0;
  double cpu = 0;
  while (std::unique_ptr<WorkItem> item = pipeline.Next()) {
    const double taken = NowSeconds();
    if (!times.empty() || item->step > kBatches) waited += taken - (start + times.back());
    step.Train(item->batch, item->plans, item->step);
    distinct = static_cast<double>(item->plans[0].row_keys.size());
    const double now = NowSeconds();
    if (item->step == kBatches) {
      start = now;
      times.push_back(0);
      cpu = ProcessCpuSeconds();
    }
    if (item->step > kBatches) times.push_back(now - start);
    if (start > 0 && now - start > seconds && !stop) {
      stop = true;
      cpu = (ProcessCpuSeconds() - cpu) / (now - start) / AvailableCores();
    }
    pipeline.Recycle(std::move(item));
  }
  std::vector<double> each;
  for (size_t i = 1; i < times.size(); ++i) each.push_back(times[i] - times[i - 1]);
  const auto examples = static_cast<double>(batch_size);
  const auto count = static_cast<double>(each.size());
  const double occurrences = static_cast<double>(batches[0].groups[0].keys.size());

  const MachineLimits limits = MeasureLimits(static_cast<int>(threads));
  const RowLayout& layout = state.tables[0]->schema().layout;
  // Of a distinct key: its row, its chunk of the index, and the key itself there.
  const double lines =
      distinct / examples * (std::ceil(static_cast<double>(layout.stride) / 64) + 2);
  double flops = 0;
  int64_t in = int64_t{shape.slots} * shape.dim + shape.dense;
  for (int64_t out : config.model.hidden) {
    flops += 6.0 * static_cast<double>(in * out);
    in = out;
  }
  flops += 6.0 * static_cast<double>(in);
  const double limit = 1 / (flops / limits.flops + lines / limits.lines);
  fmt::print(
      "{{\"shape\": \"{}\", \"threads\": {}, \"mean\": {:.0f}, \"median\": {:.0f}, \"best\": "
      "{:.0f}, "
      "\"distinct\": {:.3f}, \"rows\": {}, \"cpu\": {:.3f}, \"dedup_busy\": {:.3f}, \"plan_busy\": "
      "{:.3f}, "
      "\"wait\": {:.3f}, "
      "\"sgemm_limit\": {:.0f}, \"limit\": {:.0f}, \"gflops\": {:.1f}, \"mlines\": {:.1f}}}\n",
      name, threads, examples * count / (times.back() - times.front()), examples / Median(each),
      examples / *std::min_element(each.begin(), each.end()), distinct / occurrences, state.rows(),
      cpu, BusyShare(pipeline.dedup_time()), BusyShare(pipeline.plan_time()), waited / times.back(),
      limits.flops / flops, limit, limits.flops / 1e9, limits.lines / 1e6);
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: train_bench criteo|ads100|ads500 SECONDS [key=value ...]\n", stderr);
    return 2;
  }
  try {
    terrace::Run(argv[1], std::atof(argv[2]), {argv + 3, argv + argc});
  } catch (const terrace::Error& e) {
    fmt::print(stderr, "train_bench: {}\n", e.what());
    return 1;
  }
}
