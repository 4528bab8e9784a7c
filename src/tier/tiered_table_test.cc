#include "tier/tiered_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tier/disk_page.h"
#include "tier/tiered_testing.h"

namespace terrace {
namespace {

class TieredTableTest : public ::testing::Test {
 protected:
  // Plans, moves and "trains" one batch.
  TablePlan Train(const std::vector<uint64_t>& keys) {
    TablePlan plan = PlanOf(keys);
    const uint32_t stamp = ++done_;
    table().Touch(stamp, true, &plan);
    EXPECT_TRUE(table().Reserve(plan, stamp - 1));
    moves_.clear();
    table().Place(stamp, &plan, &moves_);
    table().EndPart(&moves_);
    test_.Carry(&moves_);
    return plan;
  }
  TieredTable& table() { return test_.table; }

  TestTable test_{SmallTable(4), PolicyKind::kLru, 1};
  RowMoves moves_;
  uint32_t done_ = 0;
};

TEST_F(TieredTableTest, RowsOfABatchThatIsNotTrainedYetStay) {
  table().Start(4, 0, &test_.room);
  Train({1, 2, 3, 4});
  TablePlan later = PlanOf({1, 2, 3});
  table().Touch(3, true, &later);
  TablePlan next = PlanOf({5, 6});
  table().Touch(2, true, &next);
  EXPECT_FALSE(table().Reserve(next, done_));
  EXPECT_EQ(test_.Find(4), 0U);  // it left, for nothing
  for (uint64_t key : {1, 2, 3}) EXPECT_NE(test_.Find(key), 0U);

  table().Forget(3, later);
  EXPECT_TRUE(table().Reserve(next, done_));
  table().Place(2, &next, &moves_);
  EXPECT_EQ(test_.memory.rows(), 4);
}

TEST_F(TieredTableTest, ForgettingABatchLeavesThePinsOfLaterOnes) {
  table().Start(2, 0, &test_.room);
  Train({1, 2});
  TablePlan a = PlanOf({1}), b = PlanOf({1, 2});
  table().Touch(3, true, &b);
  table().Touch(2, true, &a);
  table().Forget(2, a);
  TablePlan next = PlanOf({7});
  table().Touch(4, true, &next);
  EXPECT_FALSE(table().Reserve(next, done_));
  EXPECT_FALSE(table().Reserve(next, 2));
  EXPECT_TRUE(table().Reserve(next, 3));
}

TEST_F(TieredTableTest, RowsThatLeaveAreWrittenAndComeBackAsTheyWere) {
  table().Start(2, 0, &test_.room);
  const TablePlan first = Train({1, 2});
  std::byte* const row =
      test_.memory.base() + first.row_positions[0] * test_.memory.schema().layout.stride;
  std::memset(row, 0x5a, 8);
  const Row expected = test_.RowAt(first.row_positions[0]);
  Train({3, 4});
  EXPECT_EQ(test_.Find(1), 0U);
  EXPECT_EQ(table().stats().written, 2);
  const TablePlan again = Train({1});
  EXPECT_EQ(test_.RowAt(again.row_positions[0]), expected);
  EXPECT_EQ(table().stats().from_disk, 1);
  EXPECT_EQ(table().stats().created, 4);
}

TEST_F(TieredTableTest, EvaluationReadsToGuestsAndEvictsNothing) {
  table().Start(4, 2, &test_.room);
  Train({1, 2});
  Train({3, 4});
  const Row expected = test_.RowAt(test_.Find(3));
  TablePlan eval = PlanOf({1, 3, 9});
  table().Touch(3, false, &eval);
  EXPECT_TRUE(table().ReserveGuests(eval, done_));
  moves_.clear();
  table().PlaceGuests(3, &eval, &moves_);
  table().EndPart(&moves_);
  test_.Carry(&moves_);
  EXPECT_EQ(eval.row_positions[1], test_.Find(3));
  EXPECT_EQ(test_.RowAt(eval.row_positions[1]), expected);
  Row first(expected.size());
  InitRow(test_.memory.schema(), 1, first.data());
  EXPECT_EQ(test_.RowAt(eval.row_positions[0]), first);
  EXPECT_EQ(test_.RowAt(eval.row_positions[2]), Row(expected.size()));  // on no tier
  EXPECT_EQ(test_.Find(1), 0U);
  EXPECT_EQ(test_.Find(9), 0U);
  EXPECT_EQ(table().stats().evicted, 2);  // of training
  EXPECT_EQ(table().stats().eval_evicted, 0);
  EXPECT_EQ(table().stats().eval_reads, 2);
  // Until it is done, another test batch has no room, and takes none from training.
  TablePlan other = PlanOf({10});
  table().Touch(4, false, &other);
  EXPECT_FALSE(table().ReserveGuests(other, 2));
  EXPECT_TRUE(table().ReserveGuests(other, 3));
  EXPECT_EQ(table().stats().evicted, 2);
}

TEST_F(TieredTableTest, ATestBatchLargerThanAllGuestsTakesRowsOfTraining) {
  table().Start(5, 2, &test_.room);
  Train({1, 2, 3});
  TablePlan eval = PlanOf({4, 5, 6, 7});
  table().Touch(2, false, &eval);
  EXPECT_TRUE(table().ReserveGuests(eval, done_));
  moves_.clear();
  table().PlaceGuests(2, &eval, &moves_);
  table().EndPart(&moves_);
  test_.Carry(&moves_);
  EXPECT_EQ(table().stats().eval_evicted, 2);
  EXPECT_EQ(table().stats().written, 2);
  EXPECT_EQ(test_.memory.rows(), 1);
  // What it took is for training again.
  done_ = 2;
  Train({1, 2, 3});
  EXPECT_EQ(test_.memory.rows(), 3);
  EXPECT_EQ(table().stats().from_disk, 2);
  EXPECT_EQ(table().handed_rows(), 5);
}

TEST_F(TieredTableTest, TablesShareRoomUntilItIsGone) {
  TestTable other(SmallTable(4), PolicyKind::kLru, 1);
  test_.room.bytes = 3 * TieredTable::RowBytes(test_.memory.schema());
  table().Start(2, 0, &test_.room);
  other.table.Start(2, 0, &test_.room);
  EXPECT_EQ(table().most_rows(), 5);
  EXPECT_EQ(other.table.most_rows(), 5);
  TablePlan plan = PlanOf({1, 2, 3, 4});
  other.table.Touch(1, true, &plan);
  EXPECT_TRUE(other.table.Reserve(plan, 0));
  EXPECT_EQ(other.table.most_rows(), 5);
  EXPECT_EQ(table().most_rows(), 2);  // its own are nobody else's
  EXPECT_EQ(test_.room.bytes, 0);
}

TEST(TieredTable, MovesAreSortedInTheOrderOfTheDisk) {
  TestTable test(SmallTable(4), PolicyKind::kLru, 8);
  RowMoves moves(1000);
  for (size_t i = 0; i < moves.size(); ++i) {
    moves[i].key = 7 * i + 1;
    moves[i].position = static_cast<uint32_t>(i);
  }
  test.table.Sort(&moves);
  std::set<uint32_t> positions;
  for (size_t i = 0; i < moves.size(); ++i) {
    EXPECT_EQ(moves[i].key, 7 * uint64_t{moves[i].position} + 1);
    EXPECT_TRUE(i == 0 || MixOfKey(moves[i - 1].key) < MixOfKey(moves[i].key));
    positions.insert(moves[i].position);
  }
  EXPECT_EQ(positions.size(), moves.size());
}

TEST(TieredTable, RowsThatAreDueAreNotWrittenWhenTheyLeave) {
  bool due = true;
  TestTable test(SmallTable(4), PolicyKind::kLru, 1,
                 [&due]() -> RowTest { return [&due](const std::byte*) { return due; }; });
  test.table.Start(2, 0, &test.room);
  RowMoves moves;
  uint32_t stamp = 0;
  const auto train = [&](const std::vector<uint64_t>& keys) {
    TablePlan plan = PlanOf(keys);
    test.table.Touch(++stamp, true, &plan);
    EXPECT_TRUE(test.table.Reserve(plan, stamp - 1));
    moves.clear();
    test.table.Place(stamp, &plan, &moves);
    test.table.EndPart(&moves);
    test.Carry(&moves);
    for (uint32_t position : plan.row_positions)
      std::memset(test.memory.base() + position * test.memory.schema().layout.stride, 1, 4);
    return plan.row_positions[0];
  };
  train({1});
  train({2, 3});  // 1 leaves
  EXPECT_EQ(test.table.stats().expired, 1);
  EXPECT_EQ(test.table.stats().written, 0);
  due = false;
  train({4, 5});
  EXPECT_EQ(test.table.stats().written, 2);
  train({1, 2});
  EXPECT_EQ(test.table.stats().created, 6);  // 1 twice
  EXPECT_EQ(test.table.stats().from_disk, 1);
}

}  // namespace
}  // namespace terrace
