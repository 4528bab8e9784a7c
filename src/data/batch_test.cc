#include "data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "base/random.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

BatchShape ShapeWithAll() {
  BatchShape shape;
  shape.group_slots = {2, 1};
  shape.dense_columns = 3;
  shape.has_values = shape.has_weights = shape.has_group_ids = true;
  shape.has_timestamps = shape.has_truth = true;
  return shape;
}

// Random bags of 0 to 3 keys, everything numbered so that no two examples are alike.
Batch RandomBatch(const BatchShape& shape, int64_t examples, uint64_t seed) {
  RandomStream random(seed, 1);
  Batch batch = MakeBatch(shape);
  batch.examples = examples;
  for (int64_t e = 0; e < examples; ++e) {
    for (KeyGroup& group : batch.groups) {
      for (int s = 0; s < group.slots; ++s) {
        for (uint64_t n = random.Next() % 4; n > 0; --n) {
          group.keys.push_back(random.Next());
          if (shape.has_values) group.values.push_back(UnitFloat(random.Next()));
        }
        group.offsets.push_back(static_cast<uint32_t>(group.keys.size()));
      }
    }
    for (int c = 0; c < shape.dense_columns; ++c) batch.dense.push_back(UnitFloat(random.Next()));
    batch.labels.push_back(UnitFloat(random.Next()));
    if (shape.has_weights) batch.weights.push_back(UnitFloat(random.Next()));
    if (shape.has_group_ids) batch.group_ids.push_back(random.Next());
    if (shape.has_timestamps) batch.timestamps.push_back(static_cast<int64_t>(random.Next()));
    if (shape.has_truth) batch.truth.push_back(UnitFloat(random.Next()));
  }
  return batch;
}

TEST(Batch, StartsEmptyWithLeadingOffsets) {
  const Batch batch = MakeBatch(ShapeWithAll());
  EXPECT_EQ(batch.examples, 0);
  ASSERT_EQ(batch.groups.size(), 2u);
  EXPECT_EQ(batch.groups[0].slots, 2);
  EXPECT_THAT(batch.groups[1].offsets, ElementsAre(0));
  EXPECT_EQ(batch.dense_columns, 3);
}

TEST(Batch, ClearForgetsExamplesAndKeepsShapeAndMemory) {
  Batch batch = RandomBatch(ShapeWithAll(), 20, 1);
  const int64_t bytes = BatchBytes(batch);
  ClearBatch(&batch);
  EXPECT_TRUE(SameExamples(batch, MakeBatch(ShapeWithAll())));
  EXPECT_EQ(BatchBytes(batch), bytes);
}

TEST(Batch, AppendingPiecesGivesTheWhole) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    BatchShape shape = ShapeWithAll();
    shape.has_values = *rc::gen::arbitrary<bool>();
    shape.has_weights = *rc::gen::arbitrary<bool>();
    const auto examples = *rc::gen::inRange<int64_t>(0, 30);
    const Batch whole = RandomBatch(shape, examples, seed);
    Batch pieces = MakeBatch(shape);
    for (int64_t begin = 0; begin < examples;) {
      const auto end = *rc::gen::inRange<int64_t>(begin + 1, examples + 1);
      AppendExamples(whole, begin, end, &pieces);
      begin = end;
    }
    RC_ASSERT(SameExamples(pieces, whole));
  }));
}

TEST(Batch, GatheringEqualsAppendingOneByOne) {
  EXPECT_TRUE(rc::check([](uint64_t seed) {
    BatchShape shape = ShapeWithAll();
    shape.has_values = *rc::gen::arbitrary<bool>();
    std::vector<std::unique_ptr<Batch>> from;
    std::vector<ExampleRef> refs;
    for (uint32_t b = 0; b < 3; ++b) {
      from.push_back(std::make_unique<Batch>(RandomBatch(shape, 1 + 5 * b, seed + b)));
      for (uint32_t e = 0; e < from[b]->examples; ++e) refs.push_back({b, e});
    }
    std::rotate(refs.begin(), refs.begin() + seed % refs.size(), refs.end());
    Batch gathered = MakeBatch(shape);
    Batch appended = MakeBatch(shape);
    // In two parts, so that the second starts from a batch that holds something.
    GatherExamples(from, std::span(refs).first(4), &gathered);
    GatherExamples(from, std::span(refs).subspan(4), &gathered);
    for (const ExampleRef& ref : refs)
      AppendExamples(*from[ref.batch], ref.example, ref.example + 1, &appended);
    RC_ASSERT(SameExamples(gathered, appended));
  }));
}

TEST(Batch, GatherKeepsValuesIfTheFirstBatchHasNoKeys) {
  BatchShape shape;
  shape.group_slots = {1};
  shape.has_values = true;
  std::vector<std::unique_ptr<Batch>> from;
  from.push_back(std::make_unique<Batch>(MakeBatch(shape)));
  from[0]->examples = 1;
  from[0]->groups[0].offsets = {0, 0};
  from[0]->labels = {0};
  from.push_back(std::make_unique<Batch>(MakeBatch(shape)));
  from[1]->examples = 1;
  from[1]->groups[0] = {1, {42}, {0, 1}, {0.5f}};
  from[1]->labels = {1};
  Batch to = MakeBatch(shape);
  const ExampleRef refs[] = {{0, 0}, {1, 0}};
  GatherExamples(from, refs, &to);
  EXPECT_THAT(to.groups[0].values, ElementsAre(0.5f));
  EXPECT_THAT(to.groups[0].offsets, ElementsAre(0, 0, 1));
  EXPECT_THAT(to.weights, IsEmpty());
}

TEST(Batch, AppendRefusesARangeOutsideTheBatch) {
  const Batch batch = RandomBatch(ShapeWithAll(), 3, 1);
  Batch to = MakeBatch(ShapeWithAll());
  EXPECT_THROW(AppendExamples(batch, 1, 4, &to), Error);
}

TEST(Batch, BagsThatAllHaveAsManyKeysAreFoundAndMadeAgain) {
  const auto keys_of_each = [](std::vector<uint32_t> offsets) {
    KeyGroup group;
    group.offsets = std::move(offsets);
    return KeysOfEachBag(group);
  };
  EXPECT_EQ(keys_of_each({0, 1, 2, 3}), 1U);
  EXPECT_EQ(keys_of_each({0, 5, 10}), 5U);
  EXPECT_EQ(keys_of_each({0, 1, 3}), 0U);
  EXPECT_EQ(keys_of_each({0, 2, 2, 3}), 0U);  // as many keys as bags
  EXPECT_EQ(keys_of_each({0, 0, 0}), 0U);
  EXPECT_EQ(keys_of_each({0}), 0U);
  std::vector<uint32_t> offsets = {7, 7};
  FillOffsets(3, 5, &offsets);
  EXPECT_THAT(offsets, ElementsAre(0, 5, 10, 15));
}

}  // namespace
}  // namespace terrace
