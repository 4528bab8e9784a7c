// The batches of tiers_bench: endless traffic over a table of known keys, made while it is read.
//
// Batch b is a pure function of (options, b). Keys follow a Zipf law over the rows that exist; with
// `fresh` that share of the draws are keys never seen before, from then on the law's last ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/shapes.h"
#include "data/open_data.h"
#include "data/zipf.h"

namespace terrace {

struct TrafficOptions {
  static constexpr double kExponent = 1.05;

  BenchShape shape = {};
  uint64_t rows = 0;  // before the first batch; at least 1
  double fresh = 0;   // share of the draws
  uint64_t seed = 1;

  uint64_t draws(int64_t examples) const {
    return static_cast<uint64_t>(examples) * static_cast<uint64_t>(shape.slots * shape.values);
  }
  // Of a batch of so many draws.
  uint64_t fresh_keys(uint64_t draws) const {
    return static_cast<uint64_t>(static_cast<double>(draws) * fresh);
  }
};

// One thread.
class Traffic : public DataStream {
 public:
  Traffic(const TrafficOptions& options, const BatchShape& shape)
      : options_(options), shape_(shape), law_(options.rows, TrafficOptions::kExponent) {}

  const BatchShape& shape() const override { return shape_; }
  bool Next(int64_t size, Batch* batch) override;
  // The keys alone.
  void NextKeys(uint64_t draws, std::vector<uint64_t>* keys);

  int64_t skipped_rows() const override { return 0; }
  double progress() const override { return -1; }
  int64_t buffer_bytes() const override { return 0; }
  int64_t total_examples() const override { return -1; }
  std::string position() const override { return {}; }  // it is never resumed

 private:
  const TrafficOptions options_;
  const BatchShape& shape_;
  ZipfSampler law_;
  uint64_t next_ = 0;  // batch
};

}  // namespace terrace
