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
  Probe probes[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const int n = static_cast<int>(std::min<size_t>(kBlock, keys.size() - begin));
    GrowTo(size_ + n);
    Prepare(&keys[begin], n, probes);
    for (int i = 0; i < n; ++i) {
      // What the block inserted before is not in probe.match: it has another key.
      uint32_t position = Finish(keys[begin + i], probes[i]);
      if (position == 0) {
        position = static_cast<uint32_t>(++size_);
        *KeyAt(position) = keys[begin + i];
        Insert({probes[i].home, probes[i].tag, position});
      }
      positions[begin + i] = position;
    }
  }
}

void KeyIndex::Insert(const Entry& entry) {
  uint64_t c = entry.home;
  while (chunks()[c].count == KeyChunk::kEntries) {
    chunks()[c].CountPassed();
    if (++c < used_chunks_) continue;
    ++used_chunks_;
    chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(KeyChunk)));
  }
  chunks()[c].Add(entry.tag, entry.position, c != entry.home);
}

}  // namespace terrace
