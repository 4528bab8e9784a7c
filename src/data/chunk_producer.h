// Where examples come from: numbered chunks that several threads make side by side.
#pragma once

#include <cstdint>
#include <memory>

#include "data/batch.h"

namespace terrace {

// Where a chunk begins. A producer that is started there goes on as the one that made the chunk.
struct ChunkPlace {
  int64_t file = 0;          // its number; 0 for a generator
  int64_t offset = 0;        // in the file's text, decompressed; the number of a generated example
  int64_t line = 1;          // of the file, from 1
  int64_t bytes_before = 0;  // of input, in the files before this one
  bool operator==(const ChunkPlace&) const = default;
};

// What is claimed in order before the costly part is done in parallel (a block of text; a range of
// example numbers of a generator).
struct ChunkWork {
  virtual ~ChunkWork() = default;
  ChunkPlace begin;          // set by Claim
  int64_t skipped_rows = 0;  // set by Produce: left out because they were bad (on_bad_row = "skip")
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
};

}  // namespace terrace
