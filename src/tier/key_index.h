// A set of 64-bit keys, each with a position: 1, 2, 3 ... in the order they came, or one that the
// caller gives.
//
// The key of position p is the first eight bytes of row p of an arena, so who finds a row has it in
// the cache. Beside them the index costs 64 bytes for each 8.5 keys: about 7.5 bytes a key, at
// every size. Calls take whole batches, so that the misses of one key hide behind the work on
// others. Growth is spread evenly over insertions: there is no rehash.
//
// The hash table is an array of chunks of one cache line. An entry is a position and a one-byte tag
// from the key's hash; the key itself is compared in its row. A key goes to its home
// chunk (chunk_map.h) or, if that is full, to the next one with room.
//
// Threads: one, but for key() of positions handed out before. Throws Error when memory runs out or
// at 2^32 - 1 keys; the index must not be used after that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tier/chunk_map.h"
#include "tier/key_chunk.h"
#include "tier/row_arena.h"

namespace terrace {

class KeyIndex {
 public:
  // `what` names the owner in errors. `rows` outlives the index, which writes the keys there
  // and, in FindOrInsert, makes it grow to hold row size(); row 0 is no key's.
  KeyIndex(const std::string& what, RowArena* rows, int64_t stride_bytes);

  int64_t size() const { return size_; }
  uint64_t key(uint32_t position) const { return *KeyAt(position); }
  int64_t bytes() const { return chunk_arena_.size(); }

  // Position of each key, 0 where absent.
  void Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const;
  // The same; absent keys are inserted. Keys are distinct.
  void FindOrInsert(std::span<const uint64_t> keys, std::span<uint32_t> positions);

  // For rows that come and go; FindOrInsert must not be called after one of these. A row's key must
  // not change while it is in the index.
  //
  // Puts absent, distinct keys at the given positions, whose rows exist in the arena, and writes
  // the keys there. No other key is at these positions.
  void Insert(std::span<const uint64_t> keys, std::span<const uint32_t> positions);
  // Forgets the keys of these positions (distinct; each holds a key). The rows' bytes are left
  // alone, and bytes() stays.
  void Erase(std::span<const uint32_t> positions);

  // The hash table, for tests.
  std::span<const KeyChunk> table() const { return {chunks(), used_chunks_}; }
  const ChunkMap& map() const { return map_; }

  // Not the plain Mix64: what else splits keys by that one must not empty some of our chunks.
  static constexpr uint64_t kHashSalt = 0x6a09e667f3bcc908ULL;
  static constexpr uint64_t Hash(uint64_t key) { return Mix64(key ^ kHashSalt); }

 private:
  struct Probe;
  struct Entry {
    uint64_t home;
    uint8_t tag;
    uint32_t position;
  };

  uint64_t* KeyAt(uint32_t position) const {
    return reinterpret_cast<uint64_t*>(row_data_ + position * stride_);
  }
  KeyChunk* chunks() const { return reinterpret_cast<KeyChunk*>(chunk_arena_.data()); }
  // Starts the search of n <= kBlock keys; Finish ends it for one of them.
  void Prepare(const uint64_t* keys, int n, Probe* probes) const;
  uint32_t Finish(uint64_t key, const Probe& probe) const;
  Entry StartEntry(uint64_t key, uint32_t position) const;
  void Place(const Entry& entry);
  uint64_t TakeOut(const Entry& entry);  // returns the chunk that had it
  void PullBack(uint64_t* freed, int n);
  // Returns the chunk that an entry was pulled from, or else one that nothing passed.
  uint64_t PullInto(uint64_t freed);
  void PrefetchKeys(const KeyChunk& chunk, uint32_t entries) const;

  // key_index_grow.cc
  void GrowChunks(int64_t keys);
  void SplitGroup();
  void PrefetchForSplit(uint64_t group) const;
  void MoveOn(uint64_t part, const ChunkMap& old);
  void TakeDisplaced(uint64_t home, const ChunkMap& old);

  RowArena& rows_;
  std::byte* const row_data_;
  const int64_t stride_;
  RowArena chunk_arena_;
  ChunkMap map_;
  uint64_t used_chunks_ = 0;  // map_.chunks(), and what the last of them spilled into
  int64_t size_ = 0;
  bool positions_given_ = false;  // by the caller: they need not be 1 ... size()
  std::vector<Entry> displaced_;  // scratch of SplitGroup
};

// Inlined by force: gcc finds that a function of prefetches has no effect, and drops calls to it.
[[gnu::always_inline]] inline void KeyIndex::PrefetchKeys(const KeyChunk& chunk,
                                                          uint32_t entries) const {
  for (; entries != 0; entries &= entries - 1)
    __builtin_prefetch(KeyAt(chunk.positions[__builtin_ctz(entries)]));
}

}  // namespace terrace
