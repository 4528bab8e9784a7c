// Chooses the rows that leave the memory tier when others need room.
//
// A policy keeps a small value for each position: what the row's uses so far amount to. Victims are
// wanted thousands at a time, so nothing is kept in order: a hand goes round the positions, looks
// at a stretch of several times as many rows as have to leave, and takes those of the lowest rank.
// That reads memory in sequence, and a use writes one value.
//
// The same calls give the same victims. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/memory.h"

namespace terrace {

enum class PolicyKind {
  kLru,     // the rows that were not used for the longest time
  kLruLfu,  // the half that was used last stays; of the others the least often used leave
  kClock,   // the least used, where a use counts the less the longer ago it was
  kNextUse  // as kClock; who calls it pins the rows that known batches will use
};

// The one with the fewest misses: see `terrace bench policies`.
inline constexpr PolicyKind kDefaultPolicy = PolicyKind::kNextUse;

// As in configs: "lru", "lru-lfu", "clock", "next-use".
const char* PolicyName(PolicyKind kind);

class EvictionPolicy {
 public:
  static std::unique_ptr<EvictionPolicy> Make(PolicyKind kind);
  virtual ~EvictionPolicy() = default;

  // Positions 1 to `rows` may be used from now on. Only grows.
  virtual void Resize(int64_t rows) = 0;
  // Rows that came into the tier for batch `now`. Batches count up from 1.
  virtual void Add(std::span<const uint32_t> positions, uint32_t now) = 0;
  // Rows that were there and are used by batch `now`.
  virtual void Use(std::span<const uint32_t> positions, uint32_t now) = 0;
  // Chooses n rows to leave and forgets them; fewer only if fewer may leave: a row with
  // pins[position] > done stays. Appends their positions to *victims.
  virtual void Pick(int64_t n, std::span<const uint32_t> pins, uint32_t done,
                    Array<uint32_t>* victims) = 0;
  virtual int64_t bytes() const = 0;
};

}  // namespace terrace
