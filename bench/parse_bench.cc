// How fast text becomes batches, in bytes of uncompressed text a second.
//
//   parse_bench [--benchmark_filter=Criteo]
//
// The Criteo text is like the Kaggle data set in what costs time: 240 bytes a line, a fifth of the
// integers and a ninth of the categories empty, skewed integers, categories of 8 hex digits.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>

#include "base/random.h"
#include "data/memory_env.h"
#include "data/open_data.h"
#include "data/text_producer.h"

namespace terrace {
namespace {

constexpr size_t kCriteoBytes = 200'000'000;
constexpr size_t kOtherBytes = 50'000'000;

// A rank in [0, n), small ones much more often.
uint64_t SkewedRank(RandomStream& random, double n) {
  return static_cast<uint64_t>(std::exp(UnitDouble(random.Next()) * std::log(n))) - 1;
}

void AppendCriteoLine(RandomStream& random, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, "{}", random.Next() % 4 == 0 ? 1 : 0);
  for (int i = 0; i < 13; ++i) {
    out->push_back('\t');
    const uint64_t kind = random.Next() % 1000;
    if (kind < 210) continue;
    if (kind < 218) out->push_back('-');
    fmt::format_to(to, "{}", kind < 218 ? 1 : SkewedRank(random, i % 5 == 4 ? 1e6 : 2e3));
  }
  for (int i = 0; i < 26; ++i) {
    out->push_back('\t');
    if (random.Next() % 9 == 0) continue;
    fmt::format_to(to, "{:08x}", static_cast<uint32_t>(Mix64(SkewedRank(random, 1e6) + 1)));
  }
  out->push_back('\n');
}

void AppendCsvLine(RandomStream& random, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{},{},{},{:.4f},Action|Drama|{}\n", random.Next() % 2,
                 SkewedRank(random, 1e6), SkewedRank(random, 1e5), UnitDouble(random.Next()),
                 random.Next() % 20);
}

void AppendLibsvmLine(RandomStream& random, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{}", random.Next() % 2 == 0 ? "+1" : "-1");
  for (int i = 0; i < 40; ++i)
    fmt::format_to(std::back_inserter(*out), " {}:{:.6g}", SkewedRank(random, 1e6),
                   UnitDouble(random.Next()));
  out->push_back('\n');
}

std::string MakeText(std::string text, size_t bytes,
                     void (*append_line)(RandomStream&, std::string*)) {
  RandomStream random(1, 0);
  text.reserve(bytes + 4096);
  while (text.size() < bytes) append_line(random, &text);
  return text;
}

MemoryEnv& Files() {
  static MemoryEnv* env = [] {
    auto* made = new MemoryEnv;
    made->files["criteo"] = MakeText("", kCriteoBytes, AppendCriteoLine);
    made->files["csv"] = MakeText("label,user,item,x,tags\n", kOtherBytes, AppendCsvLine);
    made->files["libsvm"] = MakeText("", kOtherBytes, AppendLibsvmLine);
    return made;
  }();
  return *env;
}

DataConfig ConfigOf(DataFormat format) {
  DataConfig config;
  config.format = format;
  switch (format) {
    case DataFormat::kCsv: {
      config.train = {"csv"};
      config.slots.resize(3);
      config.slots[0].name = "user";
      config.slots[1].name = "item";
      config.slots[2].name = "tags";
      config.slots[2].separator = "|";
      config.dense.resize(1);
      config.dense[0].name = "x";
      break;
    }
    case DataFormat::kLibsvm:
      config.train = {"libsvm"};
      break;
    default:
      config.train = {"criteo"};
      break;
  }
  return config;
}

void SetBytes(benchmark::State& state, const DataConfig& config) {
  const size_t bytes = Files().files[config.train[0]].size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// Everything on the calling thread: reading blocks, parsing, hashing.
void BM_Parse(benchmark::State& state) {
  const DataConfig config = ConfigOf(static_cast<DataFormat>(state.range(0)));
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  MemoryEnv& env = Files();
  for (auto _ : state) {
    const auto producer = MakeTextProducer(env, config.train, config, spec);
    Batch chunk = MakeBatch(spec.shape);
    while (const auto work = producer->Claim()) {
      ClearBatch(&chunk);
      producer->Produce(*work, &chunk);
      benchmark::DoNotOptimize(chunk.groups[0].keys.data());
    }
  }
  SetBytes(state, config);
}
BENCHMARK(BM_Parse)
    ->ArgName("format")
    ->Arg(static_cast<int>(DataFormat::kCriteo))
    ->Arg(static_cast<int>(DataFormat::kCsv))
    ->Arg(static_cast<int>(DataFormat::kLibsvm))
    ->Unit(benchmark::kMillisecond);

// Batches as training sees them.
void BM_Read(benchmark::State& state) {
  DataConfig config = ConfigOf(DataFormat::kCriteo);
  config.threads = state.range(0);
  config.shuffle = state.range(1);
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  MemoryEnv& env = Files();
  Batch batch;
  for (auto _ : state) {
    const auto stream = OpenData(env, config, spec, {});
    while (stream->Next(4096, &batch)) benchmark::DoNotOptimize(batch.labels.data());
  }
  SetBytes(state, config);
}
BENCHMARK(BM_Read)
    ->ArgNames({"threads", "shuffle"})
    ->Args({1, 0})
    ->Args({2, 0})
    ->Args({1, 200'000})
    ->Args({2, 200'000})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace terrace

BENCHMARK_MAIN();
