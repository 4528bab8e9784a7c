// The one shape of every sum over the examples of a batch.
//
// A batch is cut into slices of equal length (the last may be shorter); within a slice a sum runs
// in example order; slices are joined by a binary tree: (0+1), (2+3), then their sums, and so on.
// An absent slice is skipped. Whoever computes a slice, the result has the same bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/mutex.h"

namespace terrace {

// How a batch of at most `batch` examples is cut into at most `slices` slices.
struct SliceShape {
  int64_t length = 1;  // examples a slice, but for the last one

  static SliceShape For(int64_t batch, int64_t slices) {
    return SliceShape{std::max<int64_t>(1, (batch + slices - 1) / slices)};
  }
  int64_t Count(int64_t examples) const { return (examples + length - 1) / length; }
  int64_t Begin(int64_t slice) const { return slice * length; }
  int64_t End(int64_t slice, int64_t examples) const {
    return std::min(examples, (slice + 1) * length);
  }
};

// Joins parts[0..n) along the tree, in place; the total is in parts[0]. add(a, b): a += b.
template <typename Add>
void JoinSlices(int64_t n, Add add) {
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t i = 0; i + step < n; i += 2 * step) add(i, i + step);
}

// The same join by the threads that compute the slices: each calls Arrive when its slice is done,
// and the one that completes a pair of siblings adds the right one to the left one.
class SliceJoin {
 public:
  explicit SliceJoin(int64_t slices) : slices_(slices), arrived_(2 * slices + 64, 0) {}

  void Reset(int64_t slices) EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    slices_ = slices;
    arrived_.assign(2 * slices + 64, 0);
  }

  // add(a, b) folds slice b's value into slice a's; it runs outside the lock.
  template <typename Add>
  void Arrive(int64_t slice, Add add) EXCLUDES(mu_) {
    int64_t level_begin = 0;
    int64_t node = slice;
    for (int64_t step = 1; step < Slices(); step *= 2) {
      const int64_t sibling = node ^ 1;
      const int64_t level_nodes = (Slices() + step - 1) / step;
      if (sibling < level_nodes) {
        if (!SecondOfPair(level_begin + node / 2)) return;
        const int64_t left = (node & ~int64_t{1}) * step;
        add(left, left + step);
      }
      level_begin += (level_nodes + 1) / 2;
      node /= 2;
    }
  }

 private:
  int64_t Slices() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    return slices_;
  }
  bool SecondOfPair(int64_t pair) EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    return ++arrived_[pair] == 2;
  }

  Mutex mu_;
  int64_t slices_ GUARDED_BY(mu_);
  std::vector<uint8_t> arrived_ GUARDED_BY(mu_);  // per pair of siblings, level by level
};

}  // namespace terrace
