#include "bench/limits.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "device/gemm.h"
#include "tier/row_arena.h"

namespace terrace {
namespace {

// Units of work a second of all threads together, the best of some rounds. prepare(thread) returns
// the work of a round: a function that returns how many units it did.
template <typename Prepare>
double BestRate(int threads, int rounds, Prepare prepare) {
  std::vector<double> units(static_cast<size_t>(threads));
  double best = 0;
  double started = 0;
  std::barrier start(threads, [&]() noexcept { started = NowSeconds(); });
  std::barrier end(threads, [&]() noexcept {
    double sum = 0;
    for (double u : units) sum += u;
    best = std::max(best, sum / (NowSeconds() - started));
  });
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        auto work = prepare(t);
        for (int r = 0; r < rounds; ++r) {
          start.arrive_and_wait();
          units[static_cast<size_t>(t)] = work();
          end.arrive_and_wait();
        }
      });
  }
  return best;
}

double SgemmRate(int threads, int64_t rows, int64_t width) {
  return BestRate(threads, 12, [=](int) {
    std::vector<float> a(static_cast<size_t>(rows * width), 0.5f);
    std::vector<float> b(static_cast<size_t>(width * width), 0.25f);
    std::vector<float> c(static_cast<size_t>(rows * width));
    return [=]() mutable {
      constexpr int kRepeats = 20;
      for (int i = 0; i < kRepeats; ++i)
        CpuGemm({.a = {a.data(), rows, width, width},
                 .b = {b.data(), width, width, width},
                 .c = {c.data(), rows, width, width}});
      return 2.0 * kRepeats * static_cast<double>(rows * width * width);
    };
  });
}

double RandomLineRate(int threads) {
  constexpr int64_t kBytes = int64_t{1} << 29;
  constexpr int64_t kLine = 64;
  constexpr int64_t kReads = 4'000'000;
  constexpr size_t kAhead = 32;
  RowArena memory("bench", kBytes);
  memory.Grow(kBytes);
  std::memset(memory.data(), 1, kBytes);
  std::atomic<uint64_t> sink{0};
  const double rate = BestRate(threads, 6, [&](int t) {
    return [&, t] {
      const auto line = [&](int64_t i) {
        return memory.data() +
               static_cast<int64_t>(RandomBits(static_cast<uint64_t>(t), static_cast<uint64_t>(i)) %
                                    (kBytes / kLine)) *
                   kLine;
      };
      const std::byte* ahead[kAhead];
      for (size_t i = 0; i < kAhead; ++i) ahead[i] = line(static_cast<int64_t>(i));
      uint64_t sum = 0;
      for (int64_t i = 0; i < kReads; ++i) {
        const std::byte*& place = ahead[static_cast<size_t>(i) % kAhead];
        sum += static_cast<uint64_t>(*place);
        place = line(i + static_cast<int64_t>(kAhead));
        __builtin_prefetch(place);
      }
      sink += sum;
      return static_cast<double>(kReads);
    };
  });
  return rate;
}

}  // namespace

MachineLimits MeasureLimits(int threads) {
  MachineLimits limits;
  for (int64_t rows : {512, 1024})
    limits.flops = std::max(limits.flops, SgemmRate(threads, rows, 400));
  limits.lines = RandomLineRate(threads);
  return limits;
}

}  // namespace terrace
