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

// Where a buffer is: in which block, and where that begins. In file order a block is a chunk.
struct BlockPosition {
  ChunkPlace chunk;        // that holds the block's first example
  InputCounts before;      // that chunk
  int64_t passed = 0;      // examples of the chunk in earlier blocks
  int64_t number = 0;      // of the block
  int64_t size = 0;        // examples of the block; 0: before the first block
  int64_t taken = 0;       // of them
  int64_t last_file = -1;  // number of the file that the block's last chunk is of
  bool ended = false;      // nothing was found behind the block
  double bytes = 0;        // of input before the block, as far as examples can be told apart
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
  // After the last Take.
  BlockPosition position() const;
  // Before the first Take, with a reader that starts at position.chunk: makes Take go on behind the
  // examples taken there. False if the data have fewer examples. Throws what the reader throws.
  [[nodiscard]] bool GoTo(const BlockPosition& position);

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
  // Makes the next `wanted` examples, or all that are left, a block with an order yet to be drawn.
  int64_t FillOrder(int64_t wanted);
  // Makes the position's block and takes what was taken. False as GoTo.
  bool Refill(const BlockPosition& position);
  // Draws the order up to `end`.
  void DrawUpTo(int64_t end);
  // Leaves out examples. False at the end of the data.
  bool PassOver(int64_t examples);
  // Adds the next chunk that is not empty. False at the end of the data.
  bool AddChunk();
  // Of input, behind all examples that went into blocks.
  double BytesUsed() const;
  bool AllUsed() const { return chunks_.empty() || used_of_last_ == chunks_.back()->examples; }

  OrderedReader* const reader_;
  const ShuffleOptions options_;

  // A chunk that is in use.
  struct ChunkMark {
    ChunkPlace begin;
    InputCounts before;
  };

  // The block.
  std::vector<std::unique_ptr<Batch>> chunks_;  // that its examples lie in
  int64_t used_of_last_ = 0;       // examples of chunks_.back() in this block or an earlier one
  ChunkMark first_;                // of chunks_.front()
  ChunkMark last_;                 // of chunks_.back()
  std::vector<ExampleRef> order_;  // if shuffled: [0, taken_) is final
  int64_t size_ = 0;               // examples; stays when there is no further block
  int64_t taken_ = 0;
  BlockPosition begin_;   // where the block begins
  double end_bytes_ = 0;  // of input
  RandomStream random_;

  int64_t blocks_ = 0;  // so far
  bool ended_ = false;  // the reader has no more chunks
};

}  // namespace terrace
