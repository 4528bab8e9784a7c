// A count for each of very many keys, in a few bytes a key.
//
// A hash picks one 64-byte line, whose words hold the fingerprint and the count of one key each: a
// question costs one cache line. A count is exact unless another key has the same line and
// fingerprint; such keys have one count together, so that counts are never too low. Keys that find
// their line full are kept with their whole hash aside.
//
// A hash is a fraction of one; times the number of lines it is a line and, behind the point, a
// fingerprint. So a table with twice the lines is made of the old one alone: one bit of each
// fingerprint becomes one of the line.
//
//   words    counts    full at    bytes a key          keys that share a count, if full
//   16 bits  1..15     26 of 32   2.8                  0.08 % (limit 1) to 0.63 % (limit 8..15)
//   32 bits  1..65535  12 of 16   6.0; 12 if it has    0.3 % before the fingerprints are too short
//   to
//                                 just doubled         double again; half as many a bit before that
//
// Belongs to one thread. Throws Error(kIo) when memory runs out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/memory.h"

namespace terrace {

// Hash -> count, whole hashes, by open addressing.
class SpilledCounts {
 public:
  struct Entry {
    uint64_t hash;
    uint32_t count;  // 0: no entry
  };

  uint32_t Get(uint64_t hash) const { return entries_.empty() ? 0 : entries_[Slot(hash)].count; }
  void Set(uint64_t hash, uint32_t count);  // count > 0

  size_t size() const { return size_; }
  size_t bytes() const { return entries_.capacity() * sizeof(Entry); }
  // By hash: an order that does not depend on the past.
  Array<Entry> Sorted() const;

 private:
  size_t Slot(uint64_t hash) const {  // of the entry, or the empty one where it would be
    const size_t mask = entries_.size() - 1;
    size_t slot = hash & mask;
    while (entries_[slot].count != 0 && entries_[slot].hash != hash) slot = (slot + 1) & mask;
    return slot;
  }

  Array<Entry> entries_;  // a power of two, at most 3/4 of them used
  size_t size_ = 0;
};

class KeyCounts {
 public:
  static constexpr uint32_t kMaxLimit = 65535;

  KeyCounts() = default;
  // For `keys` keys with counts up to `limit`. `exact`: there will be about as many, so words may
  // be small; else it is a start.
  KeyCounts(uint64_t keys, uint32_t limit, bool exact);

  // Of hashes all bits are random.
  uint32_t Get(uint64_t hash) const;  // 0: not there
  // counts[i] = max(counts[i], Get(hashes[i]))
  void RaiseToCounts(std::span<const uint64_t> hashes, uint32_t* counts) const;
  // The count of each, in this order, becomes max(it, least) + units, at most the limit; `least`
  // may be null. Sets `at_limit` to 1 or 0. Stops after a key that makes it full: returns how many
  // keys were counted.
  size_t Add(std::span<const uint64_t> hashes, const uint32_t* units, const uint32_t* least,
             uint8_t* at_limit);

  uint64_t keys() const { return keys_; }
  uint64_t capacity() const { return lines_.size() * keys_per_line(); }
  bool full() const { return keys_ > capacity(); }
  size_t bytes() const { return lines_.capacity() * sizeof(Line) + spilled_.bytes(); }

  // Twice the lines; false where fingerprints would be too short.
  [[nodiscard]] bool Double();

  void Save(std::string* to) const;
  // Takes its part off the front. Throws Error(kCorruption).
  static KeyCounts Load(std::string_view* from, uint32_t limit);

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  KeyCounts(int word_bits, uint32_t limit);

  template <typename Word>
  uint32_t GetAs(uint64_t hash) const;
  template <typename Word>
  size_t AddAs(std::span<const uint64_t> hashes, const uint32_t* units, const uint32_t* least,
               uint8_t* at_limit);
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&lines_[LineOf(hash)], 1); }
  uint64_t keys_per_line() const { return word_bits_ == 16 ? 26 : 12; }
  int words_per_line() const { return 512 / word_bits_; }
  uint64_t LineOf(uint64_t hash) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * lines_.size()) >> 64);
  }
  uint32_t FingerprintOf(uint64_t hash) const {
    return static_cast<uint32_t>((hash * lines_.size()) >> (64 - fingerprint_bits_));
  }
  uint32_t WordAt(uint64_t line, int word) const;
  void SetWord(uint64_t line, int word, uint32_t value);
  int Used(uint64_t line) const;  // words that are not 0; they are the first ones

  uint32_t limit_ = 1;
  int word_bits_ = 16;
  int count_bits_ = 1;         // the low ones of a word; the fingerprint is above them
  int fingerprint_bits_ = 12;  // may leave bits at the top unused
  uint64_t keys_ = 0;
  Array<Line> lines_;
  SpilledCounts spilled_;
};

}  // namespace terrace
