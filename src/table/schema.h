// What a table is: its dim, optimizer and initialiser, and the layout of its rows.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace terrace {

enum class RowOptimizer { kSgd, kAdaGrad, kRowAdaGrad, kAdam, kFtrl };
enum class RowInit { kZero, kUniform, kNormal };

// One [tables.NAME] of the config.
struct TableConfig {
  int64_t dim = 16;
  RowOptimizer optimizer = RowOptimizer::kAdaGrad;
  double lr = 0.05;
  double l2 = 0;         // l2 * w is added to the gradient of the rows that a batch touches
  double clip_norm = 0;  // a row's gradient is scaled down to this norm; 0: off
  RowInit init = RowInit::kUniform;
  double init_scale = 0.01;        // uniform: in [-scale, scale); normal: standard deviation
  double initial_accumulator = 0;  // AdaGrad kinds: where the squared sum starts
  double eps = 1e-8;
  double beta1 = 0.9;    // Adam
  double beta2 = 0.999;  // Adam
  double ftrl_l1 = 0;
  double ftrl_l2 = 0;
  double ftrl_beta = 1;

  void Visit(ConfigVisitor& v);
};

// Where the parts of a row are. A row is `weights` floats (dim of vector, then 0 or 1 of linear
// weight), then `state` floats of the optimizer. In an arena a row stands behind its key, and the
// next one begins `stride` bytes further on.
struct RowLayout {
  static constexpr int64_t kKeyBytes = 8;

  int dim = 0;
  int linear = 0;
  int weights = 0;  // dim + linear
  int state = 0;
  int64_t stride = 0;  // bytes, a multiple of 8

  int64_t payload_bytes() const { return 4 * int64_t{weights + state}; }
};

// A table of a model: config, layout and identity. Constant after construction.
struct TableSchema {
  std::string name;
  TableConfig config;
  RowLayout layout;
  uint64_t init_seed = 0;  // of the run's seed and the table's name

  static TableSchema Make(const std::string& name, const TableConfig& config, bool linear,
                          uint64_t seed);
};

// Writes the first value of the row of `key`: a pure function of (init_seed, key).
void InitRow(const TableSchema& schema, uint64_t key, std::byte* row);

}  // namespace terrace
