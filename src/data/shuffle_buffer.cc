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
    DrawUpTo(end);
    GatherExamples(chunks_, std::span(order_).subspan(taken_, end - taken_), to);
  }
  return end - std::exchange(taken_, end);
}

// Fisher-Yates, a batch at a time: a large block causes no pause.
void ShuffleBuffer::DrawUpTo(int64_t end) {
  for (int64_t i = taken_; i < end; ++i)
    std::swap(order_[i], order_[i + BelowN(random_.Next(), size_ - i)]);
}

BlockPosition ShuffleBuffer::position() const {
  BlockPosition position = begin_;
  position.taken = taken_;
  position.ended = ended_;
  return position;
}

bool ShuffleBuffer::GoTo(const BlockPosition& position) {
  if (position.size > 0 && !Refill(position)) return false;
  // Counts what lies behind the last examples. A chunk that was added since is for the next block.
  if (position.ended && AllUsed()) AddChunk();
  end_bytes_ = BytesUsed();
  return true;
}

bool ShuffleBuffer::Refill(const BlockPosition& position) {
  begin_ = position;
  blocks_ = position.number;
  if (options_.examples == 0) {
    // What is a chunk now may be another than it was then.
    if (!PassOver(position.passed + position.taken)) return false;
    size_ = chunks_[0]->examples;
    taken_ = std::exchange(used_of_last_, size_);
    begin_.passed = 0;
  } else {
    if (!PassOver(position.passed)) return false;
    begin_.passed = chunks_.empty() ? 0 : used_of_last_;
    // Not options_.examples: the data may have had no more, and have more now.
    size_ = FillOrder(position.size);
    if (size_ < position.size) return false;
    DrawUpTo(position.taken);
    taken_ = position.taken;
  }
  ++blocks_;
  begin_.chunk = first_.begin;
  begin_.before = first_.before;
  begin_.size = size_;
  begin_.last_file = last_.begin.file;
  return true;
}

bool ShuffleBuffer::PassOver(int64_t examples) {
  while (examples > 0) {
    if (AllUsed()) {
      RecycleSpentChunks();
      if (!AddChunk()) return false;
    }
    const int64_t end = std::min(chunks_[0]->examples, used_of_last_ + examples);
    examples -= end - std::exchange(used_of_last_, end);
  }
  return true;
}

double ShuffleBuffer::bytes_taken() const {
  if (taken_ == size_) return end_bytes_;
  const double share = static_cast<double>(taken_) / static_cast<double>(size_);
  return begin_.bytes + (end_bytes_ - begin_.bytes) * share;
}

double ShuffleBuffer::BytesUsed() const {
  const auto delivered = static_cast<double>(reader_->delivered().bytes);
  if (AllUsed()) return delivered;
  const auto begin = static_cast<double>(last_.before.bytes);
  const double share =
      static_cast<double>(used_of_last_) / static_cast<double>(chunks_.back()->examples);
  return begin + (delivered - begin) * share;
}

bool ShuffleBuffer::NextBlock() {
  RecycleSpentChunks();
  const int64_t passed = chunks_.empty() ? 0 : used_of_last_;
  int64_t size = 0;
  if (options_.examples > 0)
    size = FillOrder(options_.examples);
  else if (!AllUsed() || AddChunk())
    size = used_of_last_ = chunks_[0]->examples;
  const double begin_bytes = std::exchange(end_bytes_, BytesUsed());
  if (size == 0) return false;
  size_ = size;
  taken_ = 0;
  begin_ = {.chunk = first_.begin,
            .before = first_.before,
            .passed = passed,
            .number = blocks_++,
            .size = size,
            .last_file = last_.begin.file,
            .bytes = begin_bytes};
  return true;
}

void ShuffleBuffer::RecycleSpentChunks() {
  // The last chunk may hold the first examples of the next block.
  const auto spent = chunks_.end() - (AllUsed() ? 0 : 1);
  for (auto chunk = chunks_.begin(); chunk != spent; ++chunk) reader_->Recycle(std::move(*chunk));
  chunks_.erase(chunks_.begin(), spent);
  first_ = last_;
}

bool ShuffleBuffer::AddChunk() {
  const int64_t begin_bytes = reader_->delivered().bytes;
  for (;;) {
    const int64_t skipped_rows = reader_->delivered().skipped_rows;
    std::unique_ptr<Batch> chunk = reader_->Next();
    if (chunk == nullptr) {
      ended_ = true;
      return false;
    }
    if (chunk->examples == 0) {
      reader_->Recycle(std::move(chunk));
      continue;
    }
    last_ = {reader_->begin(), {begin_bytes, skipped_rows}};
    if (chunks_.empty()) first_ = last_;
    chunks_.push_back(std::move(chunk));
    used_of_last_ = 0;
    return true;
  }
}

int64_t ShuffleBuffer::FillOrder(int64_t wanted) {
  order_.clear();
  random_ = RandomStream(RandomBits(options_.seed, options_.epoch), blocks_);
  while (wanted > 0 && (!AllUsed() || AddChunk())) {
    const int64_t end = std::min(chunks_.back()->examples, used_of_last_ + wanted);
    for (int64_t i = used_of_last_; i < end; ++i)
      order_.push_back({static_cast<uint32_t>(chunks_.size() - 1), static_cast<uint32_t>(i)});
    wanted -= end - std::exchange(used_of_last_, end);
  }
  return static_cast<int64_t>(order_.size());
}

}  // namespace terrace
