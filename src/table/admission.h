// Decides which keys of a table get a row.
//
// Most keys of a click log are seen once or twice; a row for each would fill the disk and teach
// nothing. Until a key is admitted a few bytes remember what was seen of it (key_counts.h): 2.5 to
// 3 bytes a distinct key by probability and for `count` up to 15, 6 for more units, if `keys` is
// about right; 6 to 12 bytes where it grows. Once admitted, a key stays so for as long as it is
// remembered.
//
// What it decides is a pure function of config, seed and the stream of batches: the same whatever
// the threads, tiers and windows are.
//
// - A key is never late: one whose units reached the limit while it was remembered is admitted.
// - A key may be early where it shares its count with another one. At `keys` keys, of which nine in
//   ten are seen once, 0.07 % are early for `count` 2 and 0.05 % or less for others up to 15; if
//   all are one short of the limit, the worst that a stream can do, 0.63 % (admission_test.cc
//   measures both). The counts of a last period, and of a first table that `keys` made too small,
//   add at most as much again.
// - Forgetting: ticks are cut into periods of `forget` ticks; the counts of this period and of the
//   last one are kept, and a key that is seen takes its count along. So a key keeps its count if it
//   is seen again within `forget` ticks, and loses it after 2 * `forget` at the latest. A row that
//   expires after at most `forget` unseen ticks belongs to an admitted key while it lives.
// - By probability the coin of a key is RandomBits(seed, key, number of the batch) < probability.
//
// Memory grows with the distinct keys of two periods, `keys` or not. While a table doubles, within
// Step, the old and the new one are there: 1.5 times the bytes() after it.
//
// Belongs to one thread. Throws Error(kIo) when memory runs out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "table/admission_config.h"
#include "table/key_counts.h"

namespace terrace {

class Admission {
 public:
  // Of keys in batches: a key counts once in each batch that it is in.
  struct Sightings {
    int64_t admitted = 0;
    int64_t refused = 0;
    bool operator==(const Sightings&) const = default;
  };

  // Throws Error(kUsage) for a config that Check refuses.
  Admission(const AdmissionConfig& config, uint64_t seed);

  // The next batch of the stream: its distinct keys, how often each occurs in its examples, and how
  // many of these have a click. Sets `admitted` to 1 for keys that have or now get a row, else 0;
  // returns how many are 1. Ticks never decrease.
  int64_t Step(std::span<const uint64_t> keys,
               std::span<const uint32_t> shows,   // [n] by count or score, else may be empty
               std::span<const uint32_t> clicks,  // [n] by score, else may be empty
               uint32_t tick, std::span<uint8_t> admitted);

  // As of the last batch, and without counting.
  bool Admitted(uint64_t key) const;

  const Sightings& sightings() const { return sightings_; }
  int64_t bytes() const;
  // The most that bytes() becomes if `keys` is right; without it what they are now.
  int64_t settled_bytes() const;

  // All that was remembered; who stores it adds a checksum.
  std::string Save() const;
  // Goes on where the saved one was: it had the same config (but for `keys`) and seed. Throws
  // Error(kUsage) if not, Error(kCorruption) for anything that Save does not write; then nothing
  // has changed.
  void Load(std::string_view saved);

 private:
  // Of one period, the last is in use: the others are read only.
  struct Layer {
    uint64_t period;
    KeyCounts counts;
  };

  uint64_t HashOf(uint64_t key) const { return Mix64(hash_seed_ ^ key); }
  // Units of each key of a part of a batch.
  void FillUnits(std::span<const uint64_t> hashes, const uint32_t* shows, const uint32_t* clicks,
                 uint32_t* units) const;
  void Count(std::span<const uint64_t> hashes, const uint32_t* units, uint8_t* admitted);
  void Grow();
  void BeginPeriod(uint64_t period);

  AdmissionConfig config_;
  AdmissionUnits units_;
  uint64_t hash_seed_;
  std::vector<Layer> layers_;  // oldest first; none where all keys are admitted
  uint64_t last_keys_ = 0;     // counted in the period before this one
  uint64_t batches_ = 0;
  uint32_t tick_ = 0;
  Sightings sightings_;
};

}  // namespace terrace
