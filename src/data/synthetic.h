// Synthetic examples of any size, with a known best answer.
//
// Each slot draws its values by a bounded power law (data/zipf.h); dense columns are standard
// normal; labels follow a hidden model (data/synthetic_model.h), whose click probability is the
// batch's `truth`: no predictor can have a better AUC than it has. Example i of a part is a pure
// function of (config, part, i), so chunks may be made in any order by any thread.
//
// With `one_off`, that share of the draws gives a value of its own, as rare to the hidden model as
// the rarest rank. With `drift`, each rank gets a new value every so many examples, ranks at
// different times, so that the same share of each slot changes at any time; the test part goes on
// where the training part ends.
#pragma once

#include <memory>

#include "data/chunk_producer.h"
#include "data/data_config.h"
#include "data/features.h"
#include "data/open_data.h"

namespace terrace {

// What stands in the batch's keys.
enum class SyntheticKeys {
  kHashed,  // IntegerKey(slot, value), as for training
  kValues,  // the value itself: its rank, 0 for the most frequent one of the slot; values that come
            // by one_off and drift are 2^63 and above
};

// Slots and dense columns are those of the spec. Both parts have the same hidden model. The config
// has values that its Visit accepts. Examples before number `first` are left out.
std::unique_ptr<ChunkProducer> MakeSyntheticProducer(const SyntheticConfig& config,
                                                     const FeatureSpec& spec, DataPart part,
                                                     SyntheticKeys keys = SyntheticKeys::kHashed,
                                                     int64_t first = 0);

}  // namespace terrace
