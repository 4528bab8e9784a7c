#include "train/window_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_page.h"
#include "train/tier_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A planner of one table. Training is as far as the planner asks it to be.
class Planned {
 public:
  Planned(const WindowLimits& limits, int64_t own_rows, int64_t guests) {
    TableConfig config;
    config.dim = 4;
    const TableSchema schema = TableSchema::Make("ads", config, true, 1);
    memory_ = std::make_unique<MemoryTier>(schema);
    DiskOptions options;
    options.durability = Durability::kScratch;
    options.row_bytes = TieredTable::DiskRowBytes(schema);
    options.memory_bytes = 6 << 20;
    options.partitions = 1;
    options.batch_keys = 1024;
    table_ = std::make_unique<TieredTable>(
        memory_.get(), DiskStore::Open(dir_.path() + "/ads", options), PolicyKind::kLru);
    table_->Start(own_rows, guests, &room_);
    WindowPlanner::Progress progress;
    progress.done = [this] { return done; };
    progress.wait = [this](uint32_t stamp) {
      if (stamp > done) waits.push_back(stamp);
      done = std::max(done, stamp);
      return !cancelled;
    };
    planner.emplace(std::vector<TieredTable*>{table_.get()}, limits, progress);
  }

  void Add(WorkItem::Kind kind, const std::vector<uint64_t>& keys) {
    auto item = std::make_unique<WorkItem>();
    item->kind = kind;
    item->number = added++;
    item->batch.examples = 3;
    item->plans.resize(1);
    TablePlan& plan = item->plans[0];
    plan.row_keys.assign(keys.begin(), keys.end());
    plan.rows.resize(keys.size());
    std::iota(plan.rows.begin(), plan.rows.end(), 0U);
    planner->Add(std::move(item));
  }
  void Train(uint64_t first_key, uint64_t rows) {
    Add(WorkItem::Kind::kTrain, Keys(first_key, rows));
  }
  void Eval(uint64_t first_key, uint64_t rows) {
    Add(WorkItem::Kind::kEval, Keys(first_key, rows));
  }
  void EvalEnd() { Add(WorkItem::Kind::kEvalEnd, {}); }

  // The numbers of the next window's items, after all of its parts.
  std::vector<uint64_t> Next() {
    std::vector<uint64_t> numbers;
    parts.clear();
    moves_ = 0;
    do {
      window = {};
      if (!planner->Next(&window)) return numbers;
      parts.push_back(window.part);
      moves_ += window.moves[0].size();
      for (const RowMove& move : window.moves[0])
        EXPECT_TRUE(!move.fetch || window.part.Has(MixOfKey(move.key)));
    } while (!window.part.last());
    for (const auto& item : window.items) numbers.push_back(item->number);
    return numbers;
  }
  size_t moves() const { return moves_; }
  TieredTable& table() { return *table_; }
  uint32_t Find(uint64_t key) const {
    uint32_t position = 0;
    memory_->Find({&key, 1}, {&position, 1});
    return position;
  }

  static std::vector<uint64_t> Keys(uint64_t first, uint64_t n) {
    std::vector<uint64_t> keys(n);
    std::iota(keys.begin(), keys.end(), first);
    return keys;
  }

  std::optional<WindowPlanner> planner;
  WindowPart window;  // the last part
  std::vector<KeyPart> parts;
  uint32_t done = 0;
  std::vector<uint32_t> waits;  // for stamps not trained before
  bool cancelled = false;
  uint64_t added = 0;

 private:
  size_t moves_ = 0;
  TestDir dir_;
  RowRoom room_;
  std::unique_ptr<MemoryTier> memory_;
  std::unique_ptr<TieredTable> table_;
};

WindowLimits Limits(int64_t batches) {
  WindowLimits limits;
  limits.batches = batches;
  limits.parts = 1;
  limits.budget = 100 << 20;
  return limits;
}

TEST(WindowPlanner, AWindowIsCutWhereItsRowsAreTooManyForItsShare) {
  Planned p(Limits(4), 40, 0);
  for (uint64_t i = 0; i < 6; ++i) p.Train(10 * i, 10);
  EXPECT_THAT(p.Next(), ElementsAre(0, 1));  // half of the rows
  EXPECT_THAT(p.Next(), ElementsAre(2, 3));
  EXPECT_THAT(p.Next(), ElementsAre(4, 5));
  EXPECT_EQ(p.planner->stats().windows, 3);
  EXPECT_EQ(p.planner->stats().batches, 6);
  EXPECT_EQ(p.planner->stats().cut, 2);  // the last one is short because there is no more
  EXPECT_TRUE(p.planner->empty());
}

TEST(WindowPlanner, AWindowIsFullWhereItsRowsFit) {
  Planned p(Limits(4), 400, 0);
  for (uint64_t i = 0; i < 6; ++i) p.Train(10 * i, 10);
  EXPECT_THAT(p.Next(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(p.moves(), 40U);
  EXPECT_THAT(p.Next(), ElementsAre(4, 5));
  EXPECT_EQ(p.planner->stats().cut, 0);
  EXPECT_EQ(p.planner->most_moves(), 40);
}

TEST(WindowPlanner, WindowsOfTheSameKeysMoveNothing) {
  Planned p(Limits(2), 100, 0);
  for (int i = 0; i < 4; ++i) p.Train(0, 10);
  EXPECT_THAT(p.Next(), ElementsAre(0, 1));
  EXPECT_EQ(p.moves(), 10U);
  const Array<uint32_t> positions = p.window.items[0]->plans[0].row_positions;
  EXPECT_EQ(positions.size(), 10U);
  EXPECT_EQ(p.window.items[1]->plans[0].row_positions, positions);
  EXPECT_THAT(p.Next(), ElementsAre(2, 3));
  EXPECT_EQ(p.moves(), 0U);
  EXPECT_EQ(p.window.items[1]->plans[0].row_positions, positions);
  EXPECT_EQ(p.table().stats().hits, 30);
}

TEST(WindowPlanner, AWindowEndsBeforeTheLimitOfMovesButHasABatch) {
  WindowLimits limits = Limits(4);
  limits.moves = 6;
  Planned p(limits, 100, 0);
  for (uint64_t i = 0; i < 2; ++i) p.Train(3 * i, 3);
  p.Train(10, 7);
  p.Train(20, 3);
  EXPECT_THAT(p.Next(), ElementsAre(0, 1));
  EXPECT_EQ(p.moves(), 6U);
  EXPECT_THAT(p.Next(), ElementsAre(2));
  EXPECT_EQ(p.moves(), 7U);
}

TEST(WindowPlanner, TheEndOfAnEvaluationEndsAWindow) {
  Planned p(Limits(8), 100, 10);
  p.Train(0, 3);
  p.Eval(0, 4);
  p.EvalEnd();
  // The reader may wait for the result: no more can be asked for.
  EXPECT_FALSE(p.planner->WantsMore());
  EXPECT_THAT(p.Next(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(p.planner->WantsMore());
  p.Train(0, 3);
  p.EvalEnd();
  p.Train(0, 3);
  EXPECT_THAT(p.Next(), ElementsAre(3, 4));
  EXPECT_THAT(p.Next(), ElementsAre(5));
}

TEST(WindowPlanner, WantsTheBatchesOfTwoWindowsIfItLooksAhead) {
  for (const bool look_ahead : {false, true}) {
    WindowLimits limits = Limits(3);
    limits.look_ahead = look_ahead;
    Planned p(limits, 1000, 0);
    int added = 0;
    for (; p.planner->WantsMore(); ++added) p.Train(0, 5);
    EXPECT_EQ(added, look_ahead ? 6 : 3);
  }
}

TEST(WindowPlanner, WantsNoMoreThanItsRows) {
  Planned p(Limits(50), 100, 0);
  uint64_t added = 0;
  for (; p.planner->WantsMore(); ++added) p.Train(10 * added, 10);
  EXPECT_EQ(added, 11U);
}

TEST(WindowPlanner, RowsThatBatchesShareCountOnce) {
  Planned p(Limits(20), 60, 0);
  // Each brings one row, and shares nine with the one before.
  for (uint64_t i = 0; p.planner->WantsMore(); ++i) p.Train(i, 10);
  EXPECT_EQ(p.added, 37U);  // of two windows, but for the head start
  EXPECT_EQ(p.Next().size(), 20U);
  EXPECT_EQ(p.moves(), 29U);
}

TEST(WindowPlanner, ManyRowsAreCountedByASampleOfThem) {
  Planned p(Limits(40), 200'000, 0);
  for (uint64_t i = 0; i < 40; ++i) p.Train(10'000 * i, 10'000);
  // Half of the rows: ten batches, but for what a sample does not know.
  const size_t first = p.Next().size();
  EXPECT_GE(first, 9U);
  EXPECT_LE(first, 11U);
}

TEST(WindowPlanner, PlansBeforeTheWindowInTrainingHasEnded) {
  Planned p(Limits(16), 1000, 0);
  for (uint64_t i = 0; i < 64; ++i) p.Train(0, 5);
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_THAT(p.waits, IsEmpty());
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_THAT(p.waits, ElementsAre(14));
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_THAT(p.waits, ElementsAre(14, 30));
}

TEST(WindowPlanner, OnlySoManyWindowsAreInFlight) {
  for (uint32_t prefetch : {1U, 3U}) {
    WindowLimits limits = Limits(2);
    limits.prefetch = prefetch;
    Planned p(limits, 1000, 0);
    for (uint64_t i = 0; i < 20; ++i) p.Train(i, 2);
    // One in training, the others ahead of it.
    for (uint32_t i = 0; i <= prefetch; ++i) {
      EXPECT_EQ(p.Next().size(), 2U);
      EXPECT_THAT(p.waits, IsEmpty());
    }
    EXPECT_EQ(p.Next().size(), 2U);
    EXPECT_THAT(p.waits, ElementsAre(2));  // the last batch of the first window
    EXPECT_EQ(p.Next().size(), 2U);
    EXPECT_THAT(p.waits, ElementsAre(2, 4));
    p.done = 4 + 2 * prefetch;  // all but the last
    for (uint32_t i = 0; i < prefetch; ++i) EXPECT_EQ(p.Next().size(), 2U);
    EXPECT_EQ(p.waits.size(), 2U);
  }
}

TEST(WindowPlanner, ABatchWaitsForEarlierOnesToGiveRoom) {
  WindowLimits limits = Limits(1);
  limits.prefetch = 8;
  Planned p(limits, 10, 0);
  p.Train(0, 4);
  p.Train(4, 4);
  p.Train(8, 5);
  EXPECT_THAT(p.Next(), ElementsAre(0));
  EXPECT_THAT(p.Next(), ElementsAre(1));
  EXPECT_THAT(p.waits, IsEmpty());
  EXPECT_THAT(p.Next(), ElementsAre(2));
  EXPECT_THAT(p.waits, ElementsAre(1));
  EXPECT_EQ(p.planner->stats().squeezed, 0);
  EXPECT_EQ(p.table().stats().evicted, 3);
}

TEST(WindowPlanner, ACancelledWaitEndsPlanning) {
  WindowLimits limits = Limits(1);
  limits.prefetch = 8;
  Planned p(limits, 4, 0);
  p.Train(0, 4);
  p.Train(4, 4);
  EXPECT_THAT(p.Next(), ElementsAre(0));
  p.cancelled = true;
  EXPECT_FALSE(p.planner->Next(&p.window));
  EXPECT_THAT(p.waits, ElementsAre(1));
}

TEST(WindowPlanner, ABatchPushesOutWhatLaterOnesUseIfItMust) {
  Planned p(Limits(2), 10, 0);
  p.Train(0, 5);
  EXPECT_THAT(p.Next(), ElementsAre(0));
  p.Train(5, 8);
  p.Train(0, 5);
  EXPECT_THAT(p.Next(), ElementsAre(1));
  EXPECT_EQ(p.planner->stats().squeezed, 1);
  EXPECT_EQ(p.table().stats().evicted, 3);
  EXPECT_THAT(p.Next(), ElementsAre(2));
  EXPECT_EQ(p.planner->stats().squeezed, 1);
  EXPECT_EQ(p.moves(), 3U);  // what was pushed out comes back
}

TEST(WindowPlanner, ATestBatchLargerThanTheGuestsStillRuns) {
  Planned p(Limits(2), 12, 2);
  p.Train(0, 10);
  p.Eval(100, 12);
  p.EvalEnd();
  EXPECT_THAT(p.Next(), ElementsAre(0));
  EXPECT_THAT(p.Next(), ElementsAre(1));
  EXPECT_EQ(p.table().stats().eval_evicted, 10);
  EXPECT_THAT(p.Next(), ElementsAre(2));
}

TEST(WindowPlanner, LaterPartsWaitForTrainingToGetAsFar) {
  WindowLimits limits = Limits(16);
  limits.parts = 4;
  Planned p(limits, 1000, 0);
  for (uint64_t i = 0; i < 64; ++i) p.Train(10 * i, 10);
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_EQ(p.parts.size(), 4U);
  EXPECT_EQ(p.moves(), 160U);
  EXPECT_THAT(p.waits, IsEmpty());  // nothing is in training
  EXPECT_EQ(p.Next().size(), 16U);
  // An eighth of it before a quarter, half and three quarters of the first window.
  EXPECT_THAT(p.waits, ElementsAre(2, 6, 10));
  EXPECT_EQ(p.Next().size(), 16U);
  EXPECT_THAT(p.waits, ElementsAre(2, 6, 10, 14, 18, 22, 26));
}

TEST(WindowPlanner, RowsOfTheWindowInTrainingLeaveForLaterParts) {
  for (const uint32_t parts : {1U, 4U}) {
    WindowLimits limits = Limits(4);
    limits.parts = parts;
    limits.look_ahead = false;
    // Of two windows 40 rows would be in memory at once.
    Planned p(limits, 30, 0);
    for (uint64_t i = 0; i < 40; ++i) p.Train(5 * i, 5);
    uint64_t batches = 0;
    while (batches < 40) batches += p.Next().size();
    EXPECT_EQ(p.planner->stats().cut > 0, parts == 1);
    EXPECT_EQ(p.planner->stats().squeezed, 0);
    EXPECT_EQ(p.table().stats().evicted, 170);
  }
}

TEST(WindowPlanner, WhatMayNotFitComesInOnePart) {
  WindowLimits limits = Limits(4);
  limits.parts = 4;
  Planned p(limits, 40, 0);
  for (uint64_t i = 0; i < 8; ++i) p.Train(5 * i, 5);
  EXPECT_THAT(p.Next(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(p.parts.size(), 4U);
  EXPECT_THAT(p.Next(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(p.parts.size(), 4U);
  // 24 new rows, beside 20 that the batches after them will use again.
  for (uint64_t i = 0; i < 4; ++i) p.Train(100 + 6 * i, 6);
  for (uint64_t i = 4; i < 8; ++i) p.Train(5 * i, 5);
  EXPECT_THAT(p.Next(), ElementsAre(8, 9));  // 15 rows are free, the first window's last batch left
  EXPECT_EQ(p.parts.size(), 1U);
}

TEST(WindowPlanner, TestBatchesComeInPartsToo) {
  WindowLimits limits = Limits(4);
  limits.parts = 2;
  Planned p(limits, 200, 20);
  p.Train(0, 5);
  p.Eval(0, 12);
  p.Eval(100, 8);
  p.EvalEnd();
  EXPECT_THAT(p.Next(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(p.parts.size(), 2U);
  EXPECT_EQ(p.table().stats().eval_reads, 15);
  // All guests are taken, so more have to wait for the batches before them.
  p.Train(0, 5);
  p.Eval(100, 20);
  EXPECT_THAT(p.Next(), ElementsAre(4));
  EXPECT_THAT(p.waits, ElementsAre(1));  // for the second part
  EXPECT_THAT(p.Next(), ElementsAre(5));
  EXPECT_THAT(p.waits, ElementsAre(1, 3));
}

// The budget that the error of a batch of so many rows asks for.
int64_t BudgetInError(Planned* p) {
  try {
    p->Next();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    const std::string text = e.what();
    EXPECT_THAT(text, HasSubstr("a batch of 3 examples uses "));
    EXPECT_THAT(text, HasSubstr(" rows of table `ads`"));
    EXPECT_THAT(text, HasSubstr(" or lower train.batch"));
    return BudgetIn(text);
  }
  ADD_FAILURE() << "no error";
  return 0;
}

TEST(WindowPlanner, ABatchThatDoesNotFitIsRefusedWithTheBudgetThatItNeeds) {
  constexpr int64_t kRows = 200'000;
  WindowLimits limits = Limits(1);
  for (const int64_t guests : {0, 50'000}) {
    // Rows of guests are not for training.
    Planned p(limits, kRows + guests, guests);
    p.Train(0, kRows);
    EXPECT_THAT(p.Next(), ElementsAre(0));
    const int64_t more = 40'000;
    p.Train(0, kRows + more);
    const int64_t row_bytes = TieredTable::RowBytes(p.table().memory().schema());
    EXPECT_GE(BudgetInError(&p), limits.budget + more * row_bytes);
  }
}

TEST(WindowPlanner, RandomBatchesComeOutInOrderWithPositionsOfTheirOwn) {
  ASSERT_TRUE(rc::check([] {
    WindowLimits limits = Limits(*rc::gen::inRange(1, 6));
    limits.prefetch = *rc::gen::inRange(1, 4);
    limits.parts = *rc::gen::inRange<uint32_t>(1, 5);
    limits.moves = *rc::gen::element(8, 1 << 20);
    limits.look_ahead = *rc::gen::arbitrary<bool>();
    const auto most = *rc::gen::inRange<uint64_t>(1, 30);
    const auto spare = *rc::gen::element<int64_t>(0, 5, 30, 100);
    const auto guests = *rc::gen::inRange<int64_t>(0, 10);
    Planned p(limits, static_cast<int64_t>(most) + spare + guests, guests);
    const auto batches = *rc::gen::inRange<uint64_t>(1, 40);
    uint64_t next = 0;
    std::vector<uint32_t> ends{0};  // last stamps of windows
    while (p.added < batches || !p.planner->empty()) {
      while (p.added < batches && p.planner->WantsMore()) {
        const auto kind = *rc::gen::element(WorkItem::Kind::kTrain, WorkItem::Kind::kTrain,
                                            WorkItem::Kind::kEval, WorkItem::Kind::kEvalEnd);
        const auto rows =
            kind == WorkItem::Kind::kEvalEnd ? 0 : *rc::gen::inRange<uint64_t>(0, most + 1);
        p.Add(kind, Planned::Keys(*rc::gen::inRange<uint64_t>(0, 100), rows));
      }
      const std::vector<uint64_t> numbers = p.Next();
      RC_ASSERT(!numbers.empty());
      RC_ASSERT(std::ssize(numbers) <= limits.batches);
      std::set<uint32_t> all;
      for (size_t i = 0; i < numbers.size(); ++i) {
        RC_ASSERT(numbers[i] == next++);
        const WorkItem& item = *p.window.items[i];
        const bool last = i + 1 == numbers.size();
        RC_ASSERT(last || item.kind != WorkItem::Kind::kEvalEnd);
        const Array<uint32_t>& positions = item.plans[0].row_positions;
        std::set<uint32_t> distinct(positions.begin(), positions.end());
        RC_ASSERT(distinct.size() == positions.size());
        RC_ASSERT(positions.size() == item.plans[0].row_keys.size());
        RC_ASSERT(!distinct.contains(0));
        if (item.kind == WorkItem::Kind::kTrain) all.merge(distinct);
      }
      const int64_t share = limits.parts > 1 ? 67 : 50;
      RC_ASSERT(numbers.size() == 1u || 100 * std::ssize(all) <= share * p.table().most_rows());
      // No more windows are under way than may be.
      ends.push_back(static_cast<uint32_t>(next));
      if (std::ssize(ends) > limits.prefetch + 2) {
        const uint32_t* const old = &ends[ends.size() - static_cast<size_t>(limits.prefetch) - 2];
        const uint32_t left = limits.look_ahead ? (old[0] - old[-1] + 4) / 8 : 0;
        RC_ASSERT(p.done + left >= old[0]);
      }
    }
    RC_ASSERT(next == batches);
    RC_ASSERT(p.planner->stats().batches == static_cast<int64_t>(batches));
  }));
}

}  // namespace
}  // namespace terrace
