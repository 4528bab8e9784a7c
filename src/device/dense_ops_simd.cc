// The CPU's launchers: plain loops that the compiler vectorises at each instruction-set level.
#include "device/dense_kernel_table.h"

namespace terrace {
namespace TERRACE_ISA {
namespace {

// Operations are copied to locals: stores through their pointers then cannot change their fields.

template <typename Op>
void ForRows(int64_t begin, int64_t end, Op op) {
  for (int64_t row = begin; row < end; ++row) op(row);
}

// As ForRows, where iterations are single independent elements.
template <typename Op>
void ForElements(int64_t begin, int64_t end, Op op) {
  TERRACE_INDEPENDENT
  for (int64_t i = begin; i < end; ++i) op(i);
}

template <typename Op>
void ForMatrix(int64_t rows, int64_t cols, Op op) {
  for (int64_t row = 0; row < rows; ++row) {
    TERRACE_INDEPENDENT
    for (int64_t col = 0; col < cols; ++col) op(row, col);
  }
}

// Column sums, in row order, of what op returns.
template <typename Op>
void SumColumns(int64_t rows, int64_t cols, float* sums, Op op) {
  TERRACE_INDEPENDENT
  for (int64_t col = 0; col < cols; ++col) sums[col] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    TERRACE_INDEPENDENT
    for (int64_t col = 0; col < cols; ++col) sums[col] += op(row, col);
  }
}

template <Activation kActivation>
void RunBiasActivate(const BiasActivate op) {
  ForMatrix(op.y.rows, op.y.cols,
            [op](int64_t row, int64_t col) { op.template At<kActivation>(row, col); });
}

void DoBiasActivate(Stream&, const BiasActivate& op) {
  switch (op.activation) {
    case Activation::kRelu:
      return RunBiasActivate<Activation::kRelu>(op);
    case Activation::kTanh:
      return RunBiasActivate<Activation::kTanh>(op);
    case Activation::kSigmoid:
      return RunBiasActivate<Activation::kSigmoid>(op);
    case Activation::kNone:
      break;
  }
  if (op.bias != nullptr) RunBiasActivate<Activation::kNone>(op);
}

template <Activation kActivation>
void RunActivateBackward(const ActivateBackward op) {
  const auto at = [op](int64_t row, int64_t col) { return op.template At<kActivation>(row, col); };
  if (op.bias_grad != nullptr)
    SumColumns(op.grad.rows, op.grad.cols, op.bias_grad, at);
  else
    ForMatrix(op.grad.rows, op.grad.cols, at);
}

void DoActivateBackward(Stream&, const ActivateBackward& op) {
  switch (op.activation) {
    case Activation::kRelu:
      return RunActivateBackward<Activation::kRelu>(op);
    case Activation::kTanh:
      return RunActivateBackward<Activation::kTanh>(op);
    case Activation::kSigmoid:
      return RunActivateBackward<Activation::kSigmoid>(op);
    case Activation::kNone:
      break;
  }
  if (op.bias_grad != nullptr) RunActivateBackward<Activation::kNone>(op);
}

void DoRowDot(Stream&, const RowDot& op) { ForRows(0, op.x.rows, op); }
void DoRowDotWeightGrad(Stream&, const RowDotWeightGrad& op) {
  SumColumns(op.x.rows, op.x.cols, op.w_grad, op);
}
void DoRowDotInputGrad(Stream&, const RowDotInputGrad& op) {
  ForMatrix(op.x_grad.rows, op.x_grad.cols, op);
}
void DoSumParts(Stream&, const SumParts& op) { ForRows(0, op.rows, op); }

void DoDropout(Stream&, const Dropout& arg) {
  const Dropout op = arg;
  const uint32_t limit = op.Limit();
  const float scale = static_cast<float>(1 / op.keep);
  for (int64_t row = 0; row < op.y.rows; ++row) {
    const Dropout::RowKey key = op.Key(row);
    TERRACE_INDEPENDENT
    for (int64_t col = 0; col < op.y.cols; ++col) op(key, limit, scale, row, col);
  }
}

void DoCopy(Stream&, const Copy& op) { ForElements(0, op.size, op); }
void DoAccumulate(Stream&, const Accumulate& op) { ForElements(0, op.size, op); }
void DoClear(Stream&, const Clear& op) { ForMatrix(op.y.rows, op.y.cols, op); }

void DoFmPool(Stream&, const FmPool& op) { ForRows(0, op.x.rows, op); }
void DoFmPoolBackward(Stream&, const FmPoolBackward& op) { ForRows(0, op.x.rows, op); }
void DoResizeVectors(Stream&, const ResizeVectors& op) { ForRows(0, op.y.rows, op); }
void DoCrossForward(Stream&, const CrossForward& op) { ForMatrix(op.y.rows, op.y.cols, op); }

void DoCrossBackward(Stream&, const CrossBackward& arg) {
  const CrossBackward op = arg;
  SumColumns(op.u_grad.rows, op.u_grad.cols, op.bias_grad,
             [op](int64_t row, int64_t col) { return op.UnitGrad(row, col); });
  ForMatrix(op.x0_grad.rows, op.x0_grad.cols,
            [op](int64_t row, int64_t col) { op.X0Grad(row, col); });
  if (op.xl_grad.data == nullptr) return;
  ForMatrix(op.xl_grad.rows, op.xl_grad.cols,
            [op](int64_t row, int64_t col) { op.XlGrad(row, col); });
}

void DoPairDots(Stream&, const PairDots& op) { ForRows(0, op.y.rows, op); }
void DoPairDotsBackward(Stream&, const PairDotsBackward& op) { ForRows(0, op.y_grad.rows, op); }

double DoLogLoss(Stream&, const LogLossRows& arg) {
  const LogLossRows op = arg;
  ForElements(0, op.rows, [op](int64_t row) { op.Probability(row); });
  if (op.logit_grad != nullptr) ForElements(0, op.rows, [op](int64_t row) { op.Gradient(row); });
  double sum = 0;
  for (int64_t row = 0; row < op.rows; ++row) sum += op.Loss(row);
  return sum;
}

void DoSgd(Stream&, const SgdUpdate& op) { ForElements(op.common.begin, op.common.end, op); }
void DoAdaGrad(Stream&, const AdaGradUpdate& op) {
  ForElements(op.common.begin, op.common.end, op);
}
void DoAdam(Stream&, const AdamUpdate& op) { ForElements(op.common.begin, op.common.end, op); }

double DoSumSquares(Stream&, const SumSquares& op) {
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= op.size; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += double{op.x[i + l]} * op.x[i + l];
  for (int l = 0; i < op.size; ++l, ++i) lane[l] += double{op.x[i]} * op.x[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

}  // namespace

const DenseKernels kDenseKernels = {
    .bias_activate = DoBiasActivate,
    .activate_backward = DoActivateBackward,
    .row_dot = DoRowDot,
    .row_dot_weight_grad = DoRowDotWeightGrad,
    .row_dot_input_grad = DoRowDotInputGrad,
    .sum_parts = DoSumParts,
    .dropout = DoDropout,
    .copy = DoCopy,
    .accumulate = DoAccumulate,
    .clear = DoClear,
    .fm_pool = DoFmPool,
    .fm_pool_backward = DoFmPoolBackward,
    .resize_vectors = DoResizeVectors,
    .cross_forward = DoCrossForward,
    .cross_backward = DoCrossBackward,
    .pair_dots = DoPairDots,
    .pair_dots_backward = DoPairDotsBackward,
    .log_loss = DoLogLoss,
    .sgd = DoSgd,
    .adagrad = DoAdaGrad,
    .adam = DoAdam,
    .sum_squares = DoSumSquares,
};

}  // namespace TERRACE_ISA
}  // namespace terrace
