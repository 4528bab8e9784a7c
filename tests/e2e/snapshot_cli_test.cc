// Commands on snapshots from the shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/snapshot_testing.h"
#include "command.h"

namespace terrace {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SnapshotCommand : public ::testing::Test {
 protected:
  SnapshotCommand() {
    WriteTestSnapshots(dir_.path());
    std::filesystem::remove_all(dir_.path() + "/live");
  }
  CommandResult Run(const std::string& line) { return RunCommand(line, dir_.path()); }
  void Flip(const std::string& name, size_t at) {
    std::string bytes = dir_.Read(name);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::filesystem::remove(dir_.path() + "/" + name);
    dir_.Write(name, bytes);
  }

  const ScratchDir dir_;
};

TEST_F(SnapshotCommand, ListShowsEachWithWhatItTakes) {
  CommandResult r = Run("terrace snapshot list snapshots");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("1,000 +2026-01-31T12:00:01Z +0 +64,000 +200 "));
  EXPECT_THAT(r.output, ContainsRegex("2,000 +2026-01-31T12:00:02Z +1 +128,000 +"));
  EXPECT_THAT(r.output, ContainsRegex("\n2 snapshots, [0-9.]+ KiB on disk\n"));
  EXPECT_THAT(Run("terrace snapshot list snapshots --json").output,
              AllOf(HasSubstr("\"batch\": 2000"), HasSubstr("\"own_bytes\": ")));
  Flip("snapshots/000000001000/MANIFEST", 40);
  r = Run("terrace snapshot list snapshots");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, ContainsRegex("1,000 +cannot be read"));
  EXPECT_THAT(r.output, HasSubstr("000000001000/MANIFEST: its checksum is wrong"));
  EXPECT_EQ(Run("terrace snapshot list snapshots/000000002000").exit_code, 2);
  EXPECT_EQ(Run("terrace snapshot list absent").exit_code, 2);
}

TEST_F(SnapshotCommand, InspectTakesOneOrTheLatest) {
  CommandResult r = Run("terrace inspect snapshots");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("snapshot +snapshots/000000002000\n"));
  EXPECT_THAT(r.output, HasSubstr("resumed from snapshots/000000001000"));
  EXPECT_THAT(r.output, ContainsRegex("users +102 +44 "));
  EXPECT_THAT(r.output, ContainsRegex("users +0x0000000000000003 +3.5 +997 +249.25 +7\n"));
  EXPECT_THAT(r.output, ContainsRegex("deep.0.weight +2 x 2 +4 +5\n"));
  r = Run("terrace inspect snapshots/000000001000 --hottest 1");
  EXPECT_THAT(r.output, AllOf(HasSubstr("0x0000000000000001"), Not(HasSubstr("lineage"))));
  r = Run("terrace inspect snapshots --quick");
  EXPECT_THAT(r.output, Not(HasSubstr("median")));
  EXPECT_THAT(Run("terrace inspect snapshots --json").output, HasSubstr("\"median\": "));
  EXPECT_EQ(Run("terrace inspect snapshots/000000001000/tables --partitions").exit_code, 0);
  EXPECT_EQ(Run("terrace inspect snapshots --partitions").exit_code, 2);
}

TEST_F(SnapshotCommand, VerifyNamesEveryProblem) {
  CommandResult r =
      Run("find snapshots | sort > before; terrace verify snapshots --all; code=$?; "
          "find snapshots | sort | cmp - before && exit $code");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("000000001000: clean: 2 files"));
  EXPECT_THAT(r.output, HasSubstr("000000002000 users: clean: "));
  Flip("snapshots/000000001000/dense", 3);
  Flip("snapshots/000000001000/tables/ads/MANIFEST", 60);
  for (const auto& entry :
       std::filesystem::directory_iterator(dir_.path() + "/snapshots/000000001000/tables/users")) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".base")) Flip("snapshots/000000001000/tables/users/" + name, 100);
  }
  r = Run("terrace verify snapshots/000000001000");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("000000001000/dense: its hash is "));
  EXPECT_THAT(r.output, HasSubstr("tables/ads/MANIFEST: is not the one"));
  EXPECT_THAT(r.output, ContainsRegex("tables/users/[0-9]+.base: page 0: its checksum is"));
  EXPECT_THAT(r.output, HasSubstr("snapshots/000000001000: is damaged, problems: 4"));
  EXPECT_EQ(Run("terrace verify snapshots").exit_code, 0);
  EXPECT_EQ(Run("terrace verify snapshots --all").exit_code, 1);
  EXPECT_EQ(Run("terrace verify snapshots/000000002000 --all").exit_code, 2);
  Flip("snapshots/000000002000/MANIFEST", 2);
  r = Run("terrace verify snapshots");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("000000002000/MANIFEST: line 1: expected"));
}

TEST_F(SnapshotCommand, DiffShowsRowsAndTheDensePart) {
  CommandResult r =
      Run("terrace snapshot diff snapshots/000000001000 snapshots/000000002000 --keys 2");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("ads +0 +0 +0 +100 +- +-\n"));
  EXPECT_THAT(r.output, ContainsRegex("users +4 +2 +3 +95 +0.5 +0.5\n"));
  EXPECT_THAT(r.output, ContainsRegex("users removed: 0x[12] 0x[12]\n"));
  EXPECT_THAT(r.output, ContainsRegex("deep.0.bias +2.23607 +5.09902 +3\n"));
  r = Run("terrace snapshot diff snapshots snapshots --json");
  EXPECT_THAT(r.output, HasSubstr("\"changed\": 0"));
  EXPECT_EQ(Run("terrace snapshot diff snapshots absent").exit_code, 2);
}

TEST_F(SnapshotCommand, ExportNeedsATableOfThisName) {
  CommandResult r = Run("terrace export snapshots --to rows.tsv");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("name one with --table: ads, users"));
  r = Run("terrace export snapshots --table users --to rows.tsv && wc -l < rows.tsv");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("102 rows of table users: rows.tsv\n103\n"));
  EXPECT_EQ(Run("terrace export snapshots --table users --to rows.csv").exit_code, 2);
  r = Run("terrace export snapshots --table nobody --to rows.tsv");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.output, HasSubstr("its tables: ads, users"));
}

TEST_F(SnapshotCommand, NumpyReadsWhatIsExported) {
  const CommandResult r =
      Run("terrace export snapshots/000000001000 --table users --to rows.npy --state && "
          "/usr/bin/python3 -c '\n"
          "import numpy\n"
          "w = numpy.load(\"rows.npy\", mmap_mode=\"r\"); k = numpy.load(\"rows.keys.npy\")\n"
          "s = numpy.load(\"rows.stats.npy\"); t = numpy.load(\"rows.state.npy\")\n"
          "assert w.shape == (100, 4) and w.dtype == numpy.float32 and t.shape == (100, 4)\n"
          "assert (w[:, 0] == k).all() and (s[\"show\"] == 1000 - k).all() and (t == 0.5).all()\n"
          "'");
  EXPECT_EQ(r.exit_code, 0) << r.output;
}

TEST_F(SnapshotCommand, DeletedRowsAreGoneFromOneSnapshotOrFromAll) {
  dir_.Write("keys", "7\n8\n101\n");
  CommandResult r = Run("terrace rows find snapshots --keys keys");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("000000001000 users: 2 of 3 keys have a row"));
  EXPECT_THAT(r.output, HasSubstr("000000002000 users: 3 of 3 keys have a row"));
  r = Run("terrace rows delete snapshots/000000001000/ --keys keys");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("\n4 rows deleted\nthe other snapshot in snapshots holds"));
  EXPECT_EQ(Run("terrace rows find snapshots/000000001000 --keys keys").exit_code, 0);
  EXPECT_EQ(Run("terrace rows find snapshots/000000002000 --keys keys").exit_code, 1);
  r = Run("terrace inspect snapshots/000000001000");
  EXPECT_THAT(r.output, HasSubstr("rows of 3 keys deleted"));
  EXPECT_THAT(r.output, ContainsRegex("users +98 +44 "));
  EXPECT_EQ(Run("terrace verify snapshots --all").exit_code, 0);

  r = Run("terrace rows delete snapshots --keys keys");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("\n5 rows deleted\n"));
  r = Run("terrace rows find snapshots --keys keys");
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(Run("terrace verify snapshots --all").exit_code, 0);
}

TEST_F(SnapshotCommand, RowsStayWhileARunWritesThere) {
  dir_.Write("keys", "7\n");
  const auto lock = LockSnapshots(PosixEnv(), dir_.path() + "/snapshots");
  const CommandResult r = Run("terrace rows delete snapshots --keys keys");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, HasSubstr("another process has it open"));
  EXPECT_EQ(Run("terrace rows find snapshots --keys keys").exit_code, 1);
}

TEST_F(SnapshotCommand, HelpTeaches) {
  for (const char* command : {"snapshot", "snapshot list", "snapshot diff", "export", "inspect"})
    EXPECT_THAT(Run(std::string("terrace ") + command + " --help").output, HasSubstr("terrace "))
        << command;
}

}  // namespace
}  // namespace terrace
