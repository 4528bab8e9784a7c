// The memory tier's index against boost::unordered_flat_map, on one thread, in one run.
//
//   index_bench [keys]
//
// Grows both from empty by batches of 100 k new keys, then looks up batches of 100 k keys of which
// some are new. Times are CPU time of the thread, medians over batches. Without boost at build time
// the peer's columns are empty.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define TERRACE_HAVE_FLAT_MAP 1
#endif

#include "base/random.h"
#include "base/text.h"
#include "tier/key_index.h"

namespace terrace {
namespace {

constexpr int64_t kBatch = 100'000;
constexpr int kLookups = 60;

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

class OurIndex {
 public:
  void FindOrInsert(const std::vector<uint64_t>& keys, std::vector<uint32_t>& positions) {
    index_.FindOrInsert(keys, positions);
  }
  double BytesPerKey() const {
    return static_cast<double>(index_.bytes()) / static_cast<double>(index_.size());
  }

 private:
  KeyIndex index_{"bench"};
};

#if defined(TERRACE_HAVE_FLAT_MAP)
class FlatMap {
 public:
  void FindOrInsert(const std::vector<uint64_t>& keys, std::vector<uint32_t>& positions) {
    for (size_t i = 0; i < keys.size(); ++i)
      positions[i] =
          map_.try_emplace(keys[i], static_cast<uint32_t>(map_.size() + 1)).first->second;
  }
  // 15 elements of 16 bytes and 16 bytes of metadata a group.
  double BytesPerKey() const {
    return static_cast<double>(map_.bucket_count()) * (16 + 16.0 / 15) /
           static_cast<double>(map_.size());
  }

 private:
  boost::unordered_flat_map<uint64_t, uint32_t> map_;
};
#endif

struct Result {
  double grow_ns = 0;             // a key, over all batches
  double grow_median_ms = 0;      // a batch
  double grow_slowest_ms = 0;     // a batch
  double most_bytes = 0;          // a key, from 1 M keys on
  std::vector<double> lookup_ns;  // a key, by share of new keys
};
constexpr double kNewShares[] = {0, 0.01, 0.1};

double Median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// `share` of the keys are new ones, numbered from `fresh` on; the others are distinct old ones.
void FillBatch(int64_t old_keys, double share, uint64_t seed, uint64_t* fresh,
               std::vector<uint64_t>* keys) {
  const uint64_t start = BelowN(RandomBits(seed, 1), static_cast<uint64_t>(old_keys));
  // Steps of a number without common factors with old_keys reach distinct keys all over the table.
  constexpr uint64_t kStep = 7'368'787;
  for (size_t i = 0; i < keys->size(); ++i) {
    const bool is_new = UnitDouble(RandomBits(seed, 2, i)) < share;
    const uint64_t number =
        is_new ? (*fresh)++ : (start + i * kStep) % static_cast<uint64_t>(old_keys);
    (*keys)[i] = RandomBits(1, number);
  }
}

template <typename Index>
Result Run(int64_t total) {
  Index index;
  Result result;
  std::vector<uint64_t> keys(kBatch);
  std::vector<uint32_t> positions(kBatch);
  std::vector<double> grow;
  uint64_t fresh = 0;
  for (int64_t n = 0; n < total; n += kBatch) {
    for (uint64_t& key : keys) key = RandomBits(1, fresh++);
    const double start = CpuSeconds();
    index.FindOrInsert(keys, positions);
    grow.push_back(CpuSeconds() - start);
    result.grow_ns += grow.back() * 1e9 / static_cast<double>(total);
    if (n + kBatch >= 1'000'000)
      result.most_bytes = std::max(result.most_bytes, index.BytesPerKey());
  }
  result.grow_median_ms = Median(grow) * 1e3;
  result.grow_slowest_ms = *std::max_element(grow.begin(), grow.end()) * 1e3;
  for (double share : kNewShares) {
    std::vector<double> times;
    for (int b = 0; b < kLookups; ++b) {
      FillBatch(total, share, static_cast<uint64_t>(b), &fresh, &keys);
      const double start = CpuSeconds();
      index.FindOrInsert(keys, positions);
      times.push_back((CpuSeconds() - start) * 1e9 / kBatch);
    }
    result.lookup_ns.push_back(Median(times));
  }
  return result;
}

void Print(int64_t total, const Result& ours, const Result* peer) {
  TextTable table({"case", "unit", "ours", "flat_map", "ratio"});
  const auto add = [&](const std::string& name, const char* unit, double our, double other) {
    table.AddRow({name, unit, fmt::format("{:.1f}", our),
                  peer == nullptr ? "-" : fmt::format("{:.1f}", other),
                  peer == nullptr ? "-" : fmt::format("{:.2f}", other / our)});
  };
  const Result none{.lookup_ns = std::vector<double>(std::size(kNewShares))};
  const Result& p = peer == nullptr ? none : *peer;
  for (size_t i = 0; i < std::size(kNewShares); ++i)
    add(fmt::format("find or create, {:.0f} % new", kNewShares[i] * 100), "ns/key",
        ours.lookup_ns[i], p.lookup_ns[i]);
  add("grow from empty", "ns/key", ours.grow_ns, p.grow_ns);
  add("grow, median batch", "ms", ours.grow_median_ms, p.grow_median_ms);
  add("grow, slowest batch", "ms", ours.grow_slowest_ms, p.grow_slowest_ms);
  add("most memory from 1 M keys on", "bytes/key", ours.most_bytes, p.most_bytes);
  std::fputs(fmt::format("{} M keys, batches of {} k\n", total / 1e6, kBatch / 1000).c_str(),
             stdout);
  std::fputs(table.Render().c_str(), stdout);
}

void Main(int64_t total) {
  const Result ours = Run<OurIndex>(total);
#if defined(TERRACE_HAVE_FLAT_MAP)
  const Result peer = Run<FlatMap>(total);
  Print(total, ours, &peer);
#else
  Print(total, ours, nullptr);
#endif
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) { terrace::Main(argc > 1 ? std::atoll(argv[1]) : 20'000'000); }
