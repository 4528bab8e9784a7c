// How fast Criteo text in a file becomes hashed batches; bench/parse.py runs it beside a peer.
//
//   parse_bench write FILE MEGABYTES       text like the Kaggle data set in what costs time
//   parse_bench read FILE THREADS SHUFFLE  batches of 4,096 as training gets them
//   parse_bench bytes FILE                 what the system needs to hand over the bytes alone
//
// `read` and `bytes` go through the file once and print {"bytes", "seconds"} as JSON.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/random.h"
#include "data/open_data.h"

namespace terrace {
namespace {

// A rank in [0, n), small ones much more often.
uint64_t SkewedRank(RandomStream& random, double n) {
  return static_cast<uint64_t>(std::exp(UnitDouble(random.Next()) * std::log(n))) - 1;
}

// 240 bytes on average: a fifth of the integers and a ninth of the categories empty, skewed
// integers, categories of 8 hex digits.
void AppendLine(RandomStream& random, std::string* out) {
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

void Write(const std::string& path, int64_t bytes) {
  AtomicFile file(PosixEnv(), path);
  RandomStream random(1, 0);
  std::string text;
  for (int64_t written = 0; written < bytes; written += static_cast<int64_t>(text.size())) {
    text.clear();
    while (text.size() < size_t{1} << 20) AppendLine(random, &text);
    file.Append(text);
  }
  file.Commit();
}

void ReadBatches(const std::string& path, int64_t threads, int64_t shuffle) {
  DataConfig config;
  config.train = {path};
  config.threads = threads;
  config.shuffle = shuffle;
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  const auto stream = OpenData(PosixEnv(), config, spec, {});
  Batch batch;
  while (stream->Next(4096, &batch)) {
  }
}

void ReadBytes(const std::string& path) {
  const auto file = PosixEnv().OpenForRead(path);
  std::vector<char> buffer(size_t{1} << 18);
  while (file->Read(buffer.data(), buffer.size()) > 0) {
  }
}

void Measure(const std::string& path, const std::function<void()>& work) {
  const double start = NowSeconds();
  work();
  fmt::print("{{\"bytes\": {}, \"seconds\": {}}}\n", PosixEnv().FileSize(path),
             NowSeconds() - start);
}

int Main(const std::vector<std::string>& args) {
  const std::string_view mode = args.empty() ? "" : args[0];
  if (mode == "write" && args.size() == 3)
    Write(args[1], std::atoll(args[2].c_str()) * 1'000'000);
  else if (mode == "read" && args.size() == 4)
    Measure(args[1], [&] {
      ReadBatches(args[1], std::atoll(args[2].c_str()), std::atoll(args[3].c_str()));
    });
  else if (mode == "bytes" && args.size() == 2)
    Measure(args[1], [&] { ReadBytes(args[1]); });
  else
    return fmt::print(stderr, "usage: see the head of bench/parse_bench.cc\n"), 2;
  return 0;
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) { return terrace::Main({argv + 1, argv + argc}); }
