// Which chunk of a growing hash table a hash belongs to (linear hashing with partial expansions,
// Larson 1980).
//
// Chunks form 2^level groups: chunk c is part c >> level of group c mod 2^level. All groups have 4
// to 7 parts; those below split() have one more. Within a group a fraction f in [0, 1) of the hash
// picks part floor(f * parts). To grow by one chunk, group split() is spread over one more part,
// which is the chunk right after the last: a key stays or moves on by one part. When all groups
// have 8 parts they are seen as twice as many groups of 4, and f is such that no key moves by that.
//
// So the table grows smoothly, its fullest chunks are at most 5/4 as full as the average, and 4 to
// 7 chunks are visited for each one that is added.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace terrace {

class ChunkMap {
 public:
  // f is 25 bits: two fixed ones, the bit that the next level adds to the group, and 22 fixed ones,
  // of which the upper 8 are the tag.
  static constexpr int kFractionBits = 25;
  static constexpr int kTagShift = 14;  // in f
  static constexpr uint8_t Tag(uint64_t hash) { return static_cast<uint8_t>(hash >> 54); }

  uint64_t chunks() const { return (parts_ << level_) + split_; }
  uint64_t groups() const { return uint64_t{1} << level_; }
  uint64_t split() const { return split_; }  // the next group to get one more part
  uint64_t parts() const { return parts_; }  // of the groups from split() on
  uint64_t Chunk(uint64_t group, uint64_t part) const { return group + (part << level_); }

  uint64_t Home(uint64_t hash) const {
    const uint64_t group = hash & (groups() - 1);
    return Chunk(group, (Fraction(hash) * (parts_ + (group < split_))) >> kFractionBits);
  }

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

// A circular range of tags: first, first + 1, ..., first + more.
struct TagRange {
  uint8_t first = 0;
  uint8_t more = 0;

  constexpr bool Contains(uint8_t tag) const { return static_cast<uint8_t>(tag - first) <= more; }
};

// What a tag tells of a key when its group is spread over one more part: it may stay, it may move
// on to the next part, or both; then the key itself decides.
struct SplitRule {
  TagRange may_stay;
  TagRange may_move;

  static const SplitRule& For(uint64_t parts, uint64_t part) { return kAll[parts - 4][part]; }

 private:
  // Tags of the fractions [first, end).
  static constexpr TagRange TagsOf(uint64_t first, uint64_t end) {
    const uint64_t from = first >> ChunkMap::kTagShift;
    const uint64_t to = (end - 1) >> ChunkMap::kTagShift;
    return {static_cast<uint8_t>(from), static_cast<uint8_t>(std::min<uint64_t>(to - from, 255))};
  }
  static constexpr SplitRule Make(uint64_t parts, uint64_t part) {
    // Where a part of so many starts.
    const auto start = [](uint64_t p, uint64_t of) {
      return ((p << ChunkMap::kFractionBits) + of - 1) / of;
    };
    const uint64_t boundary = start(part + 1, parts + 1);
    return {TagsOf(start(part, parts), boundary), TagsOf(boundary, start(part + 1, parts))};
  }
  using Table = std::array<std::array<SplitRule, 7>, 4>;  // [parts - 4][part]
  static const Table kAll;
};

inline constexpr SplitRule::Table SplitRule::kAll = [] {
  Table table{};
  for (uint64_t parts = 4; parts < 8; ++parts)
    for (uint64_t part = 0; part < parts; ++part) table[parts - 4][part] = Make(parts, part);
  return table;
}();

}  // namespace terrace
