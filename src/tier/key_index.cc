#include "tier/key_index.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"

namespace terrace {
namespace {

// Keys whose misses are in flight at once: several times what a core can have, and few enough for
// their lines to stay in the first cache.
constexpr int kBlock = 128;

constexpr int64_t kMaxPositions = int64_t{std::numeric_limits<uint32_t>::max()} + 1;

}  // namespace

// A search under way: which entries of `chunk` to compare next.
struct KeyIndex::Probe {
  uint64_t home;
  const KeyChunk* chunk;
  uint32_t match;
  uint8_t tag;
};

KeyIndex::KeyIndex(const std::string& what, RowArena* rows, int64_t stride_bytes)
    : rows_(*rows),
      row_data_(rows->data()),
      stride_(stride_bytes),
      chunk_arena_(what + ": index", kMaxPositions * 8),  // more than 64 bytes for 8.5 keys
      used_chunks_(map_.chunks()) {
  chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(KeyChunk)));
}

void KeyIndex::Prepare(const uint64_t* keys, int n, Probe* probes) const {
  // Copies stay in registers: a store to a probe could change a member.
  const ChunkMap map = map_;
  const KeyChunk* const table = chunks();
  for (int i = 0; i < n; ++i) {
    const uint64_t hash = Hash(keys[i]);
    const uint64_t home = map.Home(hash);
    __builtin_prefetch(&table[home]);
    probes[i].home = home;
    probes[i].tag = ChunkMap::Tag(hash);
  }
  uint16_t late[kBlock];
  int late_count = 0;
  for (int i = 0; i < n; ++i) {
    const KeyChunk& chunk = table[probes[i].home];
    const uint32_t match = chunk.Match(probes[i].tag);
    probes[i].chunk = &chunk;
    probes[i].match = match;
    PrefetchKeys(chunk, match);
    if (match == 0 && chunk.passed != 0) {
      __builtin_prefetch(&chunk + 1);
      late[late_count++] = static_cast<uint16_t>(i);
    }
  }
  for (int i = 0; i < late_count; ++i) {
    Probe& probe = probes[late[i]];
    ++probe.chunk;
    probe.match = probe.chunk->Match(probe.tag);
    PrefetchKeys(*probe.chunk, probe.match);
  }
}

uint32_t KeyIndex::Finish(uint64_t key, const Probe& probe) const {
  const KeyChunk* chunk = probe.chunk;
  uint32_t match = probe.match;
  for (;;) {
    for (; match != 0; match &= match - 1) {
      const uint32_t position = chunk->positions[std::countr_zero(match)];
      if (*KeyAt(position) == key) return position;
    }
    if (chunk->passed == 0) return 0;
    ++chunk;
    match = chunk->Match(probe.tag);
  }
}

void KeyIndex::Find(std::span<const uint64_t> keys, std::span<uint32_t> positions) const {
  TERRACE_CHECK(keys.size() == positions.size());
  Probe probes[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, keys.size() - begin));
    Prepare(&keys[begin], n, probes);
    for (int i = 0; i < n; ++i) positions[begin + i] = Finish(keys[begin + i], probes[i]);
  }
}

void KeyIndex::FindOrInsert(std::span<const uint64_t> keys, std::span<uint32_t> positions) {
  TERRACE_CHECK(keys.size() == positions.size());
  TERRACE_CHECK(!positions_given_);
  Probe probes[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, keys.size() - begin));
    GrowChunks(size_ + n);
    rows_.Grow((size_ + n + 1) * stride_);
    Prepare(&keys[begin], n, probes);
    for (int i = 0; i < n; ++i) {
      // What the block inserted before is not in probe.match: it has another key.
      uint32_t position = Finish(keys[begin + i], probes[i]);
      if (position == 0) {
        position = static_cast<uint32_t>(++size_);
        *KeyAt(position) = keys[begin + i];
        Place({probes[i].home, probes[i].tag, position});
      }
      positions[begin + i] = position;
    }
  }
}

void KeyIndex::Insert(std::span<const uint64_t> keys, std::span<const uint32_t> positions) {
  TERRACE_CHECK(keys.size() == positions.size());
  positions_given_ = true;
  const int64_t rows = rows_.size() / stride_;
  Entry entries[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, keys.size() - begin));
    GrowChunks(size_ + n);
    for (int i = 0; i < n; ++i) {
      const uint32_t position = positions[begin + i];
      TERRACE_CHECK(position > 0 && position < rows);
      __builtin_prefetch(KeyAt(position), 1);
      entries[i] = StartEntry(keys[begin + i], position);
    }
    for (int i = 0; i < n; ++i) {
      const KeyChunk* const chunk = &chunks()[entries[i].home];
      if (chunk->count == KeyChunk::kEntries) __builtin_prefetch(chunk + 1, 1);
    }
    for (int i = 0; i < n; ++i) {
      *KeyAt(entries[i].position) = keys[begin + i];
      Place(entries[i]);
    }
    size_ += n;
  }
}

void KeyIndex::Erase(std::span<const uint32_t> positions) {
  positions_given_ = true;
  Entry entries[kBlock];
  uint64_t freed[kBlock];  // chunks with a free place that others had to pass
  for (size_t begin = 0; begin < positions.size(); begin += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, positions.size() - begin));
    for (int i = 0; i < n; ++i) __builtin_prefetch(KeyAt(positions[begin + i]));
    for (int i = 0; i < n; ++i)
      entries[i] = StartEntry(key(positions[begin + i]), positions[begin + i]);
    for (int i = 0; i < n; ++i) {
      const KeyChunk* const chunk = &chunks()[entries[i].home];
      if (chunk->passed > 0) __builtin_prefetch(chunk + 1, 1);
    }
    int freed_count = 0;
    for (int i = 0; i < n; ++i) {
      const uint64_t c = TakeOut(entries[i]);
      if (chunks()[c].passed > 0) freed[freed_count++] = c;
    }
    PullBack(freed, freed_count);
    size_ -= n;
  }
}

// The entry of a key, whose home chunk is on its way into the cache.
[[gnu::always_inline]] inline KeyIndex::Entry KeyIndex::StartEntry(uint64_t key,
                                                                   uint32_t position) const {
  const uint64_t hash = Hash(key);
  const uint64_t home = map_.Home(hash);
  __builtin_prefetch(&chunks()[home], 1);
  return {home, ChunkMap::Tag(hash), position};
}

void KeyIndex::Place(const Entry& entry) {
  uint64_t c = entry.home;
  while (chunks()[c].count == KeyChunk::kEntries) {
    chunks()[c].CountPassed();
    if (++c < used_chunks_) continue;
    ++used_chunks_;
    chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(KeyChunk)));
  }
  chunks()[c].Add(entry.tag, entry.position, c != entry.home);
}

uint64_t KeyIndex::TakeOut(const Entry& entry) {
  for (uint64_t c = entry.home;; ++c) {
    KeyChunk& chunk = chunks()[c];
    for (uint32_t match = chunk.Match(entry.tag); match != 0; match &= match - 1) {
      const int i = std::countr_zero(match);
      if (chunk.positions[i] != entry.position) continue;
      chunk.Remove(i);
      for (uint64_t full = entry.home; full < c; ++full) chunks()[full].UncountPassed();
      return c;
    }
    TERRACE_CHECK(chunk.passed > 0);  // else the position holds no key
  }
}

// Gives the free places to entries that had to pass them, then the places which those leave, and so
// on. Else entries would stay away from homes that have room again: after some turnover, half of
// all chunks would send a search on to the next one.
void KeyIndex::PullBack(uint64_t* freed, int n) {
  while (n > 0) {
    for (int i = 0; i < n; ++i) {
      const KeyChunk& next = chunks()[freed[i] + 1];
      const uint32_t displaced = next.displaced;
      PrefetchKeys(next, displaced & (0 - displaced));
      if (next.passed > 0) __builtin_prefetch(&next + 1, 1);
    }
    int left = 0;
    for (int i = 0; i < n; ++i) {
      const uint64_t c = PullInto(freed[i]);
      if (chunks()[c].passed > 0) freed[left++] = c;
    }
    n = left;
  }
}

uint64_t KeyIndex::PullInto(uint64_t freed) {
  uint64_t c = freed;
  while (chunks()[c].passed > 0) {
    KeyChunk& chunk = chunks()[++c];
    for (uint32_t displaced = chunk.displaced; displaced != 0; displaced &= displaced - 1) {
      const int i = std::countr_zero(displaced);
      const uint32_t position = chunk.positions[i];
      const uint64_t home = map_.Home(Hash(key(position)));
      if (home > freed) continue;
      chunks()[freed].Add(chunk.tags[i], position, home != freed);
      chunk.Remove(i);
      for (uint64_t full = freed; full < c; ++full) chunks()[full].UncountPassed();
      return c;
    }
  }
  return c;
}

}  // namespace terrace
