#include "train/release_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {
namespace {

constexpr int64_t kMoves = 100'000;

// How many batches go in a row.
int64_t ReleaseAll(ReleasePace* pace, int64_t most, double now) {
  int64_t released = 0;
  while (released < most && pace->Release(now)) ++released;
  return released;
}

// One window of ten batches is there, after a pull of so many seconds that ended at 100 s.
ReleasePace Pulled(double pull_seconds, double plan_seconds = 0) {
  ReleasePace pace;
  pace.BeginPull(kMoves, plan_seconds, 100 - pull_seconds);
  pace.Pulled(kMoves);
  pace.EndPull(10, 100);
  return pace;
}

// And the next one is pulled from then on.
ReleasePace Pulling(double pull_seconds) {
  ReleasePace pace = Pulled(pull_seconds);
  pace.BeginPull(kMoves, 0, 100);
  return pace;
}

TEST(ReleasePace, BatchesGoAsTheRowsOfTheNextWindowArrive) {
  ReleasePace pace = Pulling(4);
  int64_t released = ReleaseAll(&pace, 10, 100);
  EXPECT_EQ(released, 1);  // nothing went for long
  pace.Pulled(1);
  EXPECT_FALSE(pace.Release(100.1));
  for (int part = 1; part <= 10; ++part) {
    pace.Pulled(kMoves / 10);
    released += ReleaseAll(&pace, 10 - released, 100 + 0.39 * part);
    EXPECT_EQ(released, part);
  }
}

TEST(ReleasePace, ManyMayBeAFifthOfASecondAhead) {
  for (const auto& [pull_seconds, released] : {std::pair{0.1, 10}, {0.2, 10}, {0.5, 4}, {1.0, 2}}) {
    ReleasePace pace = Pulling(pull_seconds);
    EXPECT_EQ(ReleaseAll(&pace, 10, 100), released) << pull_seconds;
  }
}

TEST(ReleasePace, OneBatchAloneGoesAtOnce) {
  ReleasePace pace = Pulled(4);
  pace.BeginPull(kMoves, 0, 100);
  pace.Pulled(kMoves);
  EXPECT_EQ(ReleaseAll(&pace, 10, 104), 10);
  pace.EndPull(1, 104);
  EXPECT_TRUE(pace.Release(104));
}

TEST(ReleasePace, APullThatTurnsOutToBeLongIsNoticed) {
  ReleasePace pace = Pulling(0.5);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 4);
  pace.Pulled(kMoves / 5);  // in 0.39 s: the others may take 1.5
  EXPECT_EQ(ReleaseAll(&pace, 5, 100.39), 0);
}

TEST(ReleasePace, PausesOfAPullAreNotCounted) {
  ReleasePace pace = Pulling(4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 1);
  pace.Pulled(kMoves / 2);
  pace.Pause(102);
  EXPECT_EQ(ReleaseAll(&pace, 10, 102), 4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 102.5), 0);  // no more rows came
  pace.GoOn(110);
  pace.Pulled(kMoves / 2);
  pace.EndPull(10, 112);
  pace.BeginPull(kMoves, 0, 112);
  EXPECT_EQ(ReleaseAll(&pace, 10, 112), 5);  // those of the window before
  pace.Pulled(kMoves / 2);
  EXPECT_EQ(ReleaseAll(&pace, 10, 114), 5);  // 4 s are expected, not 12
}

TEST(ReleasePace, BetweenPullsBatchesGoAtTheExpectedPace) {
  ReleasePace pace = Pulled(4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 1);
  EXPECT_EQ(ReleaseAll(&pace, 9, 100.3), 0);
  EXPECT_EQ(ReleaseAll(&pace, 9, 100.6), 1);
  pace.BeginPull(kMoves, 0, 100.6);  // eight are left for this one
  EXPECT_EQ(ReleaseAll(&pace, 8, 100.6), 0);
  pace.Pulled(kMoves / 2);
  EXPECT_EQ(ReleaseAll(&pace, 8, 101), 4);
}

TEST(ReleasePace, BetweenPullsALongPlanIsExpected) {
  ReleasePace pace = Pulled(0.1, 0.9);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 2);
  EXPECT_EQ(ReleaseAll(&pace, 8, 100.4), 4);
  pace.BeginPull(kMoves, 0.9, 100.8);  // planned: what is left waits for rows alone
  EXPECT_EQ(ReleaseAll(&pace, 4, 100.8), 4);
}

TEST(ReleasePace, NothingWaitsWhereNoWindowComes) {
  ReleasePace pace = Pulled(4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 1);
  pace.Finish();
  EXPECT_EQ(ReleaseAll(&pace, 9, 100), 9);
}

TEST(ReleasePace, NothingWaitsBehindAWindowThatIsThere) {
  ReleasePace pace = Pulling(4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 1);
  pace.Pulled(kMoves);
  pace.EndPull(5, 104);
  EXPECT_EQ(ReleaseAll(&pace, 14, 104), 9);  // those left of the first window
}

TEST(ReleasePace, WhereNoRowsArriveABatchGoesNowAndThen) {
  ReleasePace pace = Pulling(4);
  EXPECT_EQ(ReleaseAll(&pace, 10, 100), 1);
  EXPECT_EQ(ReleaseAll(&pace, 9, 100.7), 0);
  EXPECT_EQ(ReleaseAll(&pace, 9, 100.9), 1);
  EXPECT_EQ(ReleaseAll(&pace, 8, 101.6), 0);
  EXPECT_EQ(ReleaseAll(&pace, 8, 101.8), 1);
}

TEST(ReleasePace, TheFirstWindowAndOnesOfFewMovesSayNothing) {
  ReleasePace first;
  first.BeginPull(kMoves, 0, 100);
  EXPECT_TRUE(first.Release(100));
  ReleasePace pace;
  pace.BeginPull(10, 0, 100);
  pace.EndPull(3, 101);  // a slow moment
  pace.BeginPull(kMoves, 0, 101);
  EXPECT_EQ(ReleaseAll(&pace, 3, 101), 3);
}

}  // namespace
}  // namespace terrace
