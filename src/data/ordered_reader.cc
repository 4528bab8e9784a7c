#include "data/ordered_reader.h"

#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/workers.h"

namespace terrace {

OrderedReader::OrderedReader(std::unique_ptr<ChunkProducer> producer, int threads,
                             int64_t ahead_examples, InputCounts before)
    : producer_(std::move(producer)),
      ahead_chunks_(2 * static_cast<size_t>(threads) + 2),
      ahead_examples_(ahead_examples),
      delivered_(before) {
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i] {
        NameThisThread("parse-" + std::to_string(i));
        ParseLoop();
      });
    }
  } catch (const std::system_error& e) {
    Stop();
    throw Error(ErrorCode::kIo,
                std::string("cannot start a parser thread: ") + e.what() + "; lower data.threads");
  }
}

OrderedReader::~OrderedReader() { Stop(); }

void OrderedReader::Stop() {
  {
    MutexLock lock(&mu_);
    ended_ = true;
    room_.NotifyAll();
  }
  threads_.clear();  // joins
}

void OrderedReader::ParseLoop() {
  int64_t number;
  while (std::unique_ptr<ChunkWork> work = Claim(&number)) {
    std::unique_ptr<Batch> chunk = EmptyChunk();
    const int64_t bytes_before = BatchBytes(*chunk);
    std::exception_ptr error;
    try {
      producer_->Produce(*work, chunk.get());
    } catch (...) {
      error = std::current_exception();
    }
    chunk_bytes_.fetch_add(BatchBytes(*chunk) - bytes_before, std::memory_order_relaxed);
    Deliver(number, std::move(chunk), work->skipped_rows, error);
  }
}

std::unique_ptr<ChunkWork> OrderedReader::Claim(int64_t* number) {
  MutexLock claim(&claim_mu_);
  if (!WaitForRoom()) return nullptr;
  std::unique_ptr<ChunkWork> work;
  try {
    work = producer_->Claim();
  } catch (...) {
    Deliver(Append({}, 0), nullptr, 0, std::current_exception());
    return nullptr;
  }
  if (work == nullptr) {
    MutexLock lock(&mu_);
    ended_ = true;
    ready_.NotifyAll();
    return nullptr;
  }
  *number = Append(work->begin, producer_->bytes_claimed());
  return work;
}

bool OrderedReader::WaitForRoom() {
  MutexLock lock(&mu_);
  while (!ended_ && pending_.size() >= ahead_chunks_ && ready_examples_ >= ahead_examples_)
    room_.Wait(&mu_);
  return !ended_;
}

int64_t OrderedReader::Append(const ChunkPlace& begin, int64_t bytes_claimed) {
  MutexLock lock(&mu_);
  Pending& pending = pending_.emplace_back();
  pending.begin = begin;
  pending.bytes_claimed = bytes_claimed;
  return first_ + static_cast<int64_t>(pending_.size()) - 1;
}

std::unique_ptr<Batch> OrderedReader::EmptyChunk() {
  {
    MutexLock lock(&mu_);
    if (!free_.empty()) {
      std::unique_ptr<Batch> chunk = std::move(free_.back());
      free_.pop_back();
      return chunk;
    }
  }
  return std::make_unique<Batch>(MakeBatch(producer_->shape()));
}

void OrderedReader::Deliver(int64_t number, std::unique_ptr<Batch> chunk, int64_t skipped_rows,
                            const std::exception_ptr& error) {
  MutexLock lock(&mu_);
  Pending& pending = pending_[number - first_];
  pending.done = true;
  pending.chunk = std::move(chunk);
  pending.skipped_rows = skipped_rows;
  pending.error = error;
  if (error != nullptr) {
    ended_ = true;  // what comes behind it would never be delivered
    room_.NotifyAll();
  } else {
    ready_examples_ += pending.chunk->examples;
  }
  if (number == first_) ready_.NotifyAll();
}

std::unique_ptr<Batch> OrderedReader::Next() {
  MutexLock lock(&mu_);
  for (;;) {
    if (!pending_.empty() && pending_.front().done) break;
    if (pending_.empty() && ended_) return nullptr;
    ready_.Wait(&mu_);
  }
  Pending& front = pending_.front();
  if (front.error != nullptr) std::rethrow_exception(front.error);
  std::unique_ptr<Batch> chunk = std::move(front.chunk);
  delivered_.bytes = front.bytes_claimed;
  delivered_.skipped_rows += front.skipped_rows;
  begin_ = front.begin;
  pending_.pop_front();
  ++first_;
  ready_examples_ -= chunk->examples;
  room_.NotifyAll();
  return chunk;
}

void OrderedReader::Recycle(std::unique_ptr<Batch> chunk) {
  ClearBatch(chunk.get());
  MutexLock lock(&mu_);
  free_.push_back(std::move(chunk));
}

}  // namespace terrace
