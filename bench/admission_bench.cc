// What it costs to decide which keys get a row: ns a key in a batch, on one thread.
//
// The argument is the number of distinct keys, nine of ten of them seen once and the others ten
// times, in any order, in batches of 10,000. `told`: memory is taken at the start for as many keys;
// `grown`: it doubles from little. Keys a second are of CPU time; bytes are for each distinct key.
// `line` is the least that any table in memory can do: prefetched, one word of one random line of
// the same memory is changed for each key.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/random.h"
#include "table/admission.h"

namespace terrace {
namespace {

constexpr size_t kBatch = 10'000;

// Batches of a stream; keys of one batch are distinct but for a few, which does no harm here.
std::vector<uint64_t> Stream(uint64_t distinct) {
  std::vector<uint64_t> keys;
  keys.reserve(2 * distinct);
  for (uint64_t key = 0; key < distinct; ++key)
    keys.insert(keys.end(), key % 10 == 0 ? 10 : 1, Mix64(key));
  RandomStream random(1, 1);
  for (size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[BelowN(random.Next(), i)]);
  keys.resize(keys.size() / kBatch * kBatch);
  return keys;
}

void Run(benchmark::State& state, AdmissionConfig config) {
  const auto distinct = static_cast<uint64_t>(state.range(0));
  const std::vector<uint64_t> keys = Stream(distinct);
  const std::vector<uint32_t> shows(kBatch, 1), clicks(kBatch, 0);
  std::vector<uint8_t> admitted(kBatch);
  int64_t bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Admission admission(config, 1);
    state.ResumeTiming();
    for (size_t i = 0; i < keys.size(); i += kBatch)
      admission.Step({&keys[i], kBatch}, shows, clicks, 0, admitted);
    state.PauseTiming();
    bytes = admission.bytes();
    state.ResumeTiming();
  }
  state.counters["ns/key"] = benchmark::Counter(
      1e-9 * static_cast<double>(keys.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes/distinct"] = static_cast<double>(bytes) / static_cast<double>(distinct);
}

AdmissionConfig Config(AdmitBy by, int64_t keys) {
  AdmissionConfig config;
  config.by = by;
  config.keys = keys;
  if (by == AdmitBy::kCount) config.count = 3;
  if (by == AdmitBy::kProbability) config.probability = 0.3;
  if (by == AdmitBy::kScore) config.score = 10;
  return config;
}

void CountTold(benchmark::State& state) { Run(state, Config(AdmitBy::kCount, state.range(0))); }
void CountGrown(benchmark::State& state) { Run(state, Config(AdmitBy::kCount, 0)); }
void ProbabilityTold(benchmark::State& state) {
  Run(state, Config(AdmitBy::kProbability, state.range(0)));
}
void ScoreTold(benchmark::State& state) { Run(state, Config(AdmitBy::kScore, state.range(0))); }

void Line(benchmark::State& state) {
  constexpr size_t kAhead = 16;
  const std::vector<uint64_t> keys = Stream(static_cast<uint64_t>(state.range(0)));
  Array<uint64_t> words(8 * static_cast<size_t>(state.range(0)) / 26, 0);
  const auto word = [&](size_t i) { return &words[BelowN(keys[i], words.size() / 8) * 8]; };
  for (auto _ : state)
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i + kAhead < keys.size()) __builtin_prefetch(word(i + kAhead), 1);
      ++*word(i);
    }
  state.counters["ns/key"] = benchmark::Counter(
      1e-9 * static_cast<double>(keys.size()),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK(Line)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CountTold)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CountGrown)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(ProbabilityTold)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(ScoreTold)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace terrace

BENCHMARK_MAIN();
