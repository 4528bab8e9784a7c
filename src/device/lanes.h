// A few floats side by side, for sums along a row: their number is fixed, so that a sum has the
// same shape, and the same bits, whatever the width of the registers.
#pragma once

#include <cstdint>

#include "device/kernel_macros.h"

namespace terrace {

inline constexpr int kLanes = 8;

#if defined(__CUDACC__)
struct Lanes {
  float lane[kLanes];
  TERRACE_HD float& operator[](int l) { return lane[l]; }
  TERRACE_HD const float& operator[](int l) const { return lane[l]; }
};
template <typename Combine>
TERRACE_HD Lanes EachLane(Combine combine) {
  Lanes out;
  for (int l = 0; l < kLanes; ++l) out[l] = combine(l);
  return out;
}
TERRACE_HD Lanes operator+(const Lanes& a, const Lanes& b) {
  return EachLane([&](int l) { return a[l] + b[l]; });
}
TERRACE_HD Lanes operator-(const Lanes& a, const Lanes& b) {
  return EachLane([&](int l) { return a[l] - b[l]; });
}
TERRACE_HD Lanes operator*(const Lanes& a, const Lanes& b) {
  return EachLane([&](int l) { return a[l] * b[l]; });
}
TERRACE_HD Lanes operator*(float a, const Lanes& b) {
  return EachLane([&](int l) { return a * b[l]; });
}
TERRACE_HD Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }
#else
// Compilers turn loops over an array of lanes into scalar code; this type they keep in registers.
// It goes by reference only: how it is passed by value differs between instruction sets.
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
#endif

// The first n <= kLanes from memory, the rest 0.
TERRACE_HD void LoadLanes(const float* from, int n, Lanes& to) {
  if (n == kLanes) {
    __builtin_memcpy(&to, from, sizeof(Lanes));
    return;
  }
  to = Lanes{};
  for (int l = 0; l < n; ++l) to[l] = from[l];
}

// Writes, or adds, the first n.
TERRACE_HD void StoreLanes(const Lanes& from, int n, bool adds, float* to) {
  Lanes sum = from;
  if (adds) {
    LoadLanes(to, n, sum);
    sum += from;
  }
  if (n == kLanes) {
    __builtin_memcpy(to, &sum, sizeof(Lanes));
    return;
  }
  for (int l = 0; l < n; ++l) to[l] = sum[l];
}

TERRACE_HD float SumOfLanes(const Lanes& v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

}  // namespace terrace
