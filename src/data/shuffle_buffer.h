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
  // Bytes of input behind the examples taken, evenly spread over each block; never goes back.
  double bytes_taken() const;
  // Memory of the order; the examples lie in the reader's chunks.
  int64_t order_bytes() const {
    return static_cast<int64_t>(order_.capacity() * sizeof(ExampleRef));
  }

 private:
  // False at the end of the data. In file order a block is a chunk.
  bool NextBlock();
  void RecycleSpentChunks();
  void FillOrder();
  // Adds the next chunk that is not empty. False at the end of the data.
  bool AddChunk();
  // Of input, behind all examples that went into blocks.
  double BytesUsed() const;
  bool AllUsed() const { return chunks_.empty() || used_of_last_ == chunks_.back()->examples; }

  OrderedReader* const reader_;
  const ShuffleOptions options_;

  // The block.
  std::vector<std::unique_ptr<Batch>> chunks_;  // that its examples lie in
  int64_t used_of_last_ = 0;       // examples of chunks_.back() in this block or an earlier one
  std::vector<ExampleRef> order_;  // if shuffled: [0, taken_) is final
  int64_t size_ = 0;               // examples
  int64_t taken_ = 0;
  double begin_bytes_ = 0;  // of input
  double end_bytes_ = 0;
  double last_begin_bytes_ = 0;  // of chunks_.back()
  RandomStream random_;

  int64_t blocks_ = 0;  // so far
};

}  // namespace terrace
