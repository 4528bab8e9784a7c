#include "checkpoint/snapshot_manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBody =
    "terrace snapshot 1\n"
    "batch 12000\n"
    "epoch 1\n"
    "examples 12288000\n"
    "created 2026-01-31T23:59:59Z\n"
    "program terrace 0.1.0\n"
    "lineage resumed from /data/run 1/000000006000\n"
    "lineage rows deleted\n"
    "table main row_bytes 72 rows 1000 to 1010 store 000102030405060708090a0b0c0d0e0f schema dim "
    "8\n"
    "table a%20b row_bytes 16 rows 0 to 0 store changing schema \n"
    "dense deep.0.weight 64x128\n"
    "dense deep.0.bias 128\n"
    "file config.toml 1234 ffffffffffffffff0000000000000000\n"
    "file admission-a%20b 0 00000000000000000000000000000001\n";

std::string Signed(const std::string& body) {
  return body + fmt::format("checksum {:016x}\n", HashBytes(body, 0));
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Failure(const std::string& text, ErrorCode code = ErrorCode::kCorruption) {
  try {
    SnapshotInfo::Parse(text, "MANIFEST");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "";
}

TEST(SnapshotManifest, ReadsWhatItSays) {
  const SnapshotInfo info = SnapshotInfo::Parse(Signed(kBody), "MANIFEST");
  EXPECT_EQ(info.batch, 12000);
  EXPECT_EQ(info.epoch, 1);
  EXPECT_EQ(info.examples, 12288000);
  EXPECT_EQ(info.created, "2026-01-31T23:59:59Z");
  EXPECT_EQ(info.program, "terrace 0.1.0");
  EXPECT_THAT(info.lineage, ElementsAre("resumed from /data/run 1/000000006000", "rows deleted"));
  ASSERT_EQ(info.tables.size(), 2u);
  const SnapshotTable& table = info.tables[0];
  EXPECT_EQ(table.name, "main");
  EXPECT_EQ(table.row_bytes, 72);
  EXPECT_EQ(table.rows_min, 1000);
  EXPECT_EQ(table.rows_max, 1010);
  EXPECT_TRUE(table.settled);
  EXPECT_EQ(table.store_hash, (Hash128{0x08090a0b0c0d0e0f, 0x0001020304050607}));
  EXPECT_EQ(table.schema, "dim 8");
  EXPECT_EQ(info.tables[1].name, "a b");
  EXPECT_FALSE(info.tables[1].settled);
  ASSERT_EQ(info.dense.size(), 2u);
  EXPECT_EQ(info.dense[0].name, "deep.0.weight");
  EXPECT_THAT(info.dense[0].shape, ElementsAre(64, 128));
  EXPECT_THAT(info.dense[1].shape, ElementsAre(128));
  ASSERT_NE(info.FindFile("admission-a%20b"), nullptr);
  EXPECT_EQ(info.FindFile("config.toml")->bytes, 1234);
  EXPECT_EQ(info.FindFile("other"), nullptr);
  EXPECT_EQ(info.FindTable("a b"), &info.tables[1]);
  EXPECT_EQ(info.ToText(), Signed(kBody));
}

TEST(SnapshotManifest, AnyCutOrFlippedByteIsADamage) {
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
  const char* from;
  const char* to;
  const char* says;
};
// With a checksum that is right.
constexpr Hostile kHostile[] = {
    {"batch 12000\n", "", "line 2: expected \"batch \""},
    {"batch 12000\n", "batch 12000\nbatch 12000\n", "line 3: expected \"epoch \""},
    {"batch 12000", "batch 1000000000000", "line 2: expected batch from 0 to 999999999999"},
    {"batch 12000", "batch -1", "line 2: expected batch from"},
    {"batch 12000", "batch 012000", "line 2: expected batch from"},
    {"batch 12000", "batch 0x10", "line 2: expected the end of the line"},
    {"examples 12288000", "examples 99999999999999999999999", "line 4: expected examples from"},
    {"2026-01-31T23:59:59Z", "yesterday", "line 5: expected a time"},
    {"program terrace", "program \tterrace", "line 6: expected text without control characters"},
    {"lineage rows deleted", "history rows deleted", "line 8: expected lineage, table, dense"},
    {"table main", "table ../main", "line 9: expected the name of a table"},
    {"table main", "table .main", "line 9: expected the name of a table"},
    {"table main", "table ma%69n", "line 9: expected the name of a table"},
    {"table main", "table ma%zzn", "line 9: expected the name of a table"},
    {"table main", "table main%", "line 9: expected the name of a table"},
    {"table main", "table a%20b", "line 10: expected a table that no line above names"},
    {"row_bytes 72", "row_bytes 0", "line 9: expected row_bytes from 1 to"},
    {"rows 1000 to 1010", "rows 1000 to 999", "line 9: expected rows from 1000 to"},
    {"000102030405", "00010203040", "line 9: expected a hash of 32"},
    {"000102030405060708090a", "000102030405060708090A", "line 9: expected a hash of 32"},
    {"store changing", "store gone", "line 10: expected a hash of 32"},
    {" schema dim 8", "", "line 9: expected \" schema \""},
    {"64x128", "64x0", "line 11: expected a dimension from 1"},
    {"64x128", "64x-1", "line 11: expected a dimension"},
    {"64x128", "16777216x16777217", "line 11: expected a dimension from 1 to 16777216"},
    {"64x128", "1x1x1x1x1x1x1x1x1", "line 11: expected the end of the line"},
    {"deep.0.weight", "deep.0.bias", "line 12: expected a dense block that no line above"},
    {"file config.toml", "file ../config.toml", "line 13: expected the name of a file"},
    {"file config.toml", "file a/b", "line 13: expected the name of a file"},
    {"file config.toml", "file ..", "line 13: expected the name of a file"},
    {"file config.toml", "file MANIFEST", "line 13: expected the name of a file"},
    {"file config.toml", "file tables", "line 13: expected the name of a file"},
    {"file config.toml", "file ", "line 13: expected the name of a file"},
    {"file config.toml", "file admission-a%20b", "line 14: expected a file that no line above"},
    {"1234 ", "9223372036854775807 ", "line 13: expected bytes from"},
    {"file admission-a%20b 0 00000000000000000000000000000001\n", "secret 1\n",
     "line 14: expected"},
    {"0001\n", "0001", "line 14: expected the end of the line"},
};

TEST(SnapshotManifest, WhatCannotBeIsRefusedWithItsLine) {
  for (const Hostile& hostile : kHostile) {
    const std::string text = Signed(Replaced(kBody, hostile.from, hostile.to));
    EXPECT_THAT(Failure(text), HasSubstr(hostile.says)) << hostile.to;
  }
}

TEST(SnapshotManifest, ANewerFormatAsksForItsProgram) {
  const std::string newer = Signed(Replaced(kBody, "snapshot 1\nbatch", "snapshot 2\nbatches"));
  EXPECT_THAT(Failure(newer, ErrorCode::kUsage), HasSubstr("written by a newer version"));
  EXPECT_THAT(Failure("terrace disk store 1\n", ErrorCode::kUsage), HasSubstr("a disk store"));
}

TEST(SnapshotManifest, TextIsKeptToItsLine) {
  SnapshotInfo info = SnapshotInfo::Parse(Signed(kBody), "MANIFEST");
  info.lineage = {"resumed from a\nfile b"};
  info.dense = {{"one number", {}}};
  const SnapshotInfo again = SnapshotInfo::Parse(info.ToText(), "MANIFEST");
  EXPECT_THAT(again.lineage, ElementsAre("resumed from a?file b"));
  EXPECT_EQ(again.dense[0].name, "one number");
  EXPECT_THAT(again.dense[0].shape, ElementsAre(1));
}

TEST(SnapshotManifest, NamesOfTablesBecomeNamesOfFiles) {
  EXPECT_EQ(EscapeName("user_id-2.b"), "user_id-2.b");
  EXPECT_EQ(EscapeName("../a"), "%2E.%2Fa");
  EXPECT_EQ(EscapeName("50%"), "50%25");
  EXPECT_THROW(EscapeName(""), Error);
  EXPECT_THROW(EscapeName(std::string(201, 'a')), Error);
  EXPECT_THROW(EscapeName(std::string(100, '/')), Error);
  EXPECT_TRUE(IsSnapshotFile(EscapeName("../a")));
}

}  // namespace
}  // namespace terrace
