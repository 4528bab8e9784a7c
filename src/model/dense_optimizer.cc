#include "model/dense_optimizer.h"

#include <cmath>

#include "base/error.h"
#include "device/dense_ops.h"

namespace terrace {
namespace {

// base^n by squaring: the same bits on every machine, unlike pow of the C library.
double Power(double base, int64_t n) {
  double result = 1;
  for (; n > 0; n /= 2, base *= base)
    if (n % 2 == 1) result *= base;
  return result;
}

AdamUpdate Adam(const DenseOptimizerConfig& config, const DenseUpdateArgs& args,
                const ParamUpdate& common) {
  AdamUpdate adam{.common = common};
  adam.common.lr = static_cast<float>(args.lr / (1 - Power(config.beta1, args.step)));
  adam.mean = args.state;
  adam.variance = args.state + args.size;
  adam.beta1 = static_cast<float>(config.beta1);
  adam.one_minus_beta1 = static_cast<float>(1 - config.beta1);
  adam.beta2 = static_cast<float>(config.beta2);
  adam.one_minus_beta2 = static_cast<float>(1 - config.beta2);
  adam.rescale = static_cast<float>(1 / std::sqrt(1 - Power(config.beta2, args.step)));
  adam.eps = static_cast<float>(config.eps);
  return adam;
}

}  // namespace

int DenseStatePerParam(DenseOptimizerKind kind) {
  switch (kind) {
    case DenseOptimizerKind::kSgd:
      return 0;
    case DenseOptimizerKind::kAdaGrad:
      return 1;
    case DenseOptimizerKind::kAdam:
      return 2;
  }
  return 0;
}

void UpdateDense(Stream& stream, const DenseOptimizerConfig& config, const DenseUpdateArgs& args) {
  TERRACE_CHECK(args.begin >= 0 && args.begin <= args.end && args.end <= args.size);
  TERRACE_CHECK(args.step >= 1);
  const ParamUpdate common{.params = args.params,
                           .grads = args.grads,
                           .begin = args.begin,
                           .end = args.end,
                           .grad_factor = static_cast<float>(args.grad_factor),
                           .l2 = static_cast<float>(config.l2),
                           .lr = static_cast<float>(args.lr)};
  switch (config.kind) {
    case DenseOptimizerKind::kSgd:
      return Launch(stream, SgdUpdate{.common = common});
    case DenseOptimizerKind::kAdaGrad:
      return Launch(stream, AdaGradUpdate{.common = common,
                                          .squares = args.state,
                                          .eps = static_cast<float>(config.eps)});
    case DenseOptimizerKind::kAdam:
      return Launch(stream, Adam(config, args, common));
  }
}

double SumOfSquares(Stream& stream, const float* x, int64_t n) {
  return Launch(stream, SumSquares{.x = x, .size = n});
}

void DenseOptimizerConfig::Visit(ConfigVisitor& v) {
  constexpr DoubleRange kNotNegative{.min = 0};
  constexpr DoubleRange kDecay{.min = 0, .max = 1 - 1e-9};
  v.Enum("kind", &kind, {"sgd", "adagrad", "adam"}, "optimizer of the dense parameters");
  v.Double("lr", &lr, kNotNegative, "learning rate");
  v.Double("l2", &l2, kNotNegative, "l2 * parameter is added to its gradient, biases included");
  v.Double("clip_norm", &clip_norm, kNotNegative,
           "scale the whole dense gradient down to this norm; 0: off");
  v.Double("eps", &eps, {.min = 1e-30}, "adagrad, adam: added to the root that is divided by");
  v.Double("beta1", &beta1, kDecay, "adam: decay of the mean of gradients");
  v.Double("beta2", &beta2, kDecay, "adam: decay of the mean of squared gradients");
}

}  // namespace terrace
