#include "bench/tiers_traffic.h"

#include <bit>

#include "base/random.h"
#include "bench/disk_work.h"

namespace terrace {

void Traffic::NextKeys(uint64_t draws, std::vector<uint64_t>* keys) {
  const uint64_t fresh = options_.fresh_keys(draws);
  const uint64_t rows = options_.rows + next_ * fresh;
  if (fresh > 0) law_ = ZipfSampler(rows, TrafficOptions::kExponent);
  RandomStream random(options_.seed, 2 * next_);
  keys->resize(draws);
  for (uint64_t& key : *keys) {
    // The law looks at the upper bits of both values only.
    const uint64_t bits = random.Next();
    key = TableKeys::Key(law_.Draw(bits, std::rotl(bits, 32)));
  }
  // Spread over the batch.
  for (uint64_t i = 0; i < fresh; ++i) (*keys)[i * draws / fresh] = TableKeys::Key(rows + i);
  ++next_;
}

bool Traffic::Next(int64_t size, Batch* batch) {
  RandomStream random(options_.seed, 2 * next_ + 1);
  KeyGroup& group = batch->groups[0];
  NextKeys(options_.draws(size), &group.keys);
  batch->examples = size;
  const auto bags = static_cast<size_t>(size * options_.shape.slots);
  group.offsets.resize(bags + 1);
  for (size_t bag = 0; bag <= bags; ++bag)
    group.offsets[bag] = static_cast<uint32_t>(bag * static_cast<size_t>(options_.shape.values));
  batch->dense.resize(static_cast<size_t>(size * options_.shape.dense));
  for (float& x : batch->dense) x = 2 * UnitFloat(random.Next()) - 1;
  batch->labels.resize(static_cast<size_t>(size));
  for (float& label : batch->labels) label = random.Next() % 4 == 0 ? 1.0f : 0.0f;
  if (shape_.has_truth) batch->truth.assign(static_cast<size_t>(size), 0.25f);
  return true;
}

}  // namespace terrace
