#include "data/shuffle_buffer.h"

#include <algorithm>
#include <span>
#include <utility>

namespace terrace {

ShuffleBuffer::ShuffleBuffer(OrderedReader* reader, ShuffleOptions options)
    : reader_(reader), options_(options), random_(0, 0) {}

int64_t ShuffleBuffer::Take(int64_t count, Batch* to) {
  if (taken_ == size_ && !NextBlock()) return 0;
  const int64_t end = std::min(size_, taken_ + count);
  if (options_.examples == 0) {
    AppendExamples(*chunks_[0], taken_, end, to);
  } else {
    // Fisher-Yates, a batch at a time: a large block causes no pause.
    for (int64_t i = taken_; i < end; ++i)
      std::swap(order_[i], order_[i + BelowN(random_.Next(), size_ - i)]);
    GatherExamples(chunks_, std::span(order_).subspan(taken_, end - taken_), to);
  }
  return end - std::exchange(taken_, end);
}

double ShuffleBuffer::bytes_taken() const {
  if (taken_ == size_) return end_bytes_;
  const double share = static_cast<double>(taken_) / static_cast<double>(size_);
  return begin_bytes_ + (end_bytes_ - begin_bytes_) * share;
}

double ShuffleBuffer::BytesUsed() const {
  const auto delivered = static_cast<double>(reader_->bytes_delivered());
  if (AllUsed()) return delivered;
  const double share =
      static_cast<double>(used_of_last_) / static_cast<double>(chunks_.back()->examples);
  return last_begin_bytes_ + (delivered - last_begin_bytes_) * share;
}

bool ShuffleBuffer::NextBlock() {
  RecycleSpentChunks();
  if (options_.examples > 0) {
    FillOrder();
    size_ = static_cast<int64_t>(order_.size());
  } else {
    size_ = used_of_last_ = AddChunk() ? chunks_[0]->examples : 0;
  }
  taken_ = 0;
  begin_bytes_ = std::exchange(end_bytes_, BytesUsed());
  return size_ > 0;
}

void ShuffleBuffer::RecycleSpentChunks() {
  // The last chunk may hold the first examples of the next block.
  const auto spent = chunks_.end() - (AllUsed() ? 0 : 1);
  for (auto chunk = chunks_.begin(); chunk != spent; ++chunk) reader_->Recycle(std::move(*chunk));
  chunks_.erase(chunks_.begin(), spent);
}

bool ShuffleBuffer::AddChunk() {
  last_begin_bytes_ = static_cast<double>(reader_->bytes_delivered());
  while (std::unique_ptr<Batch> chunk = reader_->Next()) {
    if (chunk->examples == 0) {
      reader_->Recycle(std::move(chunk));
      continue;
    }
    chunks_.push_back(std::move(chunk));
    used_of_last_ = 0;
    return true;
  }
  return false;
}

void ShuffleBuffer::FillOrder() {
  order_.clear();
  random_ = RandomStream(RandomBits(options_.seed, options_.epoch), blocks_++);
  for (int64_t wanted = options_.examples; wanted > 0;) {
    if (AllUsed() && !AddChunk()) return;
    const int64_t end = std::min(chunks_.back()->examples, used_of_last_ + wanted);
    for (int64_t i = used_of_last_; i < end; ++i)
      order_.push_back({static_cast<uint32_t>(chunks_.size() - 1), static_cast<uint32_t>(i)});
    wanted -= end - std::exchange(used_of_last_, end);
  }
}

}  // namespace terrace
