// Synthetic examples of any size, with a known best answer.
//
// Each slot draws its values by a bounded power law (data/zipf.h); dense columns are standard
// normal; labels follow a hidden model (data/synthetic_model.h), whose click probability is the
// batch's `truth`: no predictor can have a better AUC than it has. Example i of a part is a pure
// function of (config, part, i), so chunks may be made in any order by any thread.
#pragma once

#include <memory>

#include "data/chunk_producer.h"
#include "data/data_config.h"
#include "data/features.h"
#include "data/open_data.h"

namespace terrace {

// What stands in the batch's keys.
enum class SyntheticKeys {
  kHashed,  // IntegerKey(slot, rank), as for training
  kRanks,   // the rank itself: 0 is the most frequent value of the slot
};

// Slots and dense columns are those of the spec. Both parts have the same hidden model. The config
// has values that its Visit accepts.
std::unique_ptr<ChunkProducer> MakeSyntheticProducer(const SyntheticConfig& config,
                                                     const FeatureSpec& spec, DataPart part,
                                                     SyntheticKeys keys = SyntheticKeys::kHashed);

}  // namespace terrace
