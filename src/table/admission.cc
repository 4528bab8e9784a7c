#include "table/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"

namespace terrace {
namespace {

constexpr size_t kChunk = 256;  // keys whose hashes and units are on the stack
constexpr uint64_t kStartKeys = 48 << 10;
constexpr uint32_t kMagic = 0x4d444154;  // "TADM"
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxLayers = 128;

}  // namespace

Admission::Admission(const AdmissionConfig& config, uint64_t seed)
    : config_(config), hash_seed_(Mix64(seed + 0x9e3779b97f4a7c15ULL)) {
  config.Check("admission");
  units_ = AdmissionUnits::Of(config);
  if (config.by == AdmitBy::kAll) return;
  const uint64_t keys = config.keys > 0 ? static_cast<uint64_t>(config.keys) : kStartKeys;
  layers_.push_back({0, KeyCounts(keys, units_.limit, config.keys > 0)});
}

int64_t Admission::Step(std::span<const uint64_t> keys, std::span<const uint32_t> shows,
                        std::span<const uint32_t> clicks, uint32_t tick,
                        std::span<uint8_t> admitted) {
  const size_t n = keys.size();
  const bool needs_clicks = config_.by == AdmitBy::kScore;
  const bool needs_shows = needs_clicks || config_.by == AdmitBy::kCount;
  TERRACE_CHECK(admitted.size() == n && (shows.size() == n || !needs_shows) &&
                (clicks.size() == n || !needs_clicks) && tick >= tick_);
  tick_ = tick;
  int64_t total = 0;
  if (config_.by == AdmitBy::kAll) {
    std::fill(admitted.begin(), admitted.end(), uint8_t{1});
    total = static_cast<int64_t>(n);
  } else {
    if (config_.forget > 0) BeginPeriod(tick / static_cast<uint64_t>(config_.forget));
    uint64_t hashes[kChunk];
    uint32_t units[kChunk];
    for (size_t begin = 0; begin < n; begin += kChunk) {
      const size_t size = std::min(kChunk, n - begin);
      for (size_t i = 0; i < size; ++i) hashes[i] = HashOf(keys[begin + i]);
      FillUnits({hashes, size}, needs_shows ? &shows[begin] : nullptr,
                needs_clicks ? &clicks[begin] : nullptr, units);
      Count({hashes, size}, units, &admitted[begin]);
      for (size_t i = 0; i < size; ++i) total += admitted[begin + i];
    }
  }
  ++batches_;
  sightings_.admitted += total;
  sightings_.refused += static_cast<int64_t>(n) - total;
  return total;
}

void Admission::FillUnits(std::span<const uint64_t> hashes, const uint32_t* shows,
                          const uint32_t* clicks, uint32_t* units) const {
  switch (config_.by) {
    case AdmitBy::kAll:
      break;
    case AdmitBy::kCount:
      for (size_t i = 0; i < hashes.size(); ++i) units[i] = std::min(shows[i], units_.limit);
      break;
    case AdmitBy::kProbability:
      // RandomBits(seed, key, batches_): its first two steps are the hash.
      for (size_t i = 0; i < hashes.size(); ++i)
        units[i] = UnitDouble(Mix64(hashes[i] + 0x9e3779b97f4a7c15ULL * (batches_ + 1))) <
                   config_.probability;
      break;
    case AdmitBy::kScore: {
      bool good = true;
      for (size_t i = 0; i < hashes.size(); ++i) {
        good &= clicks[i] <= shows[i];
        // Below 2^49: a limit has 16 bits.
        const uint64_t sum =
            uint64_t{shows[i] - clicks[i]} * units_.show + uint64_t{clicks[i]} * units_.click;
        units[i] = static_cast<uint32_t>(std::min<uint64_t>(sum, units_.limit));
      }
      TERRACE_CHECK(good);  // no more clicks than shows
      break;
    }
  }
}

void Admission::Count(std::span<const uint64_t> hashes, const uint32_t* units, uint8_t* admitted) {
  uint32_t before[kChunk];
  while (!hashes.empty()) {
    // Of all keys, not only of those that the last layer does not have: a key may be there by
    // another key's fingerprint, and have had more before.
    const size_t old_layers = layers_.size() - 1;
    if (old_layers > 0) std::fill_n(before, hashes.size(), 0u);
    for (size_t i = 0; i < old_layers; ++i) layers_[i].counts.RaiseToCounts(hashes, before);
    KeyCounts& counts = layers_.back().counts;
    const size_t done = counts.Add(hashes, units, old_layers > 0 ? before : nullptr, admitted);
    if (counts.full()) Grow();
    hashes = hashes.subspan(done);
    units += done;
    admitted += done;
  }
}

bool Admission::Admitted(uint64_t key) const {
  const uint64_t hash = HashOf(key);
  return layers_.empty() || std::ranges::any_of(layers_, [&](const Layer& layer) {
           return layer.counts.Get(hash) == units_.limit;
         });
}

void Admission::Grow() {
  Layer& last = layers_.back();
  if (last.counts.Double()) return;
  // As many keys again, and this time with fingerprints for many doublings.
  KeyCounts next(last.counts.capacity(), units_.limit, false);
  layers_.push_back({last.period, std::move(next)});
}

void Admission::BeginPeriod(uint64_t period) {
  const uint64_t before = layers_.back().period;
  if (batches_ == 0) layers_.back().period = period;
  if (batches_ == 0 || period == before) return;
  uint64_t keys = 0;
  for (const Layer& layer : layers_)
    if (layer.period == before) keys += layer.counts.keys();
  std::erase_if(layers_, [&](const Layer& layer) { return layer.period + 1 < period; });
  // Small words only for a number of keys that was told, or that does not grow fast.
  const bool exact = config_.keys > 0 || keys <= 2 * last_keys_;
  const uint64_t least = config_.keys > 0 ? static_cast<uint64_t>(config_.keys) : kStartKeys;
  layers_.push_back({period, KeyCounts(std::max(least, keys + keys / 8), units_.limit, exact)});
  last_keys_ = keys;
}

int64_t Admission::bytes() const {
  size_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.counts.bytes();
  return static_cast<int64_t>(bytes);
}

int64_t Admission::settled_bytes() const {
  if (config_.forget == 0 || config_.keys == 0) return bytes();
  // Two periods, each with room for an eighth more keys than the one before it had; and a line
  // that is full spills.
  const int64_t layers = static_cast<int64_t>(layers_.size());
  return std::max(bytes(), bytes() / layers * 5 / 2);
}

std::string Admission::Save() const {
  std::string to;
  AppendValue(&to, kMagic);
  AppendValue(&to, kVersion);
  AppendValue(&to, static_cast<uint32_t>(config_.by));
  AppendValue(&to, units_.limit);
  AppendValue(&to, hash_seed_);
  AppendValue(&to, static_cast<uint64_t>(config_.forget));
  AppendValue(&to, last_keys_);
  AppendValue(&to, batches_);
  AppendValue(&to, tick_);
  AppendValue(&to, sightings_.admitted);
  AppendValue(&to, sightings_.refused);
  AppendValue(&to, static_cast<uint32_t>(layers_.size()));
  for (const Layer& layer : layers_) {
    AppendValue(&to, layer.period);
    layer.counts.Save(&to);
  }
  return to;
}

void Admission::Load(std::string_view saved) {
  const auto check = [](bool good, const char* what) {
    if (!good)
      throw Error(ErrorCode::kCorruption, fmt::format("admission state: {}; it is damaged or of "
                                                      "another version: restore another snapshot",
                                                      what));
  };
  check(TakeValue<uint32_t>(&saved) == kMagic, "expected \"TADM\" at its start");
  check(TakeValue<uint32_t>(&saved) == kVersion, "its version is not 1");
  const bool same_by = TakeValue<uint32_t>(&saved) == static_cast<uint32_t>(config_.by);
  const auto limit = TakeValue<uint32_t>(&saved);
  const bool same_seed = TakeValue<uint64_t>(&saved) == hash_seed_;
  const auto forget = TakeValue<uint64_t>(&saved);
  if (!same_by || limit != units_.limit || !same_seed ||
      forget != static_cast<uint64_t>(config_.forget))
    throw Error(ErrorCode::kUsage,
                fmt::format("the admission of the snapshot has {} `by`, {} seed, a limit of {} "
                            "units and forget = {}, the config a limit of {} and forget = {}: go "
                            "on with the config of the snapshot",
                            same_by ? "the same" : "another", same_seed ? "the same" : "another",
                            limit, forget, units_.limit, config_.forget));
  const auto last_keys = TakeValue<uint64_t>(&saved), batches = TakeValue<uint64_t>(&saved);
  const auto tick = TakeValue<uint32_t>(&saved);
  Sightings sightings;
  sightings.admitted = TakeValue<int64_t>(&saved);
  sightings.refused = TakeValue<int64_t>(&saved);
  const auto layers = TakeValue<uint32_t>(&saved);
  check(layers <= kMaxLayers && (layers == 0) == (config_.by == AdmitBy::kAll),
        "a wrong number of layers");
  const uint64_t period = forget > 0 && batches > 0 ? tick / forget : 0;
  std::vector<Layer> loaded;
  for (uint32_t i = 0; i < layers; ++i) {
    const auto of = TakeValue<uint64_t>(&saved);
    check(of == period || (of + 1 == period && i + 1 < layers), "a layer of a wrong period");
    loaded.push_back({of, KeyCounts::Load(&saved, limit)});
  }
  check(saved.empty(), "more bytes than expected");
  layers_ = std::move(loaded);
  last_keys_ = last_keys;
  batches_ = batches;
  tick_ = tick;
  sightings_ = sightings;
}

}  // namespace terrace
