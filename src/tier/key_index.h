// A set of 64-bit keys, each with a position: 1, 2, 3 ... in the order they came.
//
// Costs 8 bytes a key in an array by position, and 64 bytes for each 9 keys in a hash table: about
// 15.1 bytes a key, at every size. Calls take whole batches, so that the misses of one key hide
// behind the work on others. Growth is spread evenly over insertions: there is no rehash.
//
// The hash table is an array of chunks of one cache line. An entry is a position and a one-byte tag
// from the key's hash; the key itself is compared in the array of keys. A key goes to its home
// chunk or, if that is full, to the next one with room. The array grows by one chunk at a time
// (linear hashing with partial expansions, Larson 1980): ChunkMap below.
//
// Threads: one, but for key() of positions handed out before. Throws Error when memory runs out or
// at 2^32 - 1 keys; the index must not be used after that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tier/row_arena.h"

namespace terrace {

// Which chunk a hash belongs to.
//
// Chunks form 2^level groups: chunk c is part c >> level of group c mod 2^level. All groups have 4
// to 7 parts; those below `split` have one more. Within a group a fraction f in [0, 1) of the hash
// picks part floor(f * parts). To grow by one chunk, group `split` is spread over one more part,
// which is the chunk right after the last: a key stays or moves on by one part. When all groups
// have 8 parts they are seen as twice as many groups of 4, and f is such that no key moves by that.
class ChunkMap {
 public:
  // f is 25 bits: two fixed ones, the bit that the next level adds to the group, and 22 fixed ones,
  // of which the upper 8 are the tag.
  static constexpr int kFractionBits = 25;
  static constexpr uint8_t Tag(uint64_t hash) { return static_cast<uint8_t>(hash >> 54); }
  static constexpr uint64_t Part(uint64_t fraction, uint64_t parts) {
    return (fraction * parts) >> kFractionBits;
  }

  uint64_t chunks() const { return (parts_ << level_) + split_; }
  uint64_t Home(uint64_t hash) const {
    const uint64_t group = hash & (groups() - 1);
    return Chunk(group, Part(Fraction(hash), parts_ + (group < split_)));
  }

  uint64_t groups() const { return uint64_t{1} << level_; }
  uint64_t split() const { return split_; }  // the next group to get one more part
  uint64_t parts() const { return parts_; }  // of the groups from split() on
  uint64_t Chunk(uint64_t group, uint64_t part) const { return group + (part << level_); }

  // Group split() has got its part.
  void Advance() {
    if (++split_ < groups()) return;
    split_ = 0;
    if (++parts_ < 8) return;
    parts_ = 4;
    ++level_;
  }

 private:
  uint64_t Fraction(uint64_t hash) const {
    const uint64_t top = hash >> 40;
    return (top >> 22) << 23 | ((hash >> level_) & 1) << 22 | (top & ((1 << 22) - 1));
  }

  int level_ = 0;
  uint64_t parts_ = 4;
  uint64_t split_ = 0;
};

class KeyIndex {
 public:
  // `what` names the owner in errors.
  explicit KeyIndex(const std::string& what);

  int64_t size() const { return size_; }
  uint64_t key(uint32_t position) const { return keys_[position]; }
  int64_t bytes() const;  // of keys and chunks

  // Position of each key, 0 where absent.
  void Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const;
  // The same; absent keys are inserted. Keys are distinct.
  void FindOrInsert(std::span<const uint64_t> keys, std::span<uint32_t> positions);

  // Not the plain Mix64: what else splits keys by that one must not empty some of our chunks.
  static constexpr uint64_t kHashSalt = 0x6a09e667f3bcc908ULL;
  static constexpr uint64_t Hash(uint64_t key) { return Mix64(key ^ kHashSalt); }

 private:
  struct Chunk;
  struct Probe;
  struct Entry {
    uint64_t home;
    uint8_t tag;
    uint32_t position;
  };

  Chunk* chunks() const { return reinterpret_cast<Chunk*>(chunk_arena_.data()); }
  // Starts the search of n <= kBlock keys.
  void Prepare(const uint64_t* keys, int n, Probe* probes) const;
  void PrefetchKeys(const Chunk& chunk, uint32_t mask) const;
  uint32_t Finish(uint64_t key, const Probe& probe) const;
  void Insert(const Entry& entry);
  void GrowTo(int64_t keys);
  void SplitGroup();
  void PrefetchForSplit(uint64_t group) const;
  void TakeDisplaced(uint64_t home, const ChunkMap& old);

  RowArena key_arena_;
  RowArena chunk_arena_;
  uint64_t* const keys_;  // [position], in key_arena_; keys_[0] is unused
  ChunkMap map_;
  uint64_t used_chunks_ = 0;  // map_.chunks(), and what the last of them spilled into
  int64_t size_ = 0;
  std::vector<Entry> moving_;  // scratch of SplitGroup
};

}  // namespace terrace
