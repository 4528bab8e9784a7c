#include "data/shuffle_buffer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "data/counting_producer_testing.h"

namespace terrace {
namespace {

// The numbers of the examples in the order they come out, taken `take` at a time.
std::vector<uint64_t> Order(const std::vector<int64_t>& chunks, int threads, ShuffleOptions options,
                            int64_t take) {
  OrderedReader reader(CountingProducer::Make(chunks), threads, options.examples);
  ShuffleBuffer buffer(&reader, options);
  Batch all = MakeBatch(reader.producer().shape());
  while (buffer.Take(take, &all) > 0) {
  }
  // Labels and keys have to have moved together.
  for (int64_t i = 0; i < all.examples; ++i)
    EXPECT_EQ(all.labels[i], static_cast<float>(all.groups[0].keys[i]));
  return all.groups[0].keys;
}

std::vector<uint64_t> UpTo(int64_t n) {
  std::vector<uint64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(ShuffleBuffer, FileOrderWithoutShuffle) {
  EXPECT_EQ(Order({3, 0, 5, 1, 7}, 2, {}, 4), UpTo(16));
}

TEST(ShuffleBuffer, OrderDependsOnSeedEpochAndBlockSizeAlone) {
  const ShuffleOptions options{.examples = 10, .seed = 5, .epoch = 1};
  const std::vector<uint64_t> expected = Order({37}, 1, options, 37);
  for (const int threads : {1, 2, 3, 5})
    for (const int64_t take : {1, 3, 100})
      for (const auto& chunks : {std::vector<int64_t>{1, 9, 10, 17}, {0, 35, 0, 2}, {12, 12, 13}})
        EXPECT_EQ(Order(chunks, threads, options, take), expected);
}

TEST(ShuffleBuffer, EachBlockIsAPermutationOfItsExamples) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    const auto chunks = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange(0, 20));
    const auto block = *rc::gen::inRange<int64_t>(1, 50);
    std::vector<uint64_t> order = Order(chunks, 2, {.examples = block, .seed = seed}, 7);
    const int64_t total = std::accumulate(chunks.begin(), chunks.end(), int64_t{0});
    RC_ASSERT(static_cast<int64_t>(order.size()) == total);
    for (int64_t begin = 0; begin < total; begin += block)
      std::sort(order.begin() + begin, order.begin() + std::min(total, begin + block));
    RC_ASSERT(order == UpTo(total));
  }));
}

TEST(ShuffleBuffer, SeedEpochAndBlockChangeTheOrder) {
  const std::vector<int64_t> chunks = {100, 100};
  const auto first = Order(chunks, 1, {.examples = 100, .seed = 1, .epoch = 0}, 10);
  EXPECT_NE(first, UpTo(200));
  EXPECT_NE(first, Order(chunks, 1, {.examples = 100, .seed = 2, .epoch = 0}, 10));
  EXPECT_NE(first, Order(chunks, 1, {.examples = 100, .seed = 1, .epoch = 1}, 10));
  std::vector<uint64_t> second_block(first.begin() + 100, first.end());
  for (uint64_t& number : second_block) number -= 100;
  EXPECT_NE(std::vector<uint64_t>(first.begin(), first.begin() + 100), second_block);
}

// Each example is as likely to come first as any other.
TEST(ShuffleBuffer, EveryOrderHasItsChance) {
  std::vector<int> first(6, 0);
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    OrderedReader reader(CountingProducer::Make({6}), 1, 6);
    ShuffleBuffer buffer(&reader, {.examples = 6, .seed = seed});
    Batch batch = MakeBatch(reader.producer().shape());
    buffer.Take(1, &batch);
    ++first[batch.groups[0].keys[0]];
  }
  // 200 each, with a standard deviation of 13.
  for (const int count : first) EXPECT_NEAR(count, 200, 65);
}

}  // namespace
}  // namespace terrace
