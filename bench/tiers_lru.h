// What a table with the exact least-recently-used order of its rows would read from disk.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/tiers_traffic.h"

namespace terrace {

// Keys are numbers 0 ... keys - 1. One thread.
class ExactLru {
 public:
  ExactLru(uint64_t keys, uint64_t rows) : nodes_(keys + 1), end_(keys), left_(rows) {
    nodes_[end_] = {static_cast<uint32_t>(end_), static_cast<uint32_t>(end_)};
  }

  // Whether the row is in memory; it is from now on, and the least recently used one leaves.
  bool Use(uint64_t key) {
    const bool hit = nodes_[key].next != kOut;
    if (hit) {
      Unlink(key);
    } else if (left_ > 0) {
      --left_;
    } else {
      const uint32_t oldest = nodes_[end_].previous;
      Unlink(oldest);
      nodes_[oldest].next = kOut;
    }
    const uint32_t newest = nodes_[end_].next;
    nodes_[key] = {static_cast<uint32_t>(end_), newest};
    nodes_[newest].previous = nodes_[end_].next = static_cast<uint32_t>(key);
    return hit;
  }

 private:
  static constexpr uint32_t kOut = ~uint32_t{0};
  // A ring through `end_`, the newest row after it.
  struct Node {
    uint32_t previous = 0;
    uint32_t next = kOut;
  };

  void Unlink(uint64_t key) {
    const Node node = nodes_[key];
    nodes_[node.previous].next = node.next;
    nodes_[node.next].previous = node.previous;
  }

  std::vector<Node> nodes_;
  const uint64_t end_;
  uint64_t left_;  // rows that may still come without another leaving
};

struct LruHits {
  int64_t lookups = 0;  // distinct keys of a batch
  int64_t hits = 0;
};

// `batches` of the traffic after the first `warmup` ones, with so many rows in memory. All rows
// exist from the start, so that each miss is a read.
LruHits SimulateLru(const TrafficOptions& options, int64_t batch, int64_t warmup, int64_t batches,
                    uint64_t rows);

}  // namespace terrace
