// A producer for tests: chunks of given sizes whose labels count up from 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "data/chunk_producer.h"

namespace terrace {

class CountingProducer : public ChunkProducer {
 public:
  static std::unique_ptr<CountingProducer> Make(std::vector<int64_t> sizes) {
    return std::make_unique<CountingProducer>(std::move(sizes));
  }
  explicit CountingProducer(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {
    shape_.group_slots = {1};
  }

  // Called with the number of the chunk; may throw or wait.
  std::function<void(int64_t)> before_claim = [](int64_t) {};
  std::function<void(int64_t)> before_produce = [](int64_t) {};
  std::function<void(int64_t)> after_produce = [](int64_t) {};
  std::atomic<int64_t> claimed{0};
  std::atomic<int64_t> produced{0};

  const BatchShape& shape() const override { return shape_; }
  std::unique_ptr<ChunkWork> Claim() override {
    before_claim(claimed);
    if (claimed == static_cast<int64_t>(sizes_.size())) return nullptr;
    auto work = std::make_unique<Range>();
    work->chunk = claimed++;
    work->begin = next_example_;
    work->end = next_example_ += sizes_[work->chunk];
    return work;
  }
  void Produce(ChunkWork& work, Batch* chunk) override {
    const auto& range = static_cast<const Range&>(work);
    before_produce(range.chunk);
    for (int64_t i = range.begin; i < range.end; ++i) {
      chunk->labels.push_back(static_cast<float>(i));
      chunk->groups[0].keys.push_back(static_cast<uint64_t>(i));
      chunk->groups[0].offsets.push_back(static_cast<uint32_t>(chunk->groups[0].keys.size()));
    }
    chunk->examples = range.end - range.begin;
    after_produce(range.chunk);
    ++produced;
    produced.notify_all();
  }

 private:
  struct Range : ChunkWork {
    int64_t chunk = 0;
    int64_t begin = 0;
    int64_t end = 0;
  };

  const std::vector<int64_t> sizes_;
  BatchShape shape_;
  int64_t next_example_ = 0;
};

}  // namespace terrace
