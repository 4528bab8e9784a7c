#include "model/loss.h"

#include "device/dense_ops.h"

namespace terrace {

double LogLoss(Stream& stream, const LossArgs& args) {
  return Launch(stream, LogLossRows{.rows = args.rows,
                                    .logits = args.logits,
                                    .labels = args.labels,
                                    .weights = args.weights,
                                    .grad_scale = args.grad_scale,
                                    .probabilities = args.probabilities,
                                    .logit_grad = args.logit_grad});
}

}  // namespace terrace
