// Text files as numbered chunks: blocks are read in order, parsed side by side.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "data/chunk_producer.h"
#include "data/data_config.h"
#include "data/features.h"

namespace terrace {

struct TextOptions {
  size_t block_bytes = size_t{1} << 20;  // of a piece of work
  ChunkPlace start = {};
  // As OpenDataOptions has them.
  bool labels = true;
  std::shared_ptr<const std::atomic<bool>> cancelled = {};
};

// `paths` are files, read one after another. A csv or tsv file starts with a header; an empty file
// has no examples. Claim throws Error(kUsage) if the files are no longer such that a chunk could
// begin at `start`.
std::unique_ptr<ChunkProducer> MakeTextProducer(Env& env, const std::vector<std::string>& paths,
                                                const DataConfig& config, const FeatureSpec& spec,
                                                const TextOptions& options = {});

}  // namespace terrace
