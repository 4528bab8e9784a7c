// A filter over the keys of a base file: says for sure that a key is absent, or that it may be
// there.
//
// A split-block Bloom filter: a key sets one bit in each of the eight words of one 32-byte block,
// so a question costs one cache line. At 8 / 10 / 12 bits a key about 3.3 / 1.3 / 0.5 % of absent
// keys pass. Built by one thread, then read by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "base/memory.h"

namespace terrace {

class KeyFilter {
 public:
  KeyFilter() = default;  // no filter: every key may be there
  KeyFilter(size_t keys, double bits_per_key);
  // The words of one that was stored; a multiple of eight.
  explicit KeyFilter(Array<uint32_t> words) : words_(std::move(words)) {}

  void Add(uint64_t mix) {
    if (words_.empty()) return;
    const uint64_t bits = Mix64(mix);
    uint32_t* block = &words_[8 * Block(mix)];
    for (int i = 0; i < 8; ++i) block[i] |= 1u << ((bits >> (5 * i)) & 31);
  }
  bool MayContain(uint64_t mix) const {
    if (words_.empty()) return true;
    const uint64_t bits = Mix64(mix);
    const uint32_t* block = &words_[8 * Block(mix)];
    uint32_t missing = 0;
    for (int i = 0; i < 8; ++i) missing |= ~block[i] & (1u << ((bits >> (5 * i)) & 31));
    return missing == 0;
  }
  void Prefetch(uint64_t mix) const {
    if (!words_.empty()) __builtin_prefetch(&words_[8 * Block(mix)]);
  }

  std::span<const uint32_t> words() const { return words_; }
  size_t bytes() const { return words_.size() * sizeof(uint32_t); }

 private:
  // By the low half of the mix: its top bits are the partition's and much the same.
  size_t Block(uint64_t mix) const {
    return static_cast<size_t>((mix & 0xffffffff) * (words_.size() / 8) >> 32);
  }

  Array<uint32_t> words_;
};

}  // namespace terrace
