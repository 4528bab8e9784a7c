// The format of snapshots does not change by accident: two that version 1 wrote are in
// tests/golden/snapshots_v1 and are never written again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/test_dir.h"
#include "cli/snapshot_diff.h"
#include "cli/snapshot_testing.h"

namespace terrace {
namespace {

const std::string kGolden = std::string(TERRACE_SOURCE_DIR) + "/tests/golden/snapshots_v1";

// By path, but for locks.
std::map<std::string, std::string> Files(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
    if (entry.is_regular_file() && entry.path().filename() != "LOCK")
      files[entry.path().lexically_relative(dir)] = ReadWholeFile(PosixEnv(), entry.path());
  return files;
}

TEST(SnapshotFormat, OldSnapshotsReadAsTheyWereWritten) {
  const SnapshotView before(PosixEnv(), kGolden + "/000000001000"), after(PosixEnv(), kGolden);
  EXPECT_EQ(after.info().batch, 2000);
  EXPECT_EQ(after.info().examples, 128000);
  EXPECT_EQ(after.info().epoch, 1);
  const SnapshotDiff diff = DiffSnapshots(before, after, {});
  ASSERT_EQ(diff.tables.size(), 2u);
  EXPECT_EQ(diff.tables[0].rows.same, 100);
  EXPECT_EQ(diff.tables[1].rows.same, 95);
  EXPECT_EQ(diff.tables[1].max_change, 0.5);
  EXPECT_EQ(ReadDense(after.snapshot()).params, (std::vector<float>{3, 4, 0, 0, 5, 1}));
  for (const SnapshotTable& table : after.info().tables)
    EXPECT_TRUE(
        VerifyStore(PosixEnv(), after.snapshot().TablePath(table.name), {}).problems.empty());
}

TEST(SnapshotFormat, IsWrittenAsItAlwaysWas) {
  const TestDir dir;
  WriteTestSnapshots(dir.path());
  // TERRACE_WRITE_GOLDEN=1 writes the golden snapshots themselves.
  if (std::getenv("TERRACE_WRITE_GOLDEN") != nullptr) {
    std::filesystem::copy(dir.path() + "/snapshots", kGolden,
                          std::filesystem::copy_options::recursive);
    std::filesystem::remove(kGolden + "/LOCK");
  }
  const auto expected = Files(kGolden), written = Files(dir.path() + "/snapshots");
  const std::string advice =
      "If bytes on disk mean something else now: raise the version in snapshot_manifest.h and in "
      "docs/snapshots.md, and keep reading version 1 or refuse it. If only the numbers of files "
      "have changed: remove tests/golden/snapshots_v1 and run this test with "
      "TERRACE_WRITE_GOLDEN=1.";
  for (const auto& [name, bytes] : expected) {
    ASSERT_TRUE(written.contains(name)) << name << " is not written any more. " << advice;
    EXPECT_TRUE(written.at(name) == bytes) << name << " is not what it was. " << advice;
  }
  EXPECT_EQ(written.size(), expected.size()) << advice;
}

}  // namespace
}  // namespace terrace
