#include "data/shuffle_buffer.h"

#include <algorithm>
#include <span>
#include <utility>

namespace terrace {

ShuffleBuffer::ShuffleBuffer(OrderedReader* reader, ShuffleOptions options)
    : reader_(reader), options_(options), random_(0, 0) {}

int64_t ShuffleBuffer::Take(int64_t count, Batch* to) {
  if (options_.examples == 0) {
    if ((chunks_.empty() || used_of_last_ == chunks_.back()->examples) && !NextChunk()) return 0;
    const Batch& chunk = *chunks_.back();
    const int64_t end = std::min(chunk.examples, used_of_last_ + count);
    AppendExamples(chunk, used_of_last_, end, to);
    return end - std::exchange(used_of_last_, end);
  }
  const auto size = [this] { return static_cast<int64_t>(order_.size()); };
  if (taken_ == size() && !FillBlock()) return 0;
  const int64_t end = std::min(size(), taken_ + count);
  // Fisher-Yates, a batch at a time: a large block causes no pause.
  for (int64_t i = taken_; i < end; ++i)
    std::swap(order_[i], order_[i + BelowN(random_.Next(), size() - i)]);
  GatherExamples(chunks_, std::span(order_).subspan(taken_, end - taken_), to);
  return end - std::exchange(taken_, end);
}

bool ShuffleBuffer::NextChunk() {
  for (;;) {
    std::unique_ptr<Batch> chunk = reader_->Next();
    if (chunk == nullptr) return false;
    if (chunk->examples == 0) {
      reader_->Recycle(std::move(chunk));
      continue;
    }
    if (options_.examples == 0) {
      for (std::unique_ptr<Batch>& old : chunks_) reader_->Recycle(std::move(old));
      chunks_.clear();
    }
    chunks_.push_back(std::move(chunk));
    used_of_last_ = 0;
    return true;
  }
}

bool ShuffleBuffer::FillBlock() {
  // The last chunk may hold the first examples of the new block.
  const size_t spent = chunks_.empty() || used_of_last_ < chunks_.back()->examples
                           ? std::max<size_t>(chunks_.size(), 1) - 1
                           : chunks_.size();
  for (size_t i = 0; i < spent; ++i) reader_->Recycle(std::move(chunks_[i]));
  chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<int64_t>(spent));
  order_.clear();
  taken_ = 0;
  int64_t wanted = options_.examples;
  while (wanted > 0) {
    if ((chunks_.empty() || used_of_last_ == chunks_.back()->examples) && !NextChunk()) break;
    const int64_t end = std::min(chunks_.back()->examples, used_of_last_ + wanted);
    for (int64_t i = used_of_last_; i < end; ++i)
      order_.push_back({static_cast<uint32_t>(chunks_.size() - 1), static_cast<uint32_t>(i)});
    wanted -= end - used_of_last_;
    used_of_last_ = end;
  }
  random_ = RandomStream(RandomBits(options_.seed, options_.epoch), blocks_++);
  return !order_.empty();
}

}  // namespace terrace
