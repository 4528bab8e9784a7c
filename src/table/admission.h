// Decides which keys of a table get a row.
//
// Most keys of a click log are seen once or twice; a row for each would fill the disk and teach
// nothing. Until a key is admitted a few bytes remember what was seen of it (key_counts.h): 2.8
// bytes a distinct key for `count` up to 15 and `probability` if `keys` is about right, else 5.9 to
// 11 bytes. Once admitted, a key stays so for as long as it is remembered.
//
// What it decides is a pure function of config, seed and the stream of batches: the same whatever
// the threads, tiers and windows are.
//
// - A key is never late: one whose units reached the limit while it was remembered is admitted.
// - A key is early where it shares its count with another one. Whatever the stream is, such keys
//   are at most 1 % at `keys` keys; the share of keys that really come early is measured in
//   admission_test.cc: 0.3 % for `count` 2, less for others.
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
  uint32_t OldCount(uint64_t hash) const;  // in all layers but the last
  int64_t Count(std::span<const uint64_t> hashes, const uint32_t* units, uint8_t* admitted);
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
