// What a store promises about space and memory while it grows and changes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

std::vector<uint64_t> RandomKeys(RandomStream* random, uint64_t count, uint64_t below) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < count; ++i) keys.push_back(BelowN(random->Next(), below));
  return keys;
}

TEST(DiskLimits, GrowsFromEmptyWithinItsMemory) {
  TestDir dir;
  DiskOptions options;
  options.row_bytes = 16;
  options.partitions = 16;
  options.memory_bytes = 6 << 20;
  options.durability = Durability::kScratch;
  auto store = DiskStore::Open(dir.path(), options);
  Contents contents;
  constexpr uint64_t kRows = 300000, kBatch = 5000;
  for (uint64_t first = 0; first < kRows; first += kBatch) {
    std::vector<uint64_t> keys;
    for (uint64_t key = first; key < first + kBatch; ++key) keys.push_back(Mix64(key));
    PutVersion(*store, keys, first, &contents);
    const DiskStats stats = store->stats();
    ASSERT_LE(stats.memory_bytes(), static_cast<int64_t>(options.memory_bytes)) << first;
    ASSERT_LE(stats.total.rows_min(), static_cast<int64_t>(contents.size()));
    ASSERT_GE(stats.total.rows_max(), static_cast<int64_t>(contents.size()));
  }
  store->Settle();
  EXPECT_GT(store->stats().merges, 10);
  EXPECT_EQ(StoreDifference(*store, contents), "");
  EXPECT_LE(store->stats().memory_bytes(), static_cast<int64_t>(options.memory_bytes));
}

// As a whole table is saved: each row goes to the log and from there to the base, once.
TEST(DiskLimits, RowsThatComeByPartitionAreWrittenTwice) {
  TestDir dir;
  DiskOptions options;
  options.row_bytes = 64;
  options.partitions = 32;
  options.memory_bytes = 8 << 20;
  options.index_bytes = 400 << 10;  // of a tenth of the keys
  options.background = false;
  options.durability = Durability::kScratch;
  auto store = DiskStore::Open(dir.path(), options);
  constexpr uint64_t kRows = 320000, kBatch = 3200, kStep = ~uint64_t{0} / kRows;
  const double bytes = kRows * (64 + 8.0);
  Contents contents;
  for (const uint64_t version : {1, 2}) {
    const DiskStats before = store->stats();
    for (uint64_t first = 0; first < kRows; first += kBatch) {
      std::vector<uint64_t> keys;
      for (uint64_t i = first; i < first + kBatch; ++i)
        keys.push_back(KeyOfMix(i * kStep + RandomBits(1, i, 0) % kStep));
      PutVersion(*store, keys, version, &contents);
    }
    store->Merge();
    const DiskStats after = store->stats();
    const int64_t written = after.log_bytes_written - before.log_bytes_written +
                            after.merge_bytes_written - before.merge_bytes_written;
    EXPECT_LT(static_cast<double>(written), 2.5 * bytes) << version;
  }
  EXPECT_EQ(StoreDifference(*store, contents), "");
}

// Files never take more than twice the live rows, and what partial pages of partitions take.
void CheckSpace(Durability durability) {
  TestDir dir;
  DiskOptions options;
  options.row_bytes = 250;
  options.partitions = 64;  // a merge needs the space of one of them, beside
  options.memory_bytes = 16 << 20;
  options.durability = durability;
  auto store = DiskStore::Open(dir.path(), options);
  const PageLayout layout(options.row_bytes, 0, options.partitions);
  Contents contents;
  RandomStream random(3, 0);
  constexpr uint64_t kKeys = 100000, kBatch = 5000;
  double most = 0;  // times the live bytes
  for (uint64_t step = 0; step < 150; ++step) {
    // Grows and changes, then shrinks.
    const bool shrinks = step > 75;
    const bool deletes = shrinks ? step % 8 != 0 : step % 8 == 7;
    const auto keys = RandomKeys(&random, deletes ? kBatch / 2 : kBatch, kKeys);
    if (deletes)
      DeleteKeys(*store, keys, &contents);
    else
      PutVersion(*store, keys, step, &contents);
    if (durability == Durability::kCommit && step % 5 == 4) store->Commit();
    // Deletes make the limit fall while they add to the logs: merges may be behind.
    if (shrinks) store->Settle();
    // In this order: a merge that ends in between adds to what is pinned.
    const int64_t files = dir.FileBytes();
    const int64_t used = files - store->stats().pinned_bytes;
    // Rows on full pages, ten bits of filter a row, a fence a page.
    const int64_t pages = layout.PagesFor(static_cast<int64_t>(contents.size()));
    const int64_t live = pages * static_cast<int64_t>(layout.page_bytes + 8) +
                         static_cast<int64_t>(contents.size()) * 10 / 8;
    // For each partition: two base tails of three pages, and six partial pages of its logs.
    const int64_t partial = 12 * options.partitions * static_cast<int64_t>(layout.page_bytes);
    ASSERT_LE(used, 2 * live + partial) << "step " << step << ": " << contents.size() << " rows";
    most = std::max(most, static_cast<double>(used - partial) / static_cast<double>(live));
  }
  EXPECT_GT(most, 1.5) << "the work is too little to show anything";
  EXPECT_EQ(StoreDifference(*store, contents), "");
}

TEST(DiskLimits, AScratchStoreTakesTwiceItsRowsAtMost) { CheckSpace(Durability::kScratch); }

TEST(DiskLimits, AStoreTakesTwiceItsRowsAtMostBesideItsLastCommit) {
  CheckSpace(Durability::kCommit);
}

std::string UsageError(const std::string& dir, const DiskOptions& options) {
  try {
    DiskStore::Open(dir, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.what();
    return e.what();
  }
  return "none";
}

DiskOptions Small() {
  DiskOptions options;
  options.row_bytes = 32;
  options.partitions = 4;
  options.memory_bytes = 8 << 20;
  return options;
}

TEST(DiskLimits, ABudgetThatIsTooSmallIsRefusedWithWhatIsNeeded) {
  TestDir dir;
  DiskOptions options = Small();
  options.memory_bytes = 1 << 20;
  options.partitions = 64;
  EXPECT_THAT(
      UsageError(dir.path(), options),
      ::testing::ContainsRegex("64 partitions .* needs at least .* its budget is 1.00 MiB"));
  EXPECT_FALSE(PosixEnv().Exists(dir.path() + "/MANIFEST"));
}

TEST(DiskLimits, AStoreThatOutgrowsItsBudgetSaysSo) {
  TestDir dir;
  DiskOptions options = Small();
  options.index_bytes = 2000;
  auto store = DiskStore::Open(dir.path(), options);
  std::string error;
  uint64_t put = 0;
  try {
    for (; put < 100000; put += 500) {
      std::vector<uint64_t> keys;
      for (uint64_t key = put; key < put + 500; ++key) keys.push_back(key);
      PutVersion(*store, keys, 1);
    }
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    error = e.what();
  }
  EXPECT_THAT(error, ::testing::HasSubstr("raise the budget"));
  Contents contents;
  for (uint64_t key = 0; key < put; ++key) contents[MixOfKey(key)] = 1;
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < put; ++key) keys.push_back(key);
  EXPECT_EQ(GetDifference(*store, keys, contents), "");
}

TEST(DiskLimits, AStoreWithMoreMemoryHasMorePartitions) {
  const auto partitions = [](size_t memory) {
    TestDir dir;
    DiskOptions options;
    options.row_bytes = 64;
    options.memory_bytes = memory;
    return DiskStore::Open(dir.path(), options)->partitions();
  };
  EXPECT_EQ(partitions(32 << 20), 64);
  EXPECT_EQ(partitions(1023 << 20), 64);
  EXPECT_EQ(partitions(1024 << 20), 128);
  EXPECT_EQ(partitions(size_t{4} << 30), 512);
}

TEST(DiskLimits, OptionsThatAStoreDoesNotHaveAreRefused) {
  TestDir dir;
  DiskStore::Open(dir.path(), Small());
  DiskOptions options = Small();
  options.row_bytes = 48;
  EXPECT_THAT(UsageError(dir.path(), options),
              ::testing::HasSubstr("has rows of 32 bytes, 48 were asked for"));
  options = Small();
  options.partitions = 8;
  EXPECT_THAT(UsageError(dir.path(), options),
              ::testing::HasSubstr("has 4 partitions, 8 were asked for"));
  options.row_bytes = 0;
  options.partitions = 0;
  const auto store = DiskStore::Open(dir.path(), options);
  EXPECT_EQ(store->row_bytes(), 32u);
  EXPECT_EQ(store->partitions(), 4);
}

TEST(DiskLimits, OptionsThatMakeNoStoreAreRefused) {
  const auto error = [](const std::function<void(DiskOptions*)>& change) {
    TestDir dir;
    DiskOptions options = Small();
    change(&options);
    return UsageError(dir.path(), options);
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error([](DiskOptions* o) { o->row_bytes = 0; }), HasSubstr("rows of 0 bytes"));
  EXPECT_THAT(error([](DiskOptions* o) { o->row_bytes = 8; }), HasSubstr("16 to 2048"));
  EXPECT_THAT(error([](DiskOptions* o) { o->row_bytes = 2049; }), HasSubstr("16 to 2048"));
  EXPECT_THAT(error([](DiskOptions* o) { o->partitions = 3; }), HasSubstr("a power of two"));
  EXPECT_THAT(error([](DiskOptions* o) { o->partitions = 8192; }), HasSubstr("up to 4096"));
  EXPECT_THAT(error([](DiskOptions* o) { o->page_bytes = 1000; }), HasSubstr("a power of two"));
  EXPECT_THAT(error([](DiskOptions* o) {
                o->page_bytes = 512;
                o->row_bytes = 500;
              }),
              HasSubstr("holds a row of 500"));
}

TEST(DiskLimits, OneObjectOpensAStoreForWriting) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path(), Small());
  EXPECT_THROW(DiskStore::Open(dir.path(), Small()), Error);
  store.reset();
  DiskStore::Open(dir.path(), Small());
}

TEST(DiskLimits, AScratchStoreLeavesACommittedOneAlone) {
  TestDir dir;
  Contents contents;
  {
    auto store = DiskStore::Open(dir.path(), Small());
    const uint64_t keys[] = {1, 2, 3};
    PutVersion(*store, keys, 1, &contents);
    store->Commit();
  }
  DiskOptions options = Small();
  options.durability = Durability::kScratch;
  EXPECT_THAT(UsageError(dir.path(), options), ::testing::HasSubstr("holds a store with commits"));
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir.path(), Small()), contents), "");
}

TEST(DiskLimits, AScratchStoreLeavesNothingBehind) {
  TestDir dir;
  DiskOptions options = Small();
  options.durability = Durability::kScratch;
  {
    auto store = DiskStore::Open(dir.path(), options);
    RandomStream random(1, 0);
    PutVersion(*store, RandomKeys(&random, 5000, 3000), 1);
    store->Merge();
    PutVersion(*store, RandomKeys(&random, 5000, 3000), 2);
    EXPECT_GT(dir.FileBytes(), 0);
  }
  EXPECT_EQ(dir.FileBytes(), 0);
}

TEST(DiskLimits, OnlyAStoreOpensForReading) {
  TestDir dir;
  EXPECT_THROW(DiskStore::OpenReadOnly(dir.path(), Small()), Error);
  EXPECT_EQ(PosixEnv().List(dir.path()), std::vector<std::string>());
}

}  // namespace
}  // namespace terrace
