// What a table is: its dim, optimizer, initialiser and codecs, and the layout of its rows.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"
#include "device/embedding_ops.h"
#include "table/admission_config.h"
#include "table/lifecycle.h"

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
  RowCodec weight_codec = RowCodec::kFp32;
  RowCodec state_codec = RowCodec::kFp32;
  Rounding rounding = Rounding::kStochastic;
  AdmissionConfig admission;
  LifeConfig life;

  void Visit(ConfigVisitor& v);
};

// Where the parts of a row are. A row is `weights` numbers (dim of vector, then 0 or 1 of linear
// weight), then `state` numbers of the optimizer; `format` has their codecs and places; then
// RowStats, where the table counts uses. In every tier a row is the same bytes. In an arena it
// stands behind its key, and the next one begins `stride` bytes further on.
struct RowLayout {
  static constexpr int64_t kKeyBytes = 8;

  int dim = 0;
  int linear = 0;
  int weights = 0;  // dim + linear
  int state = 0;
  RowFormat format;
  bool counts = false;  // has RowStats
  int64_t stride = 0;   // bytes, a multiple of 8

  int64_t stats_offset() const { return format.bytes; }
  int64_t payload_bytes() const {
    return format.bytes + (counts ? static_cast<int64_t>(sizeof(RowStats)) : 0);
  }
  // The arena whose row 0 is at `base`.
  ArenaView View(std::byte* base) const {
    return {base, stride, dim, linear, format.parts[0].codec};
  }
};

// A table of a model: config, layout and identity. Constant after construction.
struct TableSchema {
  std::string name;
  TableConfig config;
  RowLayout layout;
  uint64_t init_seed = 0;      // of the run's seed and the table's name
  uint64_t rounding_seed = 0;  // of init_seed

  static TableSchema Make(const std::string& name, const TableConfig& config, bool linear,
                          uint64_t seed);
};

// Packs rows that were just made or updated: EncodeRows with the random bits of (rounding_seed,
// key, step), so a row's codes do not depend on where it is or who packs it. At most kPackRows
// rows. Returns how many numbers were beyond their codec's largest.
inline constexpr int64_t kPackRows = 32;
[[nodiscard]] int64_t PackRows(Stream& stream, const TableSchema& schema, const PackedRows& rows,
                               RowParts parts,
                               const uint64_t* keys,   // [rows]
                               int64_t step,           // batches so far; 0: a new row
                               const float* numbers);  // [rows, weights + state]

// Writes the first value of the row of `key`: a pure function of (init_seed, key).
void InitRow(const TableSchema& schema, uint64_t key, std::byte* row);

}  // namespace terrace
