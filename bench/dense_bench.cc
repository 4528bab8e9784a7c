// Forward + loss + backward of a slice on one thread, against its matrix products alone.
//
//   dense_bench [--benchmark_filter=DeepFmCriteo]
//
// A device that notes every product of a pass lets the same calls run again on the same buffers.
// Columns: `pass` and `gemm`, GFLOPS of either counting the products' operations only; `other`, the
// share of the pass that is not spent in products.
#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <vector>

#include "base/random.h"
#include "device/gemm.h"
#include "model/loss.h"
#include "model/model.h"

namespace terrace {
namespace {

// The CPU, with a list of the products that went through it.
class RecordingDevice : public Device {
 public:
  std::string name() const override { return "recording cpu"; }
  void* Allocate(size_t bytes) override { return CpuDevice().Allocate(bytes); }
  void Free(void* data, size_t bytes) override { CpuDevice().Free(data, bytes); }
  void Gemm(Stream& stream, const GemmArgs& args) override {
    if (recording) products.push_back(args);
    CpuDevice().Gemm(stream, args);
  }
  const DenseKernels& dense_kernels() const override { return CpuDevice().dense_kernels(); }

  bool recording = false;
  std::vector<GemmArgs> products;
};

struct Shape {
  ModelConfig model;
  int slots;
  int dim;
  int dense;
};

class SlicePass {
 public:
  SlicePass(const Shape& shape, int64_t rows)
      : rows_(rows),
        model_(Model::Make(shape.model,
                           {.slot_dims = std::vector<int>(shape.slots, shape.dim),
                            .slot_names = {},
                            .dense_columns = shape.dense},
                           &device_)),
        run_(model_->NewRun(rows)),
        stream_(&device_),
        params_(model_->param_count()),
        param_grad_(model_->param_count()),
        input_grad_(rows * model_->embedding_width()),
        linear_grad_(rows),
        labels_(rows),
        probabilities_(rows),
        logit_grad_(rows) {
    model_->InitParams(1, params_.data());
    run_->Start(&stream_, rows);
    RandomStream random(1, 2);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < model_->input_width(); ++c)
        run_->input().row(r)[c] = UnitFloat(random.Next()) - 0.5f;
      labels_[r] = random.Next() % 4 == 0 ? 1 : 0;
    }
    device_.recording = true;
    Run();
    device_.recording = false;
  }

  void Run() {
    run_->Start(&stream_, rows_);
    run_->Forward(params_.data(), {true, 1, 0});
    LogLoss(stream_, {.rows = rows_,
                      .logits = run_->logits(),
                      .labels = labels_.data(),
                      .grad_scale = 1.0f / 4096,
                      .probabilities = probabilities_.data(),
                      .logit_grad = logit_grad_.data()});
    const int64_t width = model_->embedding_width();
    run_->Backward(logit_grad_.data(), {input_grad_.data(), rows_, width, width},
                   linear_grad_.data(), param_grad_.data());
  }

  void RunProducts() {
    for (const GemmArgs& args : device_.products) CpuGemm(args);
  }

  double Operations() const {
    double sum = 0;
    for (const GemmArgs& args : device_.products)
      sum += 2.0 * static_cast<double>(args.c.rows) * static_cast<double>(args.c.cols) *
             static_cast<double>(args.transpose_a ? args.a.rows : args.a.cols);
    return sum;
  }

 private:
  RecordingDevice device_;
  int64_t rows_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<SliceRun> run_;
  Stream stream_;
  std::vector<float> params_, param_grad_, input_grad_, linear_grad_;
  std::vector<float> labels_, probabilities_, logit_grad_;
};

// CPU time of this thread: other programs do not count.
double Seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Pass and products take turns, so that both see the same machine.
void Measure(benchmark::State& state, const Shape& shape) {
  const int64_t rows = state.range(0);
  SlicePass pass(shape, rows);
  double pass_seconds = 0;
  double product_seconds = 0;
  for (auto _ : state) {
    const double start = Seconds();
    pass.Run();
    const double middle = Seconds();
    pass.RunProducts();
    product_seconds += Seconds() - middle;
    pass_seconds += middle - start;
    state.SetIterationTime(middle - start);
  }
  const double giga = pass.Operations() * static_cast<double>(state.iterations()) * 1e-9;
  state.counters["pass"] = giga / pass_seconds;
  state.counters["gemm"] = giga / product_seconds;
  state.counters["other"] = 1 - product_seconds / pass_seconds;
  state.SetItemsProcessed(state.iterations() * rows);
}

ModelConfig Config(ModelKind kind, std::vector<int64_t> hidden) {
  ModelConfig config;
  config.kind = kind;
  config.hidden = std::move(hidden);
  return config;
}

void BM_DeepFmCriteo(benchmark::State& state) {
  Measure(state, {Config(ModelKind::kDeepFm, {400, 400, 400}), 26, 16, 13});
}
void BM_DeepFmAds(benchmark::State& state) {
  Measure(state, {Config(ModelKind::kDeepFm, {64, 32}), 20, 8, 0});
}
void BM_DeepFmDropoutCriteo(benchmark::State& state) {
  ModelConfig config = Config(ModelKind::kDeepFm, {400, 400, 400});
  config.dropout = 0.5;
  Measure(state, {config, 26, 16, 13});
}
void BM_DeepFmTanhCriteo(benchmark::State& state) {
  ModelConfig config = Config(ModelKind::kDeepFm, {400, 400, 400});
  config.activation = Activation::kTanh;
  Measure(state, {config, 26, 16, 13});
}
void BM_DcnV2Criteo(benchmark::State& state) {
  Measure(state, {Config(ModelKind::kDcnV2, {400, 400}), 26, 16, 13});
}
void BM_DlrmCriteo(benchmark::State& state) {
  Measure(state, {Config(ModelKind::kDlrm, {400, 400}), 26, 16, 13});
}
BENCHMARK(BM_DeepFmCriteo)->Arg(512)->Arg(1024)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_DeepFmAds)->Arg(512)->Arg(1024)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_DeepFmDropoutCriteo)->Arg(512)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_DeepFmTanhCriteo)->Arg(512)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_DcnV2Criteo)->Arg(512)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_DlrmCriteo)->Arg(512)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace terrace

BENCHMARK_MAIN();
