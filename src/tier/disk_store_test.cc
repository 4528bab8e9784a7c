#include "tier/disk_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"
#include "tier/disk_test_dir.h"

namespace terrace {
namespace {

using Row = std::vector<std::byte>;
using Contents = std::map<uint64_t, Row>;

DiskOptions SmallOptions() {
  DiskOptions options;
  options.row_bytes = 24;
  options.partitions = 4;
  options.memory_bytes = 8 << 20;
  options.background = false;
  return options;
}

Row RowFor(uint64_t key, uint64_t version, size_t bytes) {
  Row row(bytes);
  for (size_t i = 0; i < bytes; i += 8) {
    const uint64_t word = RandomBits(key, version, i);
    std::memcpy(&row[i], &word, std::min<size_t>(8, bytes - i));
  }
  return row;
}

void Put(DiskStore& store, const std::vector<uint64_t>& keys, uint64_t version) {
  std::vector<std::byte> rows;
  for (uint64_t key : keys) {
    const Row row = RowFor(key, version, store.row_bytes());
    rows.insert(rows.end(), row.begin(), row.end());
  }
  store.Put(keys, rows.data());
}

std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
  std::vector<uint64_t> keys;
  for (uint64_t key = first; key < end; ++key) keys.push_back(key);
  return keys;
}

// Every key is there with this version's row.
void ExpectRows(DiskStore& store, const std::vector<uint64_t>& keys, uint64_t version) {
  std::vector<std::byte> rows(keys.size() * store.row_bytes());
  std::vector<uint8_t> found(keys.size(), 9);
  ASSERT_EQ(store.Get(keys, rows.data(), found.data()), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(found[i], 1) << keys[i];
    const Row expected = RowFor(keys[i], version, store.row_bytes());
    ASSERT_EQ(std::memcmp(&rows[i * store.row_bytes()], expected.data(), expected.size()), 0)
        << "key " << keys[i];
  }
}

void ExpectAbsent(DiskStore& store, const std::vector<uint64_t>& keys) {
  std::vector<std::byte> rows(keys.size() * store.row_bytes(), std::byte{7});
  std::vector<uint8_t> found(keys.size(), 9);
  EXPECT_EQ(store.Get(keys, rows.data(), found.data()), 0u);
  for (uint8_t f : found) ASSERT_EQ(f, 0);
  for (std::byte b : rows) ASSERT_EQ(b, std::byte{7});
}

TEST(DiskStore, FindsWhatWasPut) {
  TestDir dir;
  auto store = DiskStore::Open(dir.path(), SmallOptions());
  ExpectAbsent(*store, Keys(0, 100));
  Put(*store, Keys(0, 10000), 1);
  ExpectRows(*store, Keys(0, 10000), 1);
  ExpectAbsent(*store, Keys(10000, 20000));
  Put(*store, Keys(5000, 6000), 2);
  ExpectRows(*store, Keys(5000, 6000), 2);
  store->Merge();
  EXPECT_EQ(store->stats().total.log_keys, 0);
  EXPECT_EQ(store->stats().total.base_rows, 10000);
  ExpectRows(*store, Keys(0, 5000), 1);
  ExpectRows(*store, Keys(5000, 6000), 2);
  ExpectAbsent(*store, Keys(10000, 20000));
}

TEST(DiskStore, KeepsExactlyTheLastCommit) {
  TestDir dir;
  {
    auto store = DiskStore::Open(dir.path(), SmallOptions());
    Put(*store, Keys(0, 20000), 1);
    store->Commit();
    Put(*store, Keys(0, 20000), 2);
    Put(*store, Keys(20000, 30000), 2);
    store->Merge();
  }
  auto store = DiskStore::Open(dir.path(), SmallOptions());
  ExpectRows(*store, Keys(0, 20000), 1);
  ExpectAbsent(*store, Keys(20000, 30000));
}

TEST(DiskStore, SnapshotStaysAsItWas) {
  TestDir dir, copy;
  auto store = DiskStore::Open(dir.path() + "/s", SmallOptions());
  Put(*store, Keys(0, 20000), 1);
  store->Merge();
  Put(*store, Keys(0, 3000), 2);
  store->Snapshot(dir.path() + "/copy");
  Put(*store, Keys(0, 20000), 3);
  store->Delete(Keys(0, 100));
  store->Merge();
  store->Commit();
  DiskOptions options = SmallOptions();
  auto snapshot = DiskStore::OpenReadOnly(dir.path() + "/copy", options);
  ExpectRows(*snapshot, Keys(0, 3000), 2);
  ExpectRows(*snapshot, Keys(3000, 20000), 1);
  ExpectAbsent(*store, Keys(0, 100));
  EXPECT_THROW(Put(*snapshot, {1}, 1), Error);
}

}  // namespace
}  // namespace terrace
