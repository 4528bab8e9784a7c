// What this machine can do at most, measured: the limits that benchmarks compare with.
#pragma once

namespace terrace {

struct MachineLimits {
  double flops = 0;  // of sgemm a second, each thread at its own product, the best of some shapes
  double lines = 0;  // prefetched reads of random 64-byte lines a second, from huge pages
};

// On so many threads at once; takes about a second.
MachineLimits MeasureLimits(int threads);

}  // namespace terrace
