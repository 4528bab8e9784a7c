// A memory tier of 64-byte rows against boost::unordered_flat_map, on one thread, in one process;
// bench/index.py runs it.
//
//   index_bench [rows]
//
// Grows both from empty by batches of 100 k new keys, then looks up batches of 100 k distinct keys
// all over the table, some of them new, the sides taking turns of ten batches. A row starts as
// zeros on both sides. "touched": one float of each row is then changed as well, for which we
// prefetch as training does. The peer either holds rows in its slots or positions of rows in an
// array.
//
// Prints JSON, one object a line: {"who", "what", "value"}. Times are CPU time of the thread.
#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/limits.h"
#include "tier/memory_tier.h"

namespace terrace {
namespace {

constexpr size_t kBatch = 100'000;
constexpr int kTurns = 4;
constexpr int kLookups = 10;  // a turn
constexpr double kNewShares[] = {0, 0.01, 0.1};

struct Row {
  float floats[16];
};
static_assert(sizeof(Row) == 64);

class Ours {
 public:
  static constexpr const char* kName = "ours";

  void FindOrCreate(const std::vector<uint64_t>& keys) { tier_.FindOrCreate(keys, positions_); }
  void Touch() {
    constexpr size_t kAhead = 32;
    for (size_t i = 0; i < kBatch; ++i) {
      if (i + kAhead < kBatch) __builtin_prefetch(RowAt(positions_[i + kAhead]), 1);
      RowAt(positions_[i])->floats[0] += 1;
    }
  }
  // Above the rows themselves.
  double BytesPerRow() const {
    const double all = static_cast<double>(tier_.arena_bytes() + tier_.index_bytes());
    return all / static_cast<double>(tier_.rows()) - sizeof(Row);
  }

 private:
  static TableSchema Schema() {
    TableConfig config;
    config.dim = 8;  // and as many sums of squares
    config.init = RowInit::kZero;
    return TableSchema::Make("bench", config, false, 1);
  }
  Row* RowAt(uint32_t position) {
    return reinterpret_cast<Row*>(tier_.base() + position * tier_.schema().layout.stride);
  }

  MemoryTier tier_{Schema()};
  std::vector<uint32_t> positions_ = std::vector<uint32_t>(kBatch);
};

template <typename Map>
double BytesOfSlots(const Map& map) {
  // 15 elements and 16 bytes of metadata a group.
  return static_cast<double>(map.bucket_count()) * (sizeof(typename Map::value_type) + 16.0 / 15);
}

class MapOfRows {
 public:
  static constexpr const char* kName = "map of rows";

  void FindOrCreate(const std::vector<uint64_t>& keys) {
    for (size_t i = 0; i < kBatch; ++i) rows_[i] = &map_.try_emplace(keys[i]).first->second;
    // Insertion may have moved them.
    if (map_.bucket_count() == buckets_) return;
    buckets_ = map_.bucket_count();
    for (size_t i = 0; i < kBatch; ++i) rows_[i] = &map_.find(keys[i])->second;
  }
  void Touch() {
    for (Row* row : rows_) row->floats[0] += 1;
  }
  double BytesPerRow() const {
    return BytesOfSlots(map_) / static_cast<double>(map_.size()) - sizeof(Row);
  }

 private:
  boost::unordered_flat_map<uint64_t, Row> map_;
  size_t buckets_ = 0;
  std::vector<Row*> rows_ = std::vector<Row*>(kBatch);
};

class MapOfPositions {
 public:
  static constexpr const char* kName = "map of positions";

  void FindOrCreate(const std::vector<uint64_t>& keys) {
    for (size_t i = 0; i < kBatch; ++i)
      positions_[i] = map_.try_emplace(keys[i], static_cast<uint32_t>(map_.size())).first->second;
    rows_.resize(map_.size());
  }
  void Touch() {
    for (uint32_t position : positions_) rows_[position].floats[0] += 1;
  }
  double BytesPerRow() const {
    return (BytesOfSlots(map_) + static_cast<double>(rows_.capacity() * sizeof(Row))) /
               static_cast<double>(map_.size()) -
           sizeof(Row);
  }

 private:
  boost::unordered_flat_map<uint64_t, uint32_t> map_;
  std::vector<Row> rows_;
  std::vector<uint32_t> positions_ = std::vector<uint32_t>(kBatch);
};

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void Print(const char* who, const std::string& what, double value) {
  fmt::print("{{\"who\": \"{}\", \"what\": \"{}\", \"value\": {:.4g}}}\n", who, what, value);
}

// `share` of the keys are new ones, numbered from `fresh` on; the others are distinct old ones.
void FillBatch(uint64_t old_keys, double share, uint64_t seed, uint64_t fresh,
               std::vector<uint64_t>* keys) {
  const uint64_t start = BelowN(RandomBits(seed, 1), old_keys);
  // Steps of a number without common factors with old_keys reach distinct keys all over the table.
  constexpr uint64_t kStep = 7'368'787;
  for (size_t i = 0; i < keys->size(); ++i) {
    const bool is_new = UnitDouble(RandomBits(seed, 2, i)) < share;
    (*keys)[i] = RandomBits(1, is_new ? fresh++ : (start + i * kStep) % old_keys);
  }
}

template <typename Table>
void Grow(uint64_t total, Table* table) {
  std::vector<uint64_t> keys(kBatch);
  std::vector<double> seconds;
  double sum = 0;
  for (uint64_t n = 0; n < total; n += kBatch) {
    for (size_t i = 0; i < kBatch; ++i) keys[i] = RandomBits(1, n + i);
    const double start = CpuSeconds();
    table->FindOrCreate(keys);
    seconds.push_back(CpuSeconds() - start);
    sum += seconds.back();
  }
  Print(Table::kName, "grow", sum * 1e9 / static_cast<double>(total));
  Print(Table::kName, "slowest / median",
        *std::max_element(seconds.begin(), seconds.end()) / Median(seconds));
  Print(Table::kName, "bytes", table->BytesPerRow());
}

using Batches = std::vector<std::vector<uint64_t>>;

// One side's times in one case: ns a key of each batch.
template <typename Table>
class Lookups {
 public:
  Lookups(Table* table, std::string what, bool touch)
      : table_(*table), what_(std::move(what)), touch_(touch) {}
  ~Lookups() { Print(Table::kName, what_, Median(ns_)); }

  void TakeTurn(const Batches& batches) {
    for (const std::vector<uint64_t>& keys : batches) {
      const double start = CpuSeconds();
      table_.FindOrCreate(keys);
      if (touch_) table_.Touch();
      ns_.push_back((CpuSeconds() - start) * 1e9 / kBatch);
    }
  }

 private:
  Table& table_;
  const std::string what_;
  const bool touch_;
  std::vector<double> ns_;
};

void Main(uint64_t total) {
  Ours ours;
  MapOfRows of_rows;
  MapOfPositions of_positions;
  Grow(total, &ours);
  Grow(total, &of_rows);
  Grow(total, &of_positions);
  uint64_t fresh = total;
  uint64_t seed = 0;
  Batches batches(kLookups, std::vector<uint64_t>(kBatch));
  for (bool touch : {false, true}) {
    for (double share : kNewShares) {
      const std::string what = fmt::format("{} {:g}", touch ? "touch" : "find", share);
      Lookups a(&ours, what, touch);
      Lookups b(&of_rows, what, touch);
      Lookups c(&of_positions, what, touch);
      for (int turn = 0; turn < kTurns; ++turn) {
        for (std::vector<uint64_t>& keys : batches)
          FillBatch(total, share, ++seed, std::exchange(fresh, fresh + kBatch), &keys);
        a.TakeTurn(batches);
        b.TakeTurn(batches);
        c.TakeTurn(batches);
      }
    }
  }
  Print("machine", "line", 1e9 / MeasureLimits(1).lines);
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  terrace::Main(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000'000);
}
