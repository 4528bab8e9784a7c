// Streams of batches for tests of admission, and the exact model that it is compared with.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "table/admission.h"

namespace terrace {

struct KeyBatch {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> shows, clicks;
  uint32_t tick = 0;
};

inline std::vector<uint8_t> StepOn(Admission* admission, const KeyBatch& batch) {
  std::vector<uint8_t> admitted(batch.keys.size(), 2);
  admission->Step(batch.keys, batch.shows, batch.clicks, batch.tick, admitted);
  return admitted;
}

// The occurrences of `keys`, shuffled and cut into batches with a tick each; one in four is a
// click.
inline std::vector<KeyBatch> Shuffled(std::vector<uint64_t> occurrences, size_t batch_size,
                                      uint64_t seed) {
  RandomStream random(seed, 1);
  for (size_t i = occurrences.size(); i > 1; --i)
    std::swap(occurrences[i - 1], occurrences[BelowN(random.Next(), i)]);
  std::vector<KeyBatch> batches;
  std::unordered_map<uint64_t, size_t> places;
  for (size_t i = 0; i < occurrences.size(); ++i) {
    if (i % batch_size == 0) {
      batches.emplace_back().tick = static_cast<uint32_t>(batches.size());
      places.clear();
    }
    KeyBatch& batch = batches.back();
    const auto [place, is_new] = places.try_emplace(occurrences[i], batch.keys.size());
    if (is_new) {
      batch.keys.push_back(occurrences[i]);
      batch.shows.push_back(0);
      batch.clicks.push_back(0);
    }
    ++batch.shows[place->second];
    batch.clicks[place->second] += random.Next() % 4 == 0;
  }
  return batches;
}

// Counts or scores of each key, by whole numbers and by periods of `forget` ticks.
class ExactAdmission {
 public:
  explicit ExactAdmission(const AdmissionConfig& config)
      : units_(AdmissionUnits::Of(config)), forget_(static_cast<uint64_t>(config.forget)) {}

  struct Key {
    uint64_t units = 0;
    uint64_t seen = 0;   // tick
    uint64_t least = 0;  // as units, of a key that is forgotten at once after `forget` ticks
    bool early = false;  // for who compares
  };

  Key& Step(const KeyBatch& batch, size_t i) {
    Key& key = keys_[batch.keys[i]];
    const uint64_t now = batch.tick;
    if (forget_ > 0 && now / forget_ > key.seen / forget_ + 1) key.units = 0;
    if (forget_ > 0 && now > key.seen + forget_) key.least = 0;
    key.seen = now;
    const uint64_t units =
        (batch.shows[i] - batch.clicks[i]) * uint64_t{units_.show} + batch.clicks[i] * units_.click;
    key.units += units;
    key.least += units;
    return key;
  }
  bool Admits(const Key& key) const { return key.units >= units_.limit; }
  const AdmissionUnits& units() const { return units_; }
  const std::unordered_map<uint64_t, Key>& keys() const { return keys_; }

 private:
  AdmissionUnits units_;
  uint64_t forget_;
  std::unordered_map<uint64_t, Key> keys_;
};

}  // namespace terrace
