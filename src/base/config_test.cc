#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;

enum class Color { kRed, kGreen };

struct Item {
  std::string name;
  int64_t size = 1;
  void Visit(ConfigVisitor& v) {
    v.String("name", &name, "its name");
    v.Int("size", &size, {1, 9}, "its size");
  }
};

struct Inner {
  double rate = 0.5;
  int64_t budget = 0;
  Color color = Color::kRed;
  void Visit(ConfigVisitor& v) {
    v.Double("rate", &rate, {0, 1}, "a share");
    v.Bytes("budget", &budget, "bytes");
    v.Enum("color", &color, {"red", "green"}, "a color");
  }
};

struct Outer {
  int64_t batch = 10;
  bool flag = false;
  std::vector<std::string> files;
  std::vector<int64_t> sizes = {1, 2};
  std::vector<double> clip;
  std::vector<Item> items;
  Inner inner;
  std::map<std::string, Inner> named;
  void Visit(ConfigVisitor& v) {
    v.Int("batch", &batch, {1, 100}, "how many");
    v.Bool("flag", &flag, "on or off");
    v.Strings("files", &files, "paths");
    v.Ints("sizes", &sizes, {1}, "sizes");
    v.Doubles("clip", &clip, "limits");
    v.List("items", &items, "things");
    v.Table("inner", &inner, "nested");
    v.Map("named", &named, "by name");
  }
};

Outer Read(const ConfigFile& file) {
  Outer outer;
  file.Read([&](ConfigVisitor& v) { outer.Visit(v); });
  return outer;
}
Outer Read(std::string_view text) { return Read(ConfigFile::Parse(text, "run.toml")); }

std::string ErrorOf(std::string_view text, const std::vector<std::string>& sets = {}) {
  try {
    ConfigFile file = ConfigFile::Parse(text, "run.toml");
    for (const std::string& s : sets) file.Set(s);
    Read(file);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.what();
  }
  return "no error";
}

TEST(Config, ReadsEveryKindOfValue) {
  const Outer c = Read(R"(
batch = 20
flag = true
files = "one.tsv"
sizes = [4, 5]
clip = [-1, 2.5]
items = ["a", {name = "b", size = 3}]
[inner]
rate = 1
budget = "1.5 KiB"
color = "green"
[named.x]
rate = 0.25
)");
  EXPECT_EQ(c.batch, 20);
  EXPECT_TRUE(c.flag);
  EXPECT_THAT(c.files, ElementsAre("one.tsv"));
  EXPECT_THAT(c.sizes, ElementsAre(4, 5));
  EXPECT_THAT(c.clip, ElementsAre(-1, 2.5));
  ASSERT_EQ(c.items.size(), 2u);
  EXPECT_EQ(c.items[0].name, "a");
  EXPECT_EQ(c.items[1].size, 3);
  EXPECT_EQ(c.inner.rate, 1);
  EXPECT_EQ(c.inner.budget, 1536);
  EXPECT_EQ(c.inner.color, Color::kGreen);
  EXPECT_EQ(c.named.at("x").rate, 0.25);
}

TEST(Config, KeepsDefaultsOfWhatIsNotNamed) {
  const Outer c = Read("");
  EXPECT_EQ(c.batch, 10);
  EXPECT_THAT(c.sizes, ElementsAre(1, 2));
}

TEST(Config, NamesLineAndNearestKeyOfAnUnknownOne) {
  EXPECT_EQ(ErrorOf("flag = true\nbacth = 5"),
            "run.toml:2: unknown key `bacth`; did you mean `batch`?");
  EXPECT_EQ(ErrorOf("[inner]\nrate = 0.1\ncolour = \"red\""),
            "run.toml:3: unknown key `inner.colour`; did you mean `inner.color`?");
  EXPECT_EQ(ErrorOf("[inner]\nzzzzzzzz = 1"),
            "run.toml:2: unknown key `inner.zzzzzzzz`; expected one of: rate, budget, color");
  EXPECT_EQ(ErrorOf("items = [{nam = \"a\"}]"),
            "run.toml:1: unknown key `items[0].nam`; did you mean `items[0].name`?");
}

TEST(Config, SaysWhatItFoundAndWhatItExpected) {
  EXPECT_EQ(ErrorOf("batch = \"many\""),
            "run.toml:1: `batch` is \"many\", expected a whole number from 1 to 100");
  EXPECT_EQ(ErrorOf("batch = 0"),
            "run.toml:1: `batch` is 0, expected a whole number from 1 to 100");
  EXPECT_EQ(ErrorOf("batch = 2.5"),
            "run.toml:1: `batch` is 2.5, expected a whole number from 1 to 100");
  EXPECT_EQ(ErrorOf("flag = 1"), "run.toml:1: `flag` is 1, expected true or false");
  EXPECT_EQ(ErrorOf("[inner]\ncolor = \"blue\""),
            "run.toml:2: `inner.color` is \"blue\", expected one of \"red\", \"green\"");
  EXPECT_EQ(ErrorOf("[inner]\nrate = 2"),
            "run.toml:2: `inner.rate` is 2, expected a number from 0 to 1");
  EXPECT_EQ(ErrorOf("[inner]\nrate = nan"),
            "run.toml:2: `inner.rate` is nan, expected a finite number");
  EXPECT_EQ(ErrorOf("[inner]\nbudget = \"12 parsecs\""),
            "run.toml:2: `inner.budget` is \"12 parsecs\", expected a size such as \"512MiB\" or a "
            "number of bytes");
  EXPECT_EQ(ErrorOf("inner = 3"), "run.toml:1: `inner` is 3, expected a table [inner]");
}

TEST(Config, ReportsBrokenTomlWithItsLine) {
  EXPECT_THAT(ErrorOf("batch = 1\nflag = = 2"), ::testing::StartsWith("run.toml:2: "));
}

TEST(Config, SetLaysValuesOverTheFile) {
  ConfigFile file = ConfigFile::Parse("batch = 1\n[inner]\nrate = 0.5", "run.toml");
  file.Set("batch=7");
  file.Set("inner.color=green");  // not TOML: taken as a string
  file.Set("files=/data/day_*.gz");
  file.Set("named.new.rate=0.1");
  file.Set("sizes=[9]");
  const Outer c = Read(file);
  EXPECT_EQ(c.batch, 7);
  EXPECT_EQ(c.inner.color, Color::kGreen);
  EXPECT_EQ(c.inner.rate, 0.5);
  EXPECT_THAT(c.files, ElementsAre("/data/day_*.gz"));
  EXPECT_EQ(c.named.at("new").rate, 0.1);
  EXPECT_THAT(c.sizes, ElementsAre(9));
}

TEST(Config, BlamesTheCommandLineForItsOwnMistakes) {
  EXPECT_EQ(ErrorOf("", {"bach=7"}), "--set bach: unknown key `bach`; did you mean `batch`?");
  EXPECT_EQ(ErrorOf("", {"inner.rate=7"}),
            "--set inner.rate: `inner.rate` is 7, expected a number from 0 to 1");
  EXPECT_EQ(ErrorOf("", {"batch"}),
            "--set batch: expected key.name=value, e.g. --set train.batch=1024");
}

TEST(Config, PrintedConfigReadsBackToTheSame) {
  Outer c = Read(
      "batch = 3\nfiles = [\"a \\\"b\\\"\"]\nitems = [\"x\", {name=\"y\", size=4}]\n"
      "[inner]\ncolor = \"green\"\n[named.\"odd name\"]\nrate = 0.125");
  const std::string printed = PrintConfig([&](ConfigVisitor& v) { c.Visit(v); });
  Outer back = Read(printed);
  EXPECT_EQ(printed, PrintConfig([&](ConfigVisitor& v) { back.Visit(v); })) << printed;
  EXPECT_EQ(back.named.at("odd name").rate, 0.125);
  EXPECT_EQ(back.items[1].size, 4);
  EXPECT_THAT(printed, ::testing::HasSubstr("# how many"));
}

TEST(Config, ParsesSizes) {
  int64_t bytes = 0;
  EXPECT_TRUE(ParseBytes("512MiB", &bytes));
  EXPECT_EQ(bytes, 512 << 20);
  EXPECT_TRUE(ParseBytes("2 GB", &bytes));
  EXPECT_EQ(bytes, 2'000'000'000);
  EXPECT_TRUE(ParseBytes("77", &bytes));
  EXPECT_EQ(bytes, 77);
  for (const char* bad : {"", "GiB", "1.2.3MB", "5 apples", "-1KB", "1e99TB"})
    EXPECT_FALSE(ParseBytes(bad, &bytes)) << bad;
}

}  // namespace
}  // namespace terrace
