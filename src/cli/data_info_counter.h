// Counts how often each key of a stream occurs, in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

namespace terrace {

// Exact while there are at most `max_exact` distinct keys. Beyond that the keys already met are
// still counted one by one, so the frequent ones stay right, and the number of distinct keys is a
// HyperLogLog estimate with a standard error below 1 %. Keys are expected to be hashes. One thread.
class KeyCounter {
 public:
  explicit KeyCounter(int64_t max_exact);

  void Add(uint64_t key);
  int64_t occurrences() const { return occurrences_; }
  bool exact() const { return registers_.empty(); }
  double distinct() const;
  // Of the keys that are counted one by one, most frequent first.
  std::vector<int64_t> SortedCounts() const;

 private:
  struct Entry {
    uint64_t key;
    int64_t count;  // 0: the place is free
  };

  Entry& Find(uint64_t key);
  void Grow();
  void Estimate(uint64_t key);
  double HyperLogLog() const;

  const int64_t max_exact_;
  int64_t occurrences_ = 0;
  int64_t used_ = 0;
  std::vector<Entry> entries_;      // open addressing, at most half full
  std::vector<uint8_t> registers_;  // of HyperLogLog; empty while exact
};

}  // namespace terrace
