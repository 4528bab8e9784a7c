#include "base/ordered_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace terrace {
namespace {

TEST(OrderedQueue, DeliversByNumberWhateverTheOrderOfArrival) {
  OrderedQueue<int> queue(4);
  for (int i : {2, 0, 3, 1}) EXPECT_TRUE(queue.Push(static_cast<uint64_t>(i), 10 * i));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.Pop(), 10 * i);
}

TEST(OrderedQueue, DeliversWhatIsQueuedAfterClose) {
  OrderedQueue<int> queue(4);
  EXPECT_TRUE(queue.Push(0, 7));
  EXPECT_TRUE(queue.Push(2, 9));
  queue.Close();
  EXPECT_FALSE(queue.Push(1, 8));
  EXPECT_EQ(queue.Pop(), 7);
  EXPECT_EQ(queue.Pop(), std::nullopt);  // number 1 never came
}

TEST(OrderedQueue, CancelFreesBothSidesAndDropsItems) {
  OrderedQueue<std::shared_ptr<int>> queue(1);
  auto item = std::make_shared<int>(1);
  EXPECT_TRUE(queue.Push(0, item));
  std::jthread producer([&] { EXPECT_FALSE(queue.Push(1, nullptr)); });
  queue.Cancel();
  producer.join();
  EXPECT_EQ(item.use_count(), 1);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(OrderedQueue, KeepsOrderUnderManyProducers) {
  constexpr uint64_t kItems = 20'000;
  OrderedQueue<uint64_t> queue(3);
  std::atomic<uint64_t> next{0};
  std::vector<std::jthread> producers;
  for (int t = 0; t < 4; ++t)
    producers.emplace_back([&] {
      for (uint64_t n = next++; n < kItems; n = next++) ASSERT_TRUE(queue.Push(n, n * n));
    });
  for (uint64_t n = 0; n < kItems; ++n) ASSERT_EQ(queue.Pop(), n * n);
}

}  // namespace
}  // namespace terrace
