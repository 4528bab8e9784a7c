#include "base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/queue.h"

namespace terrace {
namespace {

TEST(Workers, RunEachTaskOnceWhateverTheThreadCount) {
  for (int threads : {1, 2, 3, 5}) {
    Workers workers("test", threads);
    for (int tasks : {0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(tasks);
      workers.Run(tasks, [&](int64_t task, int worker) {
        ASSERT_LT(worker, threads);
        ++runs[task];
      });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Workers, OthersThanTheCallerBeginWithFirst) {
  std::atomic<int> calls{0};
  const auto caller = std::this_thread::get_id();
  {
    Workers workers("test", 4, [&] { calls += std::this_thread::get_id() == caller ? 100 : 1; });
  }
  EXPECT_EQ(calls, 3);
}

TEST(Workers, MayComeTooLateForARound) {
  Workers workers("test", 5);
  std::atomic<int64_t> sum{0};
  for (int64_t round = 1; round <= 5000; ++round)
    workers.Run(2, [&](int64_t task, int) { sum += round * (task + 1); });
  EXPECT_EQ(sum, 3 * 5000 * 5001 / 2);
}

TEST(Workers, RethrowATasksErrorAndStayUsable) {
  Workers workers("test", 3);
  std::atomic<int> ran{0};
  EXPECT_THROW(workers.Run(20,
                           [&](int64_t task, int) {
                             ++ran;
                             if (task == 5) throw Error(ErrorCode::kData, "five");
                           }),
               Error);
  EXPECT_EQ(ran, 20);
  workers.Run(4, [&](int64_t, int) { ++ran; });
  EXPECT_EQ(ran, 24);
}

TEST(BoundedQueue, DeliversInOrderAndWhatWasQueuedBeforeClose) {
  BoundedQueue<int> queue(2);
  std::jthread producer([&] {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.Push(i));
    queue.Close();
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.Pop(), i);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(BoundedQueue, CancelFreesAWaitingProducerAndDropsItems) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.Push(1));
  std::jthread producer([&] { EXPECT_FALSE(queue.Push(2)); });
  queue.Cancel();
  producer.join();
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

}  // namespace
}  // namespace terrace
