// Chunks made by several threads, delivered in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "data/batch.h"
#include "data/chunk_producer.h"

namespace terrace {

// What lies before a place of the input.
struct InputCounts {
  int64_t bytes = 0;         // of input
  int64_t skipped_rows = 0;  // left out because they were bad
};

// Runs threads "parse-0", "parse-1", ... that claim pieces of work in order and produce them side
// by side. They run ahead of the caller by a few chunks, or by `ahead_examples` examples if that is
// more. Next and Recycle belong to one thread. Destruction ends the threads at any time, once the
// piece each is working on is done.
class OrderedReader {
 public:
  // `before` is what lies before the producer's first chunk.
  OrderedReader(std::unique_ptr<ChunkProducer> producer, int threads, int64_t ahead_examples,
                InputCounts before = {});
  ~OrderedReader();
  OrderedReader(const OrderedReader&) = delete;
  OrderedReader& operator=(const OrderedReader&) = delete;

  // The next chunk (it may hold no example), or null at the end. If the producer failed, rethrows
  // that, now and ever after, when the chunks before it have been delivered.
  std::unique_ptr<Batch> Next() EXCLUDES(mu_);
  // Gives the memory of a chunk back for another one.
  void Recycle(std::unique_ptr<Batch> chunk) EXCLUDES(mu_);

  const ChunkProducer& producer() const { return *producer_; }
  // Of the chunks that Next has returned. For Next's thread.
  const InputCounts& delivered() const { return delivered_; }
  // Where the chunk begins that Next returned last. For Next's thread.
  const ChunkPlace& begin() const { return begin_; }
  // Memory of all chunks, delivered ones included: they come back. It never falls.
  int64_t chunk_bytes() const { return chunk_bytes_.load(std::memory_order_relaxed); }

 private:
  // A chunk that was claimed and not yet delivered.
  struct Pending {
    ChunkPlace begin;
    int64_t bytes_claimed = 0;  // of input, up to and with this chunk
    int64_t skipped_rows = 0;   // of this chunk
    bool done = false;
    std::unique_ptr<Batch> chunk;
    std::exception_ptr error;
  };

  void ParseLoop() EXCLUDES(mu_, claim_mu_);
  // Takes a piece of work and its place in line, once there is room. Null: nothing more to do.
  std::unique_ptr<ChunkWork> Claim(int64_t* number) EXCLUDES(mu_, claim_mu_);
  bool WaitForRoom() EXCLUDES(mu_);
  int64_t Append(const ChunkPlace& begin, int64_t bytes_claimed) EXCLUDES(mu_);
  std::unique_ptr<Batch> EmptyChunk() EXCLUDES(mu_);
  void Deliver(int64_t number, std::unique_ptr<Batch> chunk, int64_t skipped_rows,
               const std::exception_ptr& error) EXCLUDES(mu_);
  void Stop() EXCLUDES(mu_);

  // Constant after construction.
  const std::unique_ptr<ChunkProducer> producer_;
  const size_t ahead_chunks_;
  const int64_t ahead_examples_;

  // Held during a claim, so that claims and numbers have one order. Locked before mu_.
  Mutex claim_mu_;

  Mutex mu_;
  CondVar room_;
  CondVar ready_;
  std::deque<Pending> pending_ GUARDED_BY(mu_);  // numbers first_, first_ + 1, ...
  int64_t first_ GUARDED_BY(mu_) = 0;
  int64_t ready_examples_ GUARDED_BY(mu_) = 0;  // of done chunks in pending_
  bool ended_ GUARDED_BY(mu_) = false;          // nothing more is to be claimed
  std::vector<std::unique_ptr<Batch>> free_ GUARDED_BY(mu_);

  // Used by Next's thread alone.
  InputCounts delivered_;
  ChunkPlace begin_;

  std::atomic<int64_t> chunk_bytes_{0};  // a counter
  std::vector<std::jthread> threads_;
};

}  // namespace terrace
