// The work of disk_bench: which keys a batch has, and what is in the rows.
//
// The same for every engine: batches depend on (rows, law, size, seed, number) only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"

namespace terrace {

// Ranks 1..n with probability proportional to rank^-s, exactly: rejection-inversion (Hoermann and
// Derflinger 1996).
class ZipfLaw {
 public:
  ZipfLaw(uint64_t n, double s);
  uint64_t Draw(RandomStream* random) const;

 private:
  double Integral(double x) const;  // of x^-s, from 1
  double InverseIntegral(double y) const;

  const double n_, s_;
  double low_, high_, accept_;
};

// The keys of a table of `rows` rows: a bijection of 0..rows-1.
class TableKeys {
 public:
  explicit TableKeys(uint64_t rows) : rows_(rows) {}
  uint64_t rows() const { return rows_; }
  static uint64_t Key(uint64_t i) { return Mix64(i + 1); }
  static uint64_t AbsentKey(uint64_t i) { return Mix64(~i); }

  // Calls sink with all keys: in batches in the order of i, or in ascending order.
  using Sink = std::function<void(std::span<const uint64_t> keys)>;
  void ForEachBatch(size_t batch, bool sorted, const Sink& sink) const;

 private:
  uint64_t rows_;
};

// Makes batches of distinct keys: `size` draws, of which repeated ones are dropped.
class BatchMaker {
 public:
  // law: "uniform", "absent" (uniform, of keys not in the table) or "zipf:0.99".
  BatchMaker(uint64_t rows, const std::string& law, size_t size, uint64_t seed);
  void Make(uint64_t number, std::vector<uint64_t>* keys) const;

 private:
  const uint64_t rows_;
  const size_t size_;
  const uint64_t seed_;
  const bool absent_;
  const double exponent_;  // 0: uniform
  const ZipfLaw zipf_;
};

// Rows carry their key and the version of their last write, so that each get can be checked: all
// words of each row, and for one key in 1,024 also that it is the version last written.
class RowChecker {
 public:
  explicit RowChecker(size_t row_bytes) : words_(row_bytes / 8) {}
  // Writes the rows of a new version.
  void Fill(std::span<const uint64_t> keys, std::byte* rows);
  // Throws Error(kCorruption) for a wrong row, a stale one, or found != present.
  void Check(std::span<const uint64_t> keys, const std::byte* rows, const uint8_t* found,
             bool present) const;
  // Versions of this process are above those of earlier ones on the same directory.
  void StartAt(uint64_t version) { version_ = version; }

 private:
  static bool IsTracked(uint64_t key) { return key % 1024 == 0; }

  const size_t words_;  // of a row
  uint64_t version_ = 0;
  std::unordered_map<uint64_t, uint64_t> last_;  // tracked key -> version
};

}  // namespace terrace
