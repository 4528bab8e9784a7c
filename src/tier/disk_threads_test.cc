// Several threads on one store, with an index so small that merges never end.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {
namespace {

constexpr uint64_t kThreads = 4, kRounds = 60, kOwnKeys = 400, kSharedKeys = 300;
constexpr uint64_t kShared = kThreads * kOwnKeys;  // the first key that all threads write

DiskOptions Tiny(bool background) {
  DiskOptions options;
  options.row_bytes = 16;
  options.page_bytes = 512;
  options.partitions = 4;
  options.memory_bytes = 8 << 20;
  options.index_bytes = 6000;
  options.background = background;
  return options;
}

// The first failure of any thread.
class FirstFailure {
 public:
  void Note(const std::string& text) {
    MutexLock lock(&mu_);
    if (text_.empty()) text_ = text;
  }
  std::string text() {
    MutexLock lock(&mu_);
    return text_;
  }

 private:
  Mutex mu_;
  std::string text_ GUARDED_BY(mu_);
};

std::vector<uint64_t> RandomKeys(RandomStream* random, uint64_t first, uint64_t keys) {
  std::vector<uint64_t> picked;
  for (uint64_t n = BelowN(random->Next(), 150); n > 0; --n)
    picked.push_back(first + BelowN(random->Next(), keys));
  return picked;
}

// Each writer knows what its own keys hold; of shared keys any row is fine that was put there.
void Write(DiskStore& store, uint64_t thread, Contents* own, FirstFailure* failure) {
  RandomStream random(7, thread);
  const uint64_t first = thread * kOwnKeys;
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const std::vector<uint64_t> keys = RandomKeys(&random, first, kOwnKeys);
    const std::vector<uint64_t> shared = RandomKeys(&random, kShared, kSharedKeys);
    if (random.Next() % 3 == 0)
      DeleteKeys(store, keys, own);
    else
      PutVersion(store, keys, 1000 * round, own);
    if (random.Next() % 4 == 0)
      store.Delete(shared);
    else
      PutVersion(store, shared, 1000 * round);
    if (round % 20 == 0) store.Commit();
    failure->Note(GetDifference(store, RandomKeys(&random, first, kOwnKeys), *own));
  }
}

// Rows seen while others write are whole, and in order.
void ScanUntil(DiskStore& store, const std::atomic<bool>& stop) {
  while (!stop) {
    ReadAll(store);
    store.stats();
    const std::vector<uint64_t> shared = {kShared, kShared + 1, kShared + 2};
    std::vector<std::byte> rows(shared.size() * store.row_bytes());
    std::vector<uint8_t> found(shared.size());
    store.Get(shared, rows.data(), found.data());
    for (size_t i = 0; i < shared.size(); ++i)
      if (found[i] != 0) VersionOf(shared[i], &rows[i * store.row_bytes()], store.row_bytes());
  }
}

void CheckThreads(const DiskOptions& options) {
  TestDir dir;
  Contents own[kThreads];
  FirstFailure failure;
  auto store = DiskStore::Open(dir.path() + "/store", options);
  const auto guarded = [&](auto f) {
    return [&failure, f] {
      try {
        f();
      } catch (const std::exception& e) {
        failure.Note(e.what());
      }
    };
  };
  std::atomic<bool> stop{false};
  {
    std::jthread scanner(guarded([&] { ScanUntil(*store, stop); }));
    std::vector<std::jthread> writers;
    for (uint64_t t = 0; t < kThreads; ++t)
      writers.emplace_back(guarded([&, t] { Write(*store, t, &own[t], &failure); }));
    store->Snapshot(dir.path() + "/copy");
    if (!options.background) store->Merge();
    writers.clear();
    stop = true;
  }
  ASSERT_EQ(failure.text(), "");
  store->Settle();
  EXPECT_GT(store->stats().merges, 10);

  Contents expected = ReadAll(*store);
  std::erase_if(expected, [](const auto& row) { return KeyOfMix(row.first) < kShared; });
  for (const Contents& part : own) expected.insert(part.begin(), part.end());
  EXPECT_EQ(StoreDifference(*store, expected), "");
  store->Commit();
  store.reset();
  EXPECT_EQ(StoreDifference(*DiskStore::Open(dir.path() + "/store", options), expected), "");
  EXPECT_TRUE(VerifyStore(PosixEnv(), dir.path() + "/store", {}).problems.empty());
  EXPECT_TRUE(VerifyStore(PosixEnv(), dir.path() + "/copy", {}).problems.empty());
}

TEST(DiskThreads, WritersScannersAndCommitsRunBesideMerges) { CheckThreads(Tiny(true)); }

TEST(DiskThreads, WritersMergeByThemselvesWithoutABackground) { CheckThreads(Tiny(false)); }

// A commit is all or nothing for what returned before it, whatever others do meanwhile.
TEST(DiskThreads, CommitsHoldAllThatReturnedBefore) {
  TestDir dir;
  const DiskOptions options = Tiny(true);
  auto store = DiskStore::Open(dir.path(), options);
  std::atomic<uint64_t> done{0};
  FirstFailure failure;
  {
    std::jthread writer([&] {
      for (uint64_t round = 1; round <= 300; ++round) {
        const uint64_t keys[] = {round, round + 1000, round + 2000, round + 3000};
        PutVersion(*store, keys, round);
        done = round;
      }
    });
    for (int i = 0; i < 10; ++i) {
      const uint64_t before = done;
      const std::string copy = dir.path() + "/copy" + std::to_string(i);
      store->Snapshot(copy);
      DiskOptions reading = options;
      reading.index_bytes = 0;  // nothing is merged to make room
      const Contents contents = ReadAll(*DiskStore::OpenReadOnly(copy, reading));
      for (uint64_t round = 1; round <= before; ++round)
        for (uint64_t key : {round, round + 1000, round + 2000, round + 3000})
          if (!contents.contains(MixOfKey(key))) failure.Note("round " + std::to_string(round));
    }
  }
  EXPECT_EQ(failure.text(), "");
}

}  // namespace
}  // namespace terrace
