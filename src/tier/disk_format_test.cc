// The format of a store's files, version 1 (docs/disk_format.md): a store that was written once and
// is never written again, in tests/golden/disk_v1.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/random.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr size_t kRowBytes = 24;
const std::string kGolden = std::string(TERRACE_SOURCE_DIR) + "/tests/golden/disk_v1";

using Row = std::array<uint64_t, kRowBytes / 8>;
Row RowOf(uint64_t key, uint64_t version) {
  return {RandomBits(key, version, 0), RandomBits(key, version, 1), RandomBits(key, version, 2)};
}

std::vector<uint64_t> Keys(uint64_t first, uint64_t end) {
  std::vector<uint64_t> keys;
  for (; first < end; ++first) keys.push_back(first * first * first);
  return keys;
}

void Put(DiskStore& store, const std::vector<uint64_t>& keys, uint64_t version) {
  std::vector<Row> rows;
  for (const uint64_t key : keys) rows.push_back(RowOf(key, version));
  store.Put(keys, reinterpret_cast<const std::byte*>(rows.data()));
}

// Two partitions, each with a base of some pages and two logs with tombstones.
void WriteStore(const std::string& dir) {
  DiskOptions options;
  options.row_bytes = kRowBytes;
  options.page_bytes = 512;
  options.partitions = 2;
  options.memory_bytes = 8 << 20;
  options.background = false;
  auto store = DiskStore::Open(dir, options);
  Put(*store, Keys(0, 100), 1);
  store->Merge();
  Put(*store, Keys(80, 120), 2);
  store->Delete(Keys(10, 20));
  store->Commit();
  store.reset();
  store = DiskStore::Open(dir, options);
  Put(*store, Keys(15, 18), 3);
  store->Delete(Keys(90, 95));
  store->Commit();
}

std::map<uint64_t, Row> ExpectedRows() {
  std::map<uint64_t, Row> rows;
  const auto set = [&](uint64_t first, uint64_t end, uint64_t version) {
    for (const uint64_t key : Keys(first, end)) rows[key] = RowOf(key, version);
  };
  set(0, 10, 1);
  set(15, 18, 3);
  set(20, 80, 1);
  set(80, 90, 2);
  set(95, 120, 2);
  return rows;
}

DiskOptions ReadOptions() {
  DiskOptions options;
  options.memory_bytes = 8 << 20;
  return options;
}

// Everything that makes up the store.
std::map<std::string, std::string> Files(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const std::string& name : PosixEnv().List(dir))
    if (name != "LOCK") files[name] = ReadWholeFile(PosixEnv(), dir + "/" + name);
  return files;
}

TEST(DiskFormat, AnOldStoreHasItsRowsByScan) {
  const auto store = DiskStore::OpenReadOnly(kGolden, ReadOptions());
  std::map<uint64_t, Row> rows;
  store->Scan(0, 2, [&](std::span<const uint64_t> keys, const std::byte* bytes) {
    for (size_t i = 0; i < keys.size(); ++i)
      std::memcpy(&rows[keys[i]], bytes + i * kRowBytes, kRowBytes);
  });
  EXPECT_EQ(rows, ExpectedRows());
}

TEST(DiskFormat, AnOldStoreHasItsRowsByKey) {
  const auto store = DiskStore::OpenReadOnly(kGolden, ReadOptions());
  const std::map<uint64_t, Row> expected = ExpectedRows();
  const std::vector<uint64_t> keys = Keys(0, 300);
  std::vector<Row> rows(keys.size());
  std::vector<uint8_t> found(keys.size());
  EXPECT_EQ(store->Get(keys, reinterpret_cast<std::byte*>(rows.data()), found.data()),
            expected.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto row = expected.find(keys[i]);
    ASSERT_EQ(found[i], row != expected.end()) << keys[i];
    if (found[i]) {
      ASSERT_EQ(rows[i], row->second) << keys[i];
    }
  }
}

TEST(DiskFormat, AnOldStoreIsClean) {
  const VerifyReport report = VerifyStore(PosixEnv(), kGolden, {});
  EXPECT_EQ(report.problems, std::vector<std::string>{});
  EXPECT_EQ(report.files, 6);
  EXPECT_EQ(report.rows, 143);  // 100 in the bases; 40 and 3 in the logs
}

TEST(DiskFormat, IsWrittenAsItAlwaysWas) {
  const TestDir dir;
  // TERRACE_WRITE_GOLDEN=1 writes the golden store itself.
  const bool anew = std::getenv("TERRACE_WRITE_GOLDEN") != nullptr;
  WriteStore(anew ? kGolden : dir.path());
  if (anew) PosixEnv().Remove(kGolden + "/LOCK");
  const auto expected = Files(kGolden), written = Files(anew ? kGolden : dir.path());
  const std::string advice =
      "If bytes on disk mean something else now: raise the version in disk_manifest.h and in "
      "docs/disk_format.md, and keep reading version 1 or refuse it. If only the numbers of files "
      "have changed: remove tests/golden/disk_v1 and run this test with TERRACE_WRITE_GOLDEN=1.";
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(written.contains(name)) << name << " is not written any more. " << advice;
    EXPECT_TRUE(written.at(name) == bytes) << name << " is not what it was. " << advice;
  }
  EXPECT_EQ(written.size(), expected.size()) << advice;
}

}  // namespace
}  // namespace terrace
