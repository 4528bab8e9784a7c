// The feature path: from a slot and a raw value to a 64-bit key. Training and serving share it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "data/batch.h"
#include "data/data_config.h"

namespace terrace {

// Identifies a slot by its name, so that adding or reordering slots changes no key.
uint64_t SlotSeed(std::string_view slot_name);
// The key of a text value / of an integer id.
inline uint64_t TextKey(uint64_t slot_seed, std::string_view raw) {
  return HashBytes(raw.data(), raw.size(), slot_seed);
}
inline uint64_t IntegerKey(uint64_t slot_seed, uint64_t id) { return Mix64(slot_seed + Mix64(id)); }

// The bucket of bucket = "log". Above 2 it is floor(ln(x)^2), the scheme usual for Criteo: 0, 1, 2,
// ... with ever wider buckets. From -2 to 2 each floor(x) has its own: -1 - (floor(x) + 2). Below
// -2 buckets mirror those above 2: -6 - floor(ln(-x)^2). `x` is finite.
int64_t LogBucket(double x);
// The bucket of bucket = "boundaries": how many of them are <= x.
int64_t BoundaryBucket(const std::vector<double>& boundaries, double x);

// A slot after the config is resolved.
struct Slot {
  SlotConfig config;
  uint64_t seed = 0;         // SlotSeed of its name, or of same_keys_as
  uint64_t missing_key = 0;  // TextKey of an empty value
  int group = 0;             // key group (= table) and its place there
  int index_in_group = 0;
  int linear_group = -1;  // the same of linear_table; -1: there is none
  int linear_index = 0;
};

// A dense column after the config is resolved and its statistics are measured.
struct DenseColumn {
  DenseConfig config;
  double mean = 0;
  double inv_std = 1;
  float Transform(double x) const;
};

// All slots, dense columns and optional columns of a model's input. Constant once made (but for the
// dense statistics, which are measured before training or taken from a snapshot).
struct FeatureSpec {
  std::vector<Slot> slots;               // in config order
  std::vector<std::string> group_names;  // table names, sorted; slots of a group keep config order
  std::vector<DenseColumn> dense;
  BatchShape shape;

  // Slot (index into slots) of each place of each group. One with a linear_table is in two groups,
  // with the same keys.
  std::vector<std::vector<int>> group_slots;
  // Of each group: its slots have their linear weights in other tables.
  std::vector<uint8_t> vectors_only;

  // Expands ranges ("C1..C26"), fills a format's own slots where none are given (Criteo: C1..C26,
  // and dense with log those of I1..I13 that no slot uses; libsvm: one slot "features"; libffm:
  // "field0".. ; synthetic: "s0".. and dense "d0"..), and checks the result. Throws Error(kUsage).
  static FeatureSpec Resolve(const DataConfig& config);
};

// Names of the columns of a Criteo file: label, I1..I13, C1..C26.
const std::vector<std::string>& CriteoColumns();

}  // namespace terrace
