#include "tier/disk_manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kBody =
    "terrace disk store 1\n"
    "row_bytes 24\n"
    "page_bytes 512\n"
    "partitions 4\n"
    "commit 7\n"
    "next_file 21\n"
    "partition 0 base 3:2:16 log 4:1 log 20:9\n"
    "partition 1\n"
    "partition 2 log 5:1\n"
    "partition 3 base 6:1:15\n";

std::string Signed(const std::string& body) {
  return body + fmt::format("checksum {:016x}\n", HashBytes(body, 0));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// What reading it fails with.
std::string Failure(const std::string& text) {
  try {
    DiskManifest::Parse(text, "MANIFEST");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruption) << e.what();
    return e.what();
  }
  return "";
}

TEST(DiskManifest, ReadsWhatItSays) {
  const DiskManifest manifest = DiskManifest::Parse(Signed(kBody), "MANIFEST");
  EXPECT_EQ(manifest.layout.row_bytes, 24u);
  EXPECT_EQ(manifest.layout.page_bytes, 512u);
  EXPECT_EQ(manifest.layout.partitions(), 4);
  EXPECT_EQ(manifest.commit, 7u);
  EXPECT_EQ(manifest.next_file, 21u);
  EXPECT_EQ(manifest.rows(), 31);
  ASSERT_EQ(manifest.partitions.size(), 4u);
  EXPECT_EQ(manifest.partitions[0].base.file, 3u);
  EXPECT_EQ(manifest.partitions[0].base.pages, 2);
  EXPECT_EQ(manifest.partitions[0].base.rows, 16);
  ASSERT_EQ(manifest.partitions[0].logs.size(), 2u);
  EXPECT_EQ(manifest.partitions[0].logs[1].file, 20u);
  EXPECT_EQ(manifest.partitions[0].logs[1].pages, 9);
  EXPECT_EQ(manifest.partitions[1].base.file, 0u);
  EXPECT_EQ(manifest.partitions[2].base.file, 0u);
  EXPECT_EQ(manifest.ToText(), Signed(kBody));
}

TEST(DiskManifest, AnyCutOrFlippedByteIsADamage) {
  const std::string text = Signed(kBody);
  for (size_t i = 0; i < text.size(); ++i) {
    ASSERT_NE(Failure(text.substr(0, i)), "") << i;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    ASSERT_NE(Failure(flipped), "") << i;
  }
  EXPECT_NE(Failure(text + "\n"), "");
}

struct Hostile {
  const char* name;
  const char* from;
  const char* to;
  const char* failure;  // its beginning, behind the file's name
};

class DiskManifestText : public ::testing::TestWithParam<Hostile> {};

TEST_P(DiskManifestText, HostileTextIsADamageAtItsLine) {
  const Hostile& h = GetParam();
  EXPECT_THAT(Failure(Signed(Replaced(kBody, h.from, h.to))),
              StartsWith(std::string("MANIFEST: ") + h.failure));
}

INSTANTIATE_TEST_SUITE_P(
    Each, DiskManifestText,
    ::testing::Values(
        Hostile{"Word", "row_bytes", "row_bites", "line 2: expected \"row_bytes \""},
        Hostile{"SmallRow", "row_bytes 24", "row_bytes 15", "line 2: expected row_bytes from 16"},
        Hostile{"LargeRow", "row_bytes 24", "row_bytes 2049", "line 2: expected row_bytes from"},
        Hostile{"NoNumber", "row_bytes 24", "row_bytes ", "line 2: expected row_bytes from"},
        Hostile{"Negative", "row_bytes 24", "row_bytes -24", "line 2: expected row_bytes from"},
        Hostile{"Huge", "commit 7", "commit 99999999999999999999", "line 5: expected commit from"},
        Hostile{"Junk", "row_bytes 24", "row_bytes 24x", "line 2: expected \"\n\""},
        Hostile{"SmallPage", "page_bytes 512", "page_bytes 256", "line 3: expected page_bytes"},
        Hostile{"OddPage", "page_bytes 512", "page_bytes 513", "line 5: expected powers of two"},
        Hostile{"RowOverPage", "row_bytes 24", "row_bytes 496", "line 5: expected powers of two"},
        Hostile{"OddPartitions", "partitions 4", "partitions 3", "line 5: expected powers of two"},
        Hostile{"NoPartitions", "partitions 4", "partitions 0", "line 4: expected partitions from"},
        Hostile{"MorePartitions", "partitions 4", "partitions 8", "line 11: expected \"partition"},
        Hostile{"FewerPartitions", "partitions 4", "partitions 2", "line 9: expected the end"},
        Hostile{"NoFile", "next_file 21", "next_file 0", "line 6: expected next_file from 1"},
        Hostile{"FileNotBelowNext", "next_file 21", "next_file 20",
                "line 7: expected a file number from 1 to 19"},
        Hostile{"FileZero", "log 5:1", "log 0:1", "line 9: expected a file number"},
        Hostile{"FileTwice", "log 5:1", "log 4:1", "line 9: expected a file that no other"},
        Hostile{"Order", "partition 1\n", "partition 2\n", "line 8: expected \"partition 1\""},
        Hostile{"NoPages", "log 5:1", "log 5:0", "line 9: expected pages from 1"},
        Hostile{"ManyPages", "log 5:1", "log 5:9999999999999", "line 9: expected pages from 1"},
        Hostile{"NoRows", "6:1:15", "6:1:0", "line 10: expected rows from 1"},
        Hostile{"RowsOverPages", "6:1:15", "6:1:16", "line 11: expected a base whose pages"},
        Hostile{"RowsUnderPages", "3:2:16", "3:2:15", "line 8: expected a base whose pages"},
        Hostile{"TwoBases", "6:1:15", "6:1:15 base 7:1:15", "line 10: expected \"\n\""},
        Hostile{"NoColon", "log 5:1", "log 5 1", "line 9: expected \":\""}),
    [](const auto& test) { return test.param.name; });

TEST(DiskManifest, MorePagesThanBytesCanBeCountedAreADamage) {
  std::string logs = "log 5:1";
  for (int file = 100; file < 400; ++file) logs += fmt::format(" log {}:4294967295", file);
  const std::string body =
      Replaced(Replaced(kBody, "next_file 21", "next_file 999"), "log 5:1", logs);
  EXPECT_THAT(Failure(Signed(body)), HasSubstr("line 10: expected at most 1099511627776 pages"));
}

TEST(DiskManifest, AnotherVersionIsNamedWhateverFollows) {
  const std::string other = Replaced(kBody, "store 1", "store 2");
  for (const std::string& text : {other, Signed(other), std::string("terrace disk store 2 x")})
    EXPECT_THAT(Failure(text), HasSubstr("MANIFEST: format version 2, this program reads 1"));
}

TEST(DiskManifest, AnotherFileIsNotOne) {
  EXPECT_THAT(Failure(""), StartsWith("MANIFEST: line 1: expected \"terrace disk store\""));
  EXPECT_THAT(Failure("[package]\n"), HasSubstr("not a store's manifest"));
}

TEST(DiskManifest, FileNamesAreNumbers) {
  EXPECT_EQ(BasePath("d", 12), "d/00000012.base");
  EXPECT_EQ(LogPath("d", 123456789), "d/123456789.log");
  EXPECT_EQ(FileNumber("00000012.base"), 12u);
  EXPECT_EQ(FileNumber("123456789.log"), 123456789u);
  for (const char* other : {"MANIFEST", "LOCK", "a.base", "12.bas", "12x.log", ".log", "1.x.log"})
    EXPECT_EQ(FileNumber(other), 0u) << other;
}

}  // namespace
}  // namespace terrace
