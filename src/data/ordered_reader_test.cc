#include "data/ordered_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "data/counting_producer_testing.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;

// Labels of all chunks in the order of delivery.
std::vector<float> Labels(OrderedReader& reader) {
  std::vector<float> labels;
  while (std::unique_ptr<Batch> chunk = reader.Next()) {
    labels.insert(labels.end(), chunk->labels.begin(), chunk->labels.end());
    reader.Recycle(std::move(chunk));
  }
  return labels;
}

std::vector<float> UpTo(int64_t n) {
  std::vector<float> labels(n);
  std::iota(labels.begin(), labels.end(), 0.0f);
  return labels;
}

TEST(OrderedReader, DeliversInOrderWhateverTheThreadCount) {
  for (const int threads : {1, 2, 3, 5}) {
    OrderedReader reader(CountingProducer::Make({3, 0, 5, 1, 1, 0, 7, 2, 4, 4, 4, 4, 4}), threads,
                         0);
    EXPECT_EQ(Labels(reader), UpTo(39)) << threads;
    EXPECT_EQ(reader.Next(), nullptr);
  }
}

TEST(OrderedReader, AChunkThatIsReadyEarlyWaitsForItsTurn) {
  auto producer = CountingProducer::Make({2, 2, 2});
  // The first chunk is not done before the second one is.
  std::atomic<bool> second_done{false};
  producer->before_produce = [&](int64_t chunk) {
    if (chunk == 0) second_done.wait(false);
  };
  producer->after_produce = [&](int64_t chunk) {
    if (chunk != 1) return;
    second_done = true;
    second_done.notify_all();
  };
  OrderedReader reader(std::move(producer), 2, 0);
  EXPECT_EQ(Labels(reader), UpTo(6));
}

TEST(OrderedReader, AFailureComesAfterTheChunksBeforeIt) {
  for (const int threads : {1, 2, 5}) {
    auto producer = CountingProducer::Make({2, 2, 2, 2, 2, 2, 2, 2});
    producer->before_produce = [](int64_t chunk) {
      if (chunk == 3) throw Error(ErrorCode::kData, "bad row in chunk 3");
    };
    OrderedReader reader(std::move(producer), threads, 0);
    for (int chunk = 0; chunk < 3; ++chunk) EXPECT_EQ(reader.Next()->labels[0], 2.0f * chunk);
    EXPECT_EQ(ErrorOf([&] { reader.Next(); }), "bad row in chunk 3");
    EXPECT_EQ(ErrorOf([&] { reader.Next(); }), "bad row in chunk 3");
  }
}

TEST(OrderedReader, AFailedClaimComesInItsPlaceToo) {
  for (const int threads : {1, 2, 5}) {
    auto producer = CountingProducer::Make({2, 2, 2, 2, 2, 2});
    producer->before_claim = [](int64_t chunk) {
      if (chunk == 4) throw Error(ErrorCode::kIo, "disk gone");
    };
    OrderedReader reader(std::move(producer), threads, 0);
    for (int chunk = 0; chunk < 4; ++chunk) EXPECT_EQ(reader.Next()->labels[0], 2.0f * chunk);
    EXPECT_EQ(ErrorOf([&] { reader.Next(); }), "disk gone");
  }
}

TEST(OrderedReader, RunsAheadOnlySoFar) {
  for (const int64_t ahead_examples : {0, 500}) {
    auto producer = CountingProducer::Make(std::vector<int64_t>(10'000, 10));
    CountingProducer* counts = producer.get();
    OrderedReader reader(std::move(producer), 2, ahead_examples);
    for (int64_t taken = 1; taken <= 100; ++taken) {
      reader.Recycle(reader.Next());
      // 2 * threads + 2 chunks, or the examples asked for and one chunk a thread.
      EXPECT_LE(counts->claimed.load(), taken + std::max<int64_t>(6, ahead_examples / 10 + 2));
    }
  }
}

TEST(OrderedReader, FillsTheReadAheadWithoutBeingAsked) {
  auto producer = CountingProducer::Make(std::vector<int64_t>(1000, 10));
  CountingProducer* counts = producer.get();
  OrderedReader reader(std::move(producer), 2, 500);
  for (int64_t made = counts->produced.load(); made < 50; made = counts->produced.load())
    counts->produced.wait(made);
  EXPECT_GE(counts->produced.load(), 50);
}

TEST(OrderedReader, CanBeDestroyedAtAnyTime) {
  for (int taken = 0; taken < 20; ++taken) {
    OrderedReader reader(CountingProducer::Make(std::vector<int64_t>(1000, 1)), 3, 100);
    for (int i = 0; i < taken; ++i) reader.Next();
  }
}

TEST(OrderedReader, NoWorkIsAnEnd) {
  OrderedReader reader(CountingProducer::Make({}), 4, 0);
  EXPECT_EQ(reader.Next(), nullptr);
}

}  // namespace
}  // namespace terrace
