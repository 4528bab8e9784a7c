// How a KeyIndex grows: chunk by chunk, each by splitting a group (chunk_map.h).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "tier/key_index.h"

namespace terrace {
namespace {

constexpr int64_t kMaxKeys = std::numeric_limits<uint32_t>::max();
// Chunks for so many keys, over the whole table. Fuller chunks spill more into their neighbours,
// which costs time; emptier ones cost memory.
constexpr int64_t kFillChunks = 2;
constexpr int64_t kFillKeys = 17;
// Groups ahead of the one being split that are prefetched: their keys, and the chunks of those that
// come next.
constexpr uint64_t kAhead = 2;

struct Moves {
  uint32_t goes;  // entries at home that a split sends to the next part
  uint32_t ask;   // entries at home whose key decides
};
Moves MovesOf(const KeyChunk& chunk, uint64_t parts, uint64_t part) {
  const SplitRule& rule = SplitRule::For(parts, part);
  const uint32_t may_stay = chunk.Match(rule.may_stay);
  const uint32_t may_move = chunk.Match(rule.may_move) & ~uint32_t{chunk.displaced};
  return {may_move & ~may_stay, may_move & may_stay};
}

}  // namespace

void KeyIndex::GrowChunks(int64_t keys) {
  if (keys > kMaxKeys)
    throw Error(ErrorCode::kIo,
                fmt::format("a table holds at most {} keys; {} are needed. Split its slots over "
                            "several tables",
                            kMaxKeys, keys));
  const auto wanted = static_cast<uint64_t>((keys * kFillChunks + kFillKeys - 1) / kFillKeys);
  if (wanted <= map_.chunks()) return;
  used_chunks_ = std::max(used_chunks_, wanted);
  chunk_arena_.Grow(static_cast<int64_t>(used_chunks_ * sizeof(KeyChunk)));
  while (map_.chunks() < wanted) SplitGroup();
}

// Inlined for the same reason as PrefetchKeys.
[[gnu::always_inline]] inline void KeyIndex::PrefetchForSplit(uint64_t group) const {
  if (group >= map_.groups()) return;
  for (uint64_t part = 0; part < map_.parts(); ++part) {
    const KeyChunk* const chunk = &chunks()[map_.Chunk(group, part)];
    __builtin_prefetch(chunk + kAhead, 1);
    PrefetchKeys(*chunk, MovesOf(*chunk, map_.parts(), part).ask);
    if (chunk->passed > 0) PrefetchKeys(chunk[1], chunk[1].displaced);
  }
}

// Spreads a group over one more part. From its last part down, each makes room for the one before.
void KeyIndex::SplitGroup() {
  const ChunkMap old = map_;
  PrefetchForSplit(old.split() + kAhead);
  map_.Advance();
  for (uint64_t part = old.parts(); part-- > 0;) {
    const uint64_t home = old.Chunk(old.split(), part);
    if (chunks()[home].passed == 0) {
      MoveOn(part, old);
      continue;
    }
    displaced_.clear();
    TakeDisplaced(home, old);
    MoveOn(part, old);
    for (const Entry& entry : displaced_) Place(entry);
  }
}

// Sends the entries at home in a part that do not belong there any more to the next part.
void KeyIndex::MoveOn(uint64_t part, const ChunkMap& old) {
  const uint64_t home = old.Chunk(old.split(), part);
  const uint64_t next_home = old.Chunk(old.split(), part + 1);
  KeyChunk& chunk = chunks()[home];
  KeyChunk& next = chunks()[next_home];
  auto [goes, ask] = MovesOf(chunk, old.parts(), part);
  for (; ask != 0; ask &= ask - 1) {
    const int i = std::countr_zero(ask);
    goes |= uint32_t{map_.Home(Hash(key(chunk.positions[i]))) != home} << i;
  }
  while (goes != 0) {  // from the last one: removing an entry moves later ones only
    const int i = std::bit_width(goes) - 1;
    goes ^= 1u << i;
    const Entry entry{next_home, chunk.tags[i], chunk.positions[i]};
    chunk.Remove(i);
    if (next.count < KeyChunk::kEntries) [[likely]]
      next.Add(entry.tag, entry.position, false);
    else
      Place(entry);
  }
}

// Takes out the entries of a home chunk that are elsewhere: they get a new chance at home.
void KeyIndex::TakeDisplaced(uint64_t home, const ChunkMap& old) {
  for (uint64_t c = home; chunks()[c].passed > 0;) {
    KeyChunk& chunk = chunks()[++c];
    for (uint32_t displaced = chunk.displaced; displaced != 0;) {
      const int i = std::bit_width(displaced) - 1;
      displaced ^= 1u << i;
      const uint32_t position = chunk.positions[i];
      const uint64_t hash = Hash(key(position));
      if (old.Home(hash) != home) continue;
      displaced_.push_back({map_.Home(hash), chunk.tags[i], position});
      chunk.Remove(i);
      for (uint64_t full = home; full < c; ++full) chunks()[full].UncountPassed();
    }
  }
}

}  // namespace terrace
