#include "model/gradient_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "device/kernel_testing.h"

namespace terrace {
namespace {

constexpr double kStep = 0.03;
// Rounding of a float objective of order 1, over the step.
constexpr double kAbsolute = 2e-4;
constexpr double kRelative = 1e-3;

bool Close(double a, double b) {
  return std::abs(a - b) <= kAbsolute + kRelative * std::max(std::abs(a), std::abs(b));
}

}  // namespace

GradientCheck::GradientCheck(std::unique_ptr<Model> model, int64_t rows, uint64_t seed)
    : model_(std::move(model)),
      rows_(rows),
      stream_(&CpuDevice()),
      run_(model_->NewRun(rows)),
      params_(model_->param_count()),
      input_(RandomFloats(rows * model_->input_width(), seed)),
      linear_(RandomFloats(rows, seed + 1)),
      logit_grad_(RandomFloats(rows, seed + 2)) {
  model_->InitParams(seed, params_.data());
  // Biases and wide weights start at zero, which would hide mistakes.
  const std::vector<float> noise = RandomFloats(model_->param_count(), seed + 3, 0.2f);
  for (size_t i = 0; i < params_.size(); ++i) params_[i] += noise[i];
}

int64_t GradientCheck::size() const {
  return model_->param_count() + rows_ * model_->embedding_width() +
         (model_->uses_linear() ? rows_ : 0);
}

float* GradientCheck::Variable(int64_t i) {
  if (i < model_->param_count()) return &params_[i];
  i -= model_->param_count();
  const int64_t width = model_->embedding_width();
  if (i < rows_ * width) return &input_[i / width * model_->input_width() + i % width];
  return &linear_[i - rows_ * width];
}

std::string GradientCheck::Name(int64_t i) const {
  for (const auto& layer : model_->layers()) {
    const ParamRange range = layer->params();
    if (i >= range.begin && i < range.begin + range.size)
      return fmt::format("{} parameter {}", layer->name(), i - range.begin);
  }
  i -= model_->param_count();
  const int64_t width = model_->embedding_width();
  if (i < rows_ * width) return fmt::format("vectors, row {} column {}", i / width, i % width);
  return fmt::format("linear, row {}", i - rows_ * width);
}

double GradientCheck::Objective() {
  run_->Start(&stream_, rows_);
  for (int64_t r = 0; r < rows_; ++r)
    std::copy_n(input_.data() + r * model_->input_width(), model_->input_width(),
                run_->input().row(r));
  if (model_->uses_linear()) std::copy_n(linear_.data(), rows_, run_->linear());
  run_->Forward(params_.data(), {.training = true, .dropout_seed = 5, .first_example = 3});
  double sum = 0;
  for (int64_t r = 0; r < rows_; ++r) sum += double{logit_grad_[r]} * run_->logits()[r];
  return sum;
}

std::vector<float> GradientCheck::Gradients() {
  Objective();
  // NaN shows what the backward pass forgets to write, or adds to without cause.
  std::vector<float> all(size(), std::nanf(""));
  const int64_t width = model_->embedding_width();
  float* const vectors = all.data() + model_->param_count();
  run_->Backward(logit_grad_.data(), {vectors, rows_, width, width}, vectors + rows_ * width,
                 all.data());
  return all;
}

double GradientCheck::Slope(int64_t i, double h) {
  float* const variable = Variable(i);
  const float before = *variable;
  const auto difference = [&](double step) {
    // The step that floats make is not quite the one asked for.
    const float high = static_cast<float>(before + step);
    const float low = static_cast<float>(before - step);
    *variable = high;
    const double above = Objective();
    *variable = low;
    const double below = Objective();
    *variable = before;
    return (above - below) / (double{high} - low);
  };
  return (4 * difference(h) - difference(2 * h)) / 3;
}

GradientCheck::Result GradientCheck::Compare(const std::vector<float>& gradients) {
  Result result;
  for (int64_t i = 0; i < size(); ++i) {
    double slope = Slope(i, kStep);
    if (!Close(slope, Slope(i, kStep / 2))) slope = Slope(i, kStep / 5);
    if (!Close(slope, Slope(i, kStep / 10))) {
      ++result.kinks;
      continue;
    }
    ++result.checked;
    if (!Close(slope, gradients[i]))
      result.wrong.push_back(
          fmt::format("{}: {} but the slope is {}", Name(i), gradients[i], slope));
  }
  return result;
}

void ExpectRightGradients(std::unique_ptr<Model> model, int64_t rows, uint64_t seed) {
  GradientCheck check(std::move(model), rows, seed);
  const GradientCheck::Result result = check.Compare(check.Gradients());
  for (const std::string& wrong : result.wrong) ADD_FAILURE() << wrong;
  EXPECT_GT(result.checked, 0);
  EXPECT_LE(result.kinks, result.checked / 5);
}

namespace {

std::unique_ptr<Model> SmallModel() {
  ModelConfig config;
  config.kind = ModelKind::kDeepFm;
  config.hidden = {4, 3};
  config.activation = Activation::kTanh;
  return Model::Make(config, {.slot_dims = {2, 2, 2}, .slot_names = {}, .dense_columns = 2},
                     &CpuDevice());
}

TEST(GradientCheck, AcceptsRightGradients) { ExpectRightGradients(SmallModel(), 3, 1); }

TEST(GradientCheck, FindsEachGradientThatIsSlightlyWrong) {
  GradientCheck check(SmallModel(), 3, 1);
  const std::vector<float> right = check.Gradients();
  int64_t tried = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    if (std::abs(right[i]) < 0.05) continue;
    std::vector<float> wrong = right;
    wrong[i] *= 1.02f;
    EXPECT_EQ(check.Compare(wrong).wrong.size(), 1u) << i;
    ++tried;
  }
  EXPECT_GT(tried, 30);
}

TEST(GradientCheck, FindsAGradientThatWasNeverWritten) {
  GradientCheck check(SmallModel(), 3, 1);
  std::vector<float> gradients = check.Gradients();
  gradients[7] = std::nanf("");
  EXPECT_EQ(check.Compare(gradients).wrong.size(), 1u);
}

}  // namespace
}  // namespace terrace
