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

// A ChunkProducer that knows how much of its files is read.
class TextProducer : public ChunkProducer {
 public:
  // Bytes taken from the files so far. Safe from any thread.
  virtual int64_t bytes_read() const = 0;
};

// `paths` are files, read one after another. A csv or tsv file starts with a header; an empty file
// has no examples. `block_bytes` is the size of a piece of work.
std::unique_ptr<TextProducer> MakeTextProducer(Env& env, const std::vector<std::string>& paths,
                                               const DataConfig& config, const FeatureSpec& spec,
                                               size_t block_bytes = size_t{1} << 20);

}  // namespace terrace
