// Where examples come from: numbered chunks that several threads make side by side.
#pragma once

#include <memory>

#include "data/batch.h"

namespace terrace {

// What is claimed in order before the costly part is done in parallel (a block of text; a range of
// example numbers of a generator).
struct ChunkWork {
  virtual ~ChunkWork() = default;
};

class ChunkProducer {
 public:
  virtual ~ChunkProducer() = default;
  virtual const BatchShape& shape() const = 0;
  // The next piece of work, in order; null at the end. Calls are serialised by the caller.
  virtual std::unique_ptr<ChunkWork> Claim() = 0;
  // Bytes of input behind all claims so far; 0 if there is no such thing. Serialised with Claim.
  virtual int64_t bytes_claimed() const { return 0; }
  // Appends the examples of `work` to an empty chunk. Called from several threads at once.
  virtual void Produce(ChunkWork& work, Batch* chunk) = 0;
  // Rows left out so far because they were bad (on_bad_row = "skip").
  virtual int64_t skipped_rows() const { return 0; }
};

}  // namespace terrace
