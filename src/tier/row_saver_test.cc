#include "tier/row_saver.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "tier/tiered_table.h"

namespace terrace {
namespace {

TableSchema TinySchema() {
  TableConfig config;
  config.dim = 4;
  config.optimizer = RowOptimizer::kSgd;
  return TableSchema::Make("rows", config, true, 1);
}

// A table in memory over a store, with a model of what the store has to hold.
class RowSaverTest : public testing::Test {
 protected:
  RowSaverTest() : memory_(TinySchema()) {
    DiskOptions options;
    options.row_bytes = TieredTable::DiskRowBytes(memory_.schema());
    options.memory_bytes = 8 << 20;
    options.partitions = 4;
    options.durability = Durability::kScratch;
    store_ = DiskStore::Open(dir_.path() + "/store", options);
    RowSaver::Limits limits;
    limits.kept_bytes = 4000;
    limits.chunk_rows = 16;
    limits.sorted_rows = 100;
    saver_ = std::make_unique<RowSaver>(
        std::vector<RowSaver::Table>{{&memory_, store_.get(), nullptr}}, limits);
  }

  uint32_t PositionOf(uint64_t key) {
    uint32_t position = 0;
    memory_.FindOrCreate({&key, 1}, {&position, 1});
    return position;
  }

  // Rows of `keys` get a value of their own.
  void TrainRows(const std::vector<uint64_t>& keys) {
    std::vector<uint32_t> positions;
    for (uint64_t key : keys) positions.push_back(PositionOf(key));
    saver_->BeforeTraining(0, positions);
    for (size_t i = 0; i < keys.size(); ++i) {
      values_[keys[i]] = ++last_value_;
      std::byte* const row = memory_.base() + positions[i] * memory_.schema().layout.stride;
      for (size_t n = 0; n < payload() / 4; ++n) std::memcpy(row + 4 * n, &last_value_, 4);
    }
  }

  size_t payload() const { return static_cast<size_t>(memory_.schema().layout.payload_bytes()); }

  std::map<uint64_t, uint32_t> Stored() const {
    std::map<uint64_t, uint32_t> rows;
    store_->Scan(0, store_->partitions(), [&](std::span<const uint64_t> keys, const std::byte* at) {
      for (size_t i = 0; i < keys.size(); ++i) {
        uint32_t words[8];
        std::memcpy(words, at + i * store_->row_bytes(), payload());
        for (size_t n = 1; n < payload() / 4; ++n) EXPECT_EQ(words[n], words[0]) << "half a row";
        rows[keys[i]] = words[0];
      }
    });
    return rows;
  }

  TestDir dir_;
  MemoryTier memory_;
  std::unique_ptr<DiskStore> store_;
  std::unique_ptr<RowSaver> saver_;
  std::map<uint64_t, uint32_t> values_;  // of the rows trained
  uint32_t last_value_ = 0;
};

TEST_F(RowSaverTest, ACutHoldsTheStateOfItsBeginning) {
  TrainRows({1, 2, 3});
  saver_->BeginCut();
  const auto expected = values_;
  TrainRows({2, 4});
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), expected);
  saver_->EndCut();
  EXPECT_EQ(saver_->written_rows(), 3);
  saver_->BeginCut();
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
  EXPECT_EQ(saver_->written_rows(), 5) << "rows that did not change were written again";
}

TEST_F(RowSaverTest, RowsOfAFlushAheadThatChangeAreLeftToTheNext) {
  TrainRows({1, 2, 3});
  saver_->StartFlush();
  TrainRows({3});
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), (std::map<uint64_t, uint32_t>{{1, 1}, {2, 2}}));
  EXPECT_EQ(saver_->changed_rows(), 1);
  saver_->BeginCut();
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
}

TEST_F(RowSaverTest, AnAbandonedCutLosesNothing) {
  TrainRows({1, 2});
  saver_->BeginCut();
  TrainRows({2, 3});
  saver_->AbandonCut();
  EXPECT_EQ(saver_->changed_rows(), 3);
  saver_->BeginCut();
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
}

TEST_F(RowSaverTest, RowsThatGoAreWrittenBeforeTheirPlaceIsTaken) {
  TrainRows({1, 2});
  const uint32_t gone = PositionOf(1);
  saver_->Remove(0, {&gone, 1});
  memory_.Remove({&gone, 1});
  TrainRows({5});  // takes the place
  ASSERT_EQ(PositionOf(5), gone);
  saver_->BeginCut();
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
}

TEST_F(RowSaverTest, RowsThatLeftForAWindowInPlanningBelongToTheCut) {
  TrainRows({1, 2, 3});
  RowMove move;
  move.position = PositionOf(1);
  move.victim = 1;
  saver_->Leave(0, {&move, 1});
  EXPECT_TRUE(move.evict);
  saver_->BeginCut();
  RowMove second;
  second.position = PositionOf(2);
  second.victim = 2;
  saver_->Leave(0, {&second, 1});
  EXPECT_TRUE(second.evict);
  EXPECT_EQ(saver_->EndPart(), 1u) << "its rows are written after the cut";
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
  EXPECT_TRUE(saver_->WaitForWrite(1));
}

TEST_F(RowSaverTest, AWindowInPlanningMayOutlastACut) {
  TrainRows({1, 2});
  saver_->BeginCut();
  TrainRows({2});
  RowMove move;
  move.position = PositionOf(2);
  move.victim = 2;
  saver_->Leave(0, {&move, 1});
  EXPECT_TRUE(saver_->FlushAll());
  saver_->EndCut();
  saver_->BeginCut();
  EXPECT_TRUE(saver_->FlushAll());
  EXPECT_EQ(Stored(), values_);
  saver_->EndCut();
}

TEST_F(RowSaverTest, RowsThatWereWrittenLeaveWithoutAWrite) {
  TrainRows({1});
  saver_->StartFlush();
  EXPECT_TRUE(saver_->FlushAll());
  RowMove move;
  move.position = PositionOf(1);
  move.victim = 1;
  saver_->Leave(0, {&move, 1});
  EXPECT_FALSE(move.evict);
}

TEST_F(RowSaverTest, CutsAreExactWhileRowsChange) {
  RandomStream random(1, 2);
  const auto pick = [&](uint64_t n) { return random.Next() % n; };
  std::map<uint64_t, uint32_t> expected;
  std::thread save;
  std::atomic<bool> busy{false};
  int cuts = 0;
  while (cuts < 20) {
    if (!busy) {
      if (save.joinable()) save.join();
      const uint64_t what = pick(4);
      if (what == 0) {
        saver_->BeginCut();
        expected = values_;
        busy = true;
        ++cuts;
        save = std::thread([&] {
          EXPECT_TRUE(saver_->FlushAll());
          EXPECT_EQ(Stored(), expected);
          saver_->EndCut();
          busy = false;
        });
      } else if (what == 1) {
        saver_->StartFlush();
        busy = true;
        save = std::thread([&] {
          EXPECT_TRUE(saver_->FlushAll());
          busy = false;
        });
      }
    }
    std::map<uint64_t, int> keys;
    for (uint64_t n = 1 + pick(60); n > 0; --n) keys[pick(1 + pick(1000))];
    std::vector<uint64_t> distinct;
    for (const auto& [key, unused] : keys) distinct.push_back(key);
    TrainRows(distinct);
  }
  if (save.joinable()) save.join();
}

TEST_F(RowSaverTest, CancelWakesWhoWaits) {
  TrainRows({1});
  saver_->BeginCut();
  std::thread push([&] { EXPECT_FALSE(saver_->WaitForWrite(1)); });
  saver_->Cancel();
  push.join();
  EXPECT_FALSE(saver_->FlushAll());
}

}  // namespace
}  // namespace terrace
