#include "tier/key_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/error.h"

namespace terrace {
namespace {

constexpr int kEntries = 12;
constexpr int64_t kMeanEntries = 9;  // a chunk, over the whole table
constexpr uint8_t kMaxPassed = 255;
constexpr int64_t kMaxKeys = std::numeric_limits<uint32_t>::max();
// Keys whose misses are in flight at once: as many lines as the core can have, several times over.
constexpr int kBlock = 256;
// Groups ahead of the one being split whose keys are prefetched.
constexpr uint64_t kSplitAhead = 2;

// What a split does to a key at home, as far as its tag tells.
enum Move : uint8_t { kStays = 0, kGoes = 1, kAskKey = 2 };

// [parts - 4][part][tag]. Most keys need not be read.
using MoveTable = std::array<std::array<std::array<Move, 256>, 7>, 4>;
constexpr MoveTable MakeMoveTable() {
  constexpr uint64_t kOne = uint64_t{1} << ChunkMap::kFractionBits;
  MoveTable table{};
  for (uint64_t parts = 4; parts < 8; ++parts)
    for (uint64_t part = 0; part < parts; ++part)
      for (uint64_t tag = 0; tag < 256; ++tag) {
        bool stays = false, goes = false;
        // Every fraction with this tag that lies in this part: 8 ranges, one for each upper 3 bits.
        for (uint64_t upper = 0; upper < 8; ++upper) {
          const uint64_t begin = upper << 22 | tag << 14;
          const uint64_t first = std::max(begin, (part * kOne + parts - 1) / parts);
          const uint64_t last =
              std::min(begin + (1 << 14), ((part + 1) * kOne + parts - 1) / parts) - 1;
          if (first > last) continue;
          stays |= ChunkMap::Part(first, parts + 1) == part;
          goes |= ChunkMap::Part(last, parts + 1) == part + 1;
        }
        table[parts - 4][part][tag] = !goes ? kStays : stays ? kAskKey : kGoes;
      }
  return table;
}
constexpr MoveTable kMoves = MakeMoveTable();

}  // namespace

struct alignas(64) KeyIndex::Chunk {
  uint8_t tags[kEntries];
  uint8_t count;       // entries; they are the first ones
  uint8_t passed;      // entries that found this chunk full on their way from home; 255: or more
  uint16_t displaced;  // bit i: entry i is not at home
  uint32_t positions[kEntries];

  // Bit i: entry i has the tag.
  uint32_t Match(uint8_t tag) const {
    const uint32_t present = (1u << count) - 1;
#if defined(__SSE2__)
    const __m128i line = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
    const __m128i equal = _mm_cmpeq_epi8(line, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & present;
#else
    uint32_t equal = 0;
    for (int i = 0; i < kEntries; ++i) equal |= uint32_t{tags[i] == tag} << i;
    return equal & present;
#endif
  }
  void Add(uint8_t tag, uint32_t position, bool not_at_home) {
    tags[count] = tag;
    positions[count] = position;
    displaced = static_cast<uint16_t>(displaced | int{not_at_home} << count);
    ++count;
  }
  void Remove(int i) {
    --count;
    tags[i] = tags[count];
    positions[i] = positions[count];
    const int last = (displaced >> count) & 1;
    displaced = static_cast<uint16_t>(((displaced & ~(1 << i)) | last << i) & ~(1 << count));
  }
  // Of the entries at home: those that a split sends to the next part, and those whose key decides.
  struct MoveMasks {
    uint32_t goes;
    uint32_t ask;
  };
  MoveMasks Moves(uint64_t parts, uint64_t part) const {
    const auto& moves = kMoves[parts - 4][part];
    MoveMasks masks{0, 0};
    for (int i = 0; i < kEntries; ++i) {
      const uint32_t move = moves[tags[i]];
      masks.goes |= (move & 1) << i;
      masks.ask |= (move >> 1) << i;
    }
    const uint32_t at_home = ((1u << count) - 1) & ~uint32_t{displaced};
    return {masks.goes & at_home, masks.ask & at_home};
  }
};

// A search under way: which entries of `chunk` to compare next.
struct KeyIndex::Probe {
  uint64_t home;
  const Chunk* chunk;
  uint32_t match;
  uint8_t tag;
};

KeyIndex::KeyIndex(const std::string& what)
    : key_arena_(what + ": keys", (kMaxKeys + 1) * int64_t{sizeof(uint64_t)}),
      chunk_arena_(what + ": index", kMaxKeys / kMeanEntries * 2 * int64_t{sizeof(Chunk)}),
      keys_(reinterpret_cast<uint64_t*>(key_arena_.data())),
      used_chunks_(map_.chunks()) {
  static_assert(sizeof(Chunk) == 64);
  chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(Chunk)));
}

int64_t KeyIndex::bytes() const { return key_arena_.size() + chunk_arena_.size(); }

// Inlined by force: gcc finds that a function of prefetches has no effect, and drops calls to it.
[[gnu::always_inline]] inline void KeyIndex::PrefetchKeys(const Chunk& chunk, uint32_t mask) const {
  for (; mask != 0; mask &= mask - 1)
    __builtin_prefetch(&keys_[chunk.positions[std::countr_zero(mask)]]);
}

void KeyIndex::Prepare(const uint64_t* keys, int n, Probe* probes) const {
  const ChunkMap map = map_;  // copies stay in registers: a store to a probe could change a member
  const Chunk* const table = chunks();
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
    const Chunk& chunk = table[probes[i].home];
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
  const Chunk* chunk = probe.chunk;
  uint32_t match = probe.match;
  for (;;) {
    for (; match != 0; match &= match - 1) {
      const uint32_t position = chunk->positions[std::countr_zero(match)];
      if (keys_[position] == key) return position;
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
        keys_[position] = keys[begin + i];
        Insert({probes[i].home, probes[i].tag, position});
      }
      positions[begin + i] = position;
    }
  }
}

void KeyIndex::Insert(const Entry& entry) {
  uint64_t c = entry.home;
  while (chunks()[c].count == kEntries) {
    chunks()[c].passed += chunks()[c].passed < kMaxPassed;
    if (++c < used_chunks_) continue;
    ++used_chunks_;
    chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(Chunk)));
  }
  chunks()[c].Add(entry.tag, entry.position, c != entry.home);
}

void KeyIndex::GrowTo(int64_t keys) {
  if (keys > kMaxKeys)
    throw Error(ErrorCode::kIo,
                fmt::format("a table holds at most {} keys; {} are needed. Split its slots over "
                            "several tables",
                            kMaxKeys, keys));
  key_arena_.Grow((keys + 1) * static_cast<int64_t>(sizeof(uint64_t)));
  const auto wanted = static_cast<uint64_t>((keys + kMeanEntries - 1) / kMeanEntries);
  if (wanted <= map_.chunks()) return;
  used_chunks_ = std::max(used_chunks_, wanted);
  chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(Chunk)));
  while (map_.chunks() < wanted) SplitGroup();
}

// Inlined for the same reason.
[[gnu::always_inline]] inline void KeyIndex::PrefetchForSplit(uint64_t group) const {
  if (group >= map_.groups()) return;
  for (uint64_t part = 0; part < map_.parts(); ++part) {
    const Chunk* chunk = &chunks()[map_.Chunk(group, part)];
    __builtin_prefetch(chunk + kSplitAhead);
    PrefetchKeys(*chunk, chunk->Moves(map_.parts(), part).ask);
    if (chunk->passed > 0) PrefetchKeys(chunk[1], chunk[1].displaced);
  }
}

// Spreads a group over one more part. From its last part down, each makes room for the one before.
void KeyIndex::SplitGroup() {
  const ChunkMap old = map_;
  PrefetchForSplit(old.split() + kSplitAhead);
  map_.Advance();
  for (uint64_t part = old.parts(); part-- > 0;) {
    const uint64_t home = old.Chunk(old.split(), part);
    Chunk& chunk = chunks()[home];
    moving_.clear();
    if (chunk.passed > 0) TakeDisplaced(home, old);
    auto [goes, ask] = chunk.Moves(old.parts(), part);
    for (; ask != 0; ask &= ask - 1) {
      const int i = std::countr_zero(ask);
      goes |= uint32_t{map_.Home(Hash(keys_[chunk.positions[i]])) != home} << i;
    }
    const uint64_t next_home = old.Chunk(old.split(), part + 1);
    while (goes != 0) {
      const int i = std::bit_width(goes) - 1;
      goes ^= 1u << i;
      const Entry entry{next_home, chunk.tags[i], chunk.positions[i]};
      chunk.Remove(i);
      Insert(entry);
    }
    for (const Entry& entry : moving_) Insert(entry);
  }
}

// Takes the entries of a home chunk that are elsewhere: they get a new chance at home.
void KeyIndex::TakeDisplaced(uint64_t home, const ChunkMap& old) {
  for (uint64_t c = home; chunks()[c].passed > 0;) {
    Chunk& chunk = chunks()[++c];
    for (uint32_t displaced = chunk.displaced; displaced != 0;) {
      const int i = std::bit_width(displaced) - 1;
      displaced ^= 1u << i;
      const uint32_t position = chunk.positions[i];
      const uint64_t hash = Hash(keys_[position]);
      if (old.Home(hash) != home) continue;
      moving_.push_back({map_.Home(hash), chunk.tags[i], position});
      chunk.Remove(i);
      for (uint64_t full = home; full < c; ++full)
        chunks()[full].passed -= chunks()[full].passed < kMaxPassed;
    }
  }
}

}  // namespace terrace
