#include "cli/data_info_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/hash.h"

namespace terrace {
namespace {

constexpr int kRegisterBits = 14;
constexpr size_t kFirstSize = 64;

}  // namespace

KeyCounter::KeyCounter(int64_t max_exact) : max_exact_(max_exact), entries_(kFirstSize) {
  TERRACE_CHECK(max_exact >= 1);
}

void KeyCounter::Add(uint64_t key) {
  ++occurrences_;
  Entry& entry = Find(key);
  if (entry.count > 0) {
    ++entry.count;
    return;
  }
  if (used_ == max_exact_) {
    if (registers_.empty()) {
      registers_.resize(size_t{1} << kRegisterBits);
      for (const Entry& e : entries_)
        if (e.count > 0) Estimate(e.key);
    }
    Estimate(key);
    return;
  }
  entry = {key, 1};
  ++used_;
  if (static_cast<size_t>(used_) * 2 > entries_.size()) Grow();
}

double KeyCounter::distinct() const { return exact() ? static_cast<double>(used_) : HyperLogLog(); }

std::vector<int64_t> KeyCounter::SortedCounts() const {
  std::vector<int64_t> counts;
  counts.reserve(static_cast<size_t>(used_));
  for (const Entry& e : entries_)
    if (e.count > 0) counts.push_back(e.count);
  std::sort(counts.begin(), counts.end(), std::greater<>());
  return counts;
}

KeyCounter::Entry& KeyCounter::Find(uint64_t key) {
  const size_t mask = entries_.size() - 1;
  size_t at = key & mask;
  while (entries_[at].count > 0 && entries_[at].key != key) at = (at + 1) & mask;
  return entries_[at];
}

void KeyCounter::Grow() {
  std::vector<Entry> old(entries_.size() * 2);
  old.swap(entries_);
  for (const Entry& e : old)
    if (e.count > 0) Find(e.key) = e;
}

// Each register keeps the longest run of zeros that a key of its share began with.
void KeyCounter::Estimate(uint64_t key) {
  const uint64_t hash = Mix64(key);
  const uint64_t rest = hash << kRegisterBits | uint64_t{1} << (kRegisterBits - 1);
  uint8_t& longest = registers_[hash >> (64 - kRegisterBits)];
  longest = std::max(longest, static_cast<uint8_t>(std::countl_zero(rest) + 1));
}

double KeyCounter::HyperLogLog() const {
  const double m = static_cast<double>(registers_.size());
  double sum = 0;
  double empty = 0;
  for (const uint8_t r : registers_) {
    sum += std::ldexp(1.0, -r);
    empty += r == 0;
  }
  const double estimate = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  // Few keys leave registers empty, whose number then tells more.
  return estimate < 2.5 * m && empty > 0 ? m * std::log(m / empty) : estimate;
}

}  // namespace terrace
