#include "train/release_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace terrace {
namespace {

constexpr int64_t kMoves = 100'000;

// How many batches go in a row.
int64_t ReleaseAll(ReleasePace* pace, int64_t most) {
  int64_t released = 0;
  while (released < most && pace->Release()) ++released;
  return released;
}

// One window of ten batches is there, and the next one is being pulled, at a pace that is known.
ReleasePace Pulling(double pull_seconds, double train_seconds) {
  ReleasePace pace;
  pace.BeginPull(kMoves);
  pace.Pulled(kMoves);
  pace.EndPull(pull_seconds, train_seconds);
  pace.Arrived(10);
  pace.BeginPull(kMoves);
  return pace;
}

TEST(ReleasePace, BatchesGoAsTheRowsOfTheNextWindowArrive) {
  ReleasePace pace = Pulling(4, 0.1);
  int64_t released = ReleaseAll(&pace, 10);
  EXPECT_EQ(released, 1);
  pace.Pulled(1);
  EXPECT_FALSE(pace.Release());
  for (int part = 1; part <= 10; ++part) {
    pace.Pulled(kMoves / 10);
    released += ReleaseAll(&pace, 10 - released);
    EXPECT_EQ(released, std::min(part + 1, 10));
  }
}

TEST(ReleasePace, NothingWaitsWhereTrainingWouldPauseBrieflyOrNotAtAll) {
  for (const double pull_seconds : {0.5, 1.0, 1.3}) {
    ReleasePace pace = Pulling(pull_seconds, 0.1);
    EXPECT_EQ(ReleaseAll(&pace, 10), 10) << pull_seconds;
  }
}

TEST(ReleasePace, NothingWaitsBehindAWindowThatIsThere) {
  ReleasePace pace = Pulling(4, 0.1);
  EXPECT_EQ(ReleaseAll(&pace, 10), 1);
  pace.Pulled(kMoves);
  pace.EndPull(4, 0.1);
  pace.Arrived(5);
  EXPECT_EQ(ReleaseAll(&pace, 14), 14);
}

TEST(ReleasePace, BatchesThatAreLeftAreSpreadOverTheWholeOfTheNextPull) {
  ReleasePace pace = Pulling(4, 0.1);
  pace.Pulled(kMoves);
  EXPECT_EQ(ReleaseAll(&pace, 4), 4);
  pace.EndPull(4, 0.1);
  pace.Arrived(2);  // eight wait
  pace.BeginPull(kMoves);
  pace.Pulled(kMoves / 2);
  EXPECT_EQ(ReleaseAll(&pace, 8), 5);
}

TEST(ReleasePace, TheFirstWindowAndOnesOfFewMovesSayNothing) {
  ReleasePace first;
  first.BeginPull(kMoves);
  first.Arrived(3);
  EXPECT_EQ(ReleaseAll(&first, 3), 3);
  ReleasePace pace;
  pace.BeginPull(10);
  pace.EndPull(1, 0.1);  // a slow moment
  pace.Arrived(3);
  pace.BeginPull(kMoves);
  EXPECT_EQ(ReleaseAll(&pace, 3), 3);
}

}  // namespace
}  // namespace terrace
