// Text files as numbered chunks: blocks are read in order, parsed side by side.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/chunk_producer.h"
#include "data/data_config.h"
#include "data/features.h"

namespace terrace {

// `paths` are files, read one after another. A csv or tsv file starts with a header; an empty file
// has no examples. `block_bytes` is the size of a piece of work. Reading begins at `start`; Claim
// throws Error(kUsage) if the files are no longer such that a chunk could begin there. `labels`: as
// OpenDataOptions has it.
std::unique_ptr<ChunkProducer> MakeTextProducer(Env& env, const std::vector<std::string>& paths,
                                                const DataConfig& config, const FeatureSpec& spec,
                                                size_t block_bytes = size_t{1} << 20,
                                                const ChunkPlace& start = {}, bool labels = true);

}  // namespace terrace
