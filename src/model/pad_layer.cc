#include "model/pad_layer.h"

#include "device/dense_ops.h"

namespace terrace {

void PadLayer::NameColumns(ColumnNames* names) const {
  int64_t narrow = input_.begin;
  for (const Run& run : runs_)
    for (int v = 0; v < run.count; ++v, narrow += run.dim)
      for (int64_t i = 0; i < dim_; ++i)
        (*names)[output_].push_back({(*names)[input_.tensor][narrow].of, "", i});
}

void PadLayer::Forward(Tape& tape) const {
  int64_t narrow = 0;
  int64_t wide = 0;
  for (const Run& run : runs_) {
    const int64_t x_cols = int64_t{run.count} * run.dim;
    const int64_t y_cols = int64_t{run.count} * dim_;
    Launch(*tape.stream, ResizeVectors{.x = tape.Value(input_).Columns(narrow, x_cols),
                                       .x_dim = run.dim,
                                       .y = tape.value[output_].Columns(wide, y_cols),
                                       .y_dim = dim_,
                                       .count = run.count});
    narrow += x_cols;
    wide += y_cols;
  }
}

void PadLayer::Backward(Tape& tape) const {
  int64_t narrow = 0;
  int64_t wide = 0;
  for (const Run& run : runs_) {
    const int64_t x_cols = int64_t{run.count} * run.dim;
    const int64_t y_cols = int64_t{run.count} * dim_;
    Launch(*tape.stream, ResizeVectors{.x = tape.grad[output_].Columns(wide, y_cols),
                                       .x_dim = dim_,
                                       .y = tape.Grad(input_).Columns(narrow, x_cols),
                                       .y_dim = run.dim,
                                       .count = run.count,
                                       .adds = input_.adds});
    narrow += x_cols;
    wide += y_cols;
  }
}

}  // namespace terrace
