// `terrace inspect` and `terrace verify` from the shell, on a whole and on a damaged store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"

namespace terrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class StoreCommand : public ::testing::Test {
 protected:
  StoreCommand() {
    std::filesystem::create_directory(dir_.path() + "/model");
    for (const char* name : {"ads", "users"})
      std::filesystem::copy(std::string(TERRACE_SOURCE_DIR) + "/tests/golden/disk_v1",
                            dir_.path() + "/model/" + name, kTree);
  }
  void Flip(const std::string& name, size_t at) {
    std::string bytes = dir_.Read(name);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    dir_.Write(name, bytes);
  }
  CommandResult Run(const std::string& line) { return RunCommand(line, dir_.path()); }

  static constexpr auto kTree = std::filesystem::copy_options::recursive;
  const ScratchDir dir_;
};

TEST_F(StoreCommand, InspectShowsOneStoreOrAllBelow) {
  CommandResult r = Run("terrace inspect model/ads");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("ads +108 - 138 +24 +512 +2 +2\n"));
  r = Run("terrace inspect model --partitions");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("ads +108 - 138.*\nusers +108 - 138"));
  EXPECT_THAT(r.output, HasSubstr("model/users\n"));
  r = Run("terrace inspect model --json");
  EXPECT_THAT(r.output, StartsWith("{\n  \"tables\": ["));
}

TEST_F(StoreCommand, VerifyOfAWholeStoreIsCleanAndChangesNothing) {
  const CommandResult r =
      Run("find model | sort > before; terrace verify model; code=$?; "
          "find model | sort | cmp - before && exit $code");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("ads: clean: 6 files, 14 pages, 143 rows, 7.00 KiB in .* MB/s"
                                      "\nusers: clean: "));
}

TEST_F(StoreCommand, VerifyNamesEachDamagedFileAndPage) {
  Flip("model/ads/00000002.base", 2 * 512 + 100);
  Flip("model/ads/00000002.base", 4 * 512);  // a fence
  Flip("model/ads/00000006.log", 511);
  std::filesystem::remove(dir_.path() + "/model/ads/00000007.log");
  const CommandResult r = Run("terrace verify model");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("model/ads/00000002.base: fences and filter, from page 4, are"));
  EXPECT_THAT(r.output, HasSubstr("model/ads/00000002.base: page 2: its checksum is"));
  EXPECT_THAT(r.output, HasSubstr("model/ads/00000006.log: page 0: its checksum is"));
  EXPECT_THAT(r.output, HasSubstr("model/ads/00000007.log: cannot open: No such file"));
  EXPECT_THAT(r.output, HasSubstr("ads: damaged: 6 files"));
  EXPECT_THAT(r.output, HasSubstr("users: clean: 6 files"));
  EXPECT_THAT(r.output, HasSubstr("terrace: model: 1 of 2 stores is damaged, problems: 4;"));
}

TEST_F(StoreCommand, ADamagedManifestIsNamed) {
  Flip("model/users/MANIFEST", 30);
  CommandResult r = Run("terrace verify model");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("model/users/MANIFEST: its checksum is wrong"));
  EXPECT_THAT(r.output, HasSubstr("ads: clean: "));
  r = Run("terrace inspect model/users");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, StartsWith("terrace: model/users/MANIFEST: its checksum is wrong"));
}

// Keys of the golden store are cubes; 1000 was deleted, but its row is still in a base.
TEST_F(StoreCommand, RowsAreFoundWithTheirTracesAndGoneAfterDelete) {
  dir_.Write("keys", "27\n0x7d\n\n1000\n28\n");
  CommandResult r = Run("terrace rows find model/ads --keys keys");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("ads: 27 has a row\nads: 0x7d has a row\n"));
  EXPECT_THAT(r.output, ContainsRegex("ads: 1000 stands in [0-9]+\\.base at byte "));
  EXPECT_THAT(r.output, HasSubstr("ads: 2 of 4 keys have a row; "));
  r = Run("terrace rows delete model/ads --keys keys");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("ads: 2 of 4 keys had a row"));
  EXPECT_THAT(r.output, HasSubstr("\n2 rows deleted\n"));
  r = Run("terrace rows find model/ads --keys keys");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("ads: 0 of 4 keys have a row; 0 traces in [0-9]+ files"));
  EXPECT_THAT(Run("terrace verify model/ads").output, HasSubstr("ads: clean: "));
  EXPECT_THAT(Run("terrace inspect model/ads").output, ContainsRegex("ads +106 +24"));
  // The other store is another one.
  EXPECT_EQ(Run("terrace rows find model --keys keys").exit_code, 1);
  EXPECT_EQ(Run("terrace rows delete model --keys - < keys").exit_code, 0);
  EXPECT_EQ(Run("terrace rows find model --keys keys").exit_code, 0);
}

TEST_F(StoreCommand, RowsOfBadKeysAreRefusedAndNothingChanges) {
  dir_.Write("keys", "27\nuser7\n");
  CommandResult r = Run("terrace rows delete model/ads --keys keys");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("keys:2: \"user7\" is not a key; expected one a line"));
  EXPECT_THAT(r.output, HasSubstr("--slot NAME"));
  EXPECT_THAT(Run("terrace inspect model/ads").output, ContainsRegex("ads +108 - 138"));
  dir_.Write("empty", "\n");
  EXPECT_EQ(Run("terrace rows find model/ads --keys empty").exit_code, 2);
  EXPECT_EQ(Run("terrace rows find model/ads --keys absent").exit_code, 1);
  EXPECT_EQ(Run("terrace rows find model/ads --keys keys --integers").exit_code, 2);
  EXPECT_EQ(Run("terrace rows find model/ads --keys keys --slot u").exit_code, 0);
}

TEST_F(StoreCommand, WrongUsageHasExitCode2) {
  dir_.Write("file", "x");
  for (const std::string command : {"inspect", "verify"}) {
    CommandResult r = Run("terrace " + command + " absent");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_EQ(r.output, "terrace: absent: there is no such directory\n");
    r = Run("terrace " + command + " file");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.output, HasSubstr("file: not a directory"));
    r = Run("terrace " + command + " examples");
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.output, HasSubstr("examples: holds no store: there is no MANIFEST"));
    EXPECT_EQ(Run("terrace " + command).exit_code, 2);
    EXPECT_EQ(Run("terrace " + command + " --help").exit_code, 0);
  }
}

}  // namespace
}  // namespace terrace
