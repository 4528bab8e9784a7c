// Examples of a reader in file order, or shuffled block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "data/batch.h"
#include "data/ordered_reader.h"

namespace terrace {

struct ShuffleOptions {
  int64_t examples = 0;  // of a block; 0: file order
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// A block is the next `examples` examples of the data, however they were cut into chunks, and comes
// out in an order that is a function of (seed, epoch, number of the block). While one block is
// taken from, the reader fills the next. One thread.
class ShuffleBuffer {
 public:
  // `reader` outlives this.
  ShuffleBuffer(OrderedReader* reader, ShuffleOptions options);

  // Appends up to `count` examples to a batch of the reader's shape; returns how many, 0 only at
  // the end. Throws what the reader throws.
  int64_t Take(int64_t count, Batch* to);

 private:
  bool FillBlock();
  // Moves on to the chunk that holds the next examples. False at the end of the data.
  bool NextChunk();

  OrderedReader* const reader_;
  const ShuffleOptions options_;
  std::vector<std::unique_ptr<Batch>> chunks_;  // that the block's examples lie in
  int64_t used_of_last_ = 0;  // examples of chunks_.back() that are in this or an earlier block
  std::vector<ExampleRef> order_;  // of the block; [0, taken_) is final, the rest not yet shuffled
  int64_t taken_ = 0;
  int64_t blocks_ = 0;
  RandomStream random_;
};

}  // namespace terrace
