#include "cli/row_keys.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_dir.h"
#include "data/features.h"

namespace terrace {
namespace {

std::vector<NamedKey> Read(const std::string& text, const std::string& slot = "",
                           bool integers = false) {
  TestDir dir;
  WriteFileAtomically(PosixEnv(), dir.path() + "/keys", text);
  return ReadRowKeys(PosixEnv(), {dir.path() + "/keys", slot, integers});
}

TEST(RowKeys, AreNumbersInDecimalOrHexadecimal) {
  const auto keys = Read("7\n0xff\n\n18446744073709551615");
  ASSERT_EQ(keys.size(), 3u);
  EXPECT_EQ(keys[0].key, 7u);
  EXPECT_EQ(keys[1].key, 255u);
  EXPECT_EQ(keys[2].key, UINT64_MAX);
  EXPECT_EQ(keys[1].name, "0xff");
}

TEST(RowKeys, ValuesOfASlotBecomeTheKeysThatTrainingMakes) {
  EXPECT_EQ(Read("ann\r\nbob b\n", "user")[1].key, TextKey(SlotSeed("user"), "bob b"));
  EXPECT_EQ(Read("ann\r\n", "user")[0].key, TextKey(SlotSeed("user"), "ann"));
  EXPECT_EQ(Read("12\n", "user")[0].key, TextKey(SlotSeed("user"), "12"));
  EXPECT_EQ(Read("12\n", "user", true)[0].key, IntegerKey(SlotSeed("user"), 12));
  EXPECT_EQ(Read("-3\n", "user", true)[0].key,
            IntegerKey(SlotSeed("user"), static_cast<uint64_t>(int64_t{-3})));
}

TEST(RowKeys, ALineThatIsNoKeyIsNamed) {
  for (const std::string bad : {"x", "1 ", "-1", "0x", "1.5", "18446744073709551616"}) {
    try {
      Read("5\n" + bad + "\n");
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kData);
      EXPECT_NE(std::string(e.what()).find(":2: \"" + bad + "\" is not a key"), std::string::npos)
          << e.what();
    }
  }
  EXPECT_THROW(Read("\n\n"), Error);
}

}  // namespace
}  // namespace terrace
