#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Batch Read(const std::string& toml, const std::string& text) {
  MemoryEnv env;
  env.files["f"] = text;
  return ReadAll(env, DataConfigFrom("train = 'f'\n" + toml));
}

uint64_t Key(const char* slot, std::string_view value) { return TextKey(SlotSeed(slot), value); }

TEST(CriteoParser, ReadsLabelIntegersAndCategories) {
  std::string text = "1\t5\t\t-2\t100000";
  for (int i = 5; i <= 13; ++i) text += "\t" + std::to_string(i);
  for (int i = 1; i <= 26; ++i) text += i == 3 ? "\t" : "\tcat" + std::to_string(i);
  const Batch batch = Read("format = 'criteo'", text + "\n");
  ASSERT_EQ(batch.examples, 1);
  EXPECT_THAT(batch.labels, ElementsAre(1));
  EXPECT_EQ(batch.dense[0], static_cast<float>(std::log(6.0)));
  EXPECT_EQ(batch.dense[1], 0);
  EXPECT_EQ(batch.dense[2], -static_cast<float>(std::log(3.0)));
  EXPECT_EQ(batch.dense[3], static_cast<float>(std::log(100001.0)));
  EXPECT_EQ(batch.dense[12], static_cast<float>(std::log(14.0)));
  EXPECT_THAT(BagOf(batch, 0, 0, 0), ElementsAre(Key("C1", "cat1")));
  EXPECT_THAT(BagOf(batch, 0, 0, 2), ElementsAre(Key("C3", "")));
  EXPECT_THAT(BagOf(batch, 0, 0, 25), ElementsAre(Key("C26", "cat26")));
}

TEST(CsvParser, FindsColumnsByNameInAnyOrder) {
  const char* toml = "format = 'csv'\nslots = ['b', 'a']\ndense = ['x']";
  const Batch one = Read(toml, "label,a,b,x,unused\n1,A,B,2.5,?\n0,C,D,-1,?\n");
  const Batch other = Read(toml, "x,unused,b,label,a\n2.5,,B,1,A\n-1,,D,0,C\n");
  EXPECT_TRUE(SameExamples(one, other));
  EXPECT_THAT(one.groups[0].keys,
              ElementsAre(Key("b", "B"), Key("a", "A"), Key("b", "D"), Key("a", "C")));
  EXPECT_THAT(one.dense, ElementsAre(2.5f, -1.0f));
}

TEST(CsvParser, QuotedCellsAreTheSameValues) {
  const char* toml = "format = 'csv'\nslots = ['a']\ndense = ['x']";
  const Batch batch =
      Read(toml, "\"label\",a,\"x\"\n\"1\",\"p,q\",\"2\"\n0,\"say \"\"hi\"\"\",3\r\n");
  EXPECT_THAT(batch.groups[0].keys, ElementsAre(Key("a", "p,q"), Key("a", "say \"hi\"")));
  EXPECT_THAT(batch.dense, ElementsAre(2, 3));
}

TEST(TsvParser, QuotesAreText) {
  const Batch batch = Read("format = 'tsv'\nslots = ['a']", "label\ta\n1\t\"x\n");
  EXPECT_THAT(batch.groups[0].keys, ElementsAre(Key("a", "\"x")));
}

TEST(CsvParser, TakesAnotherDelimiter) {
  const Batch batch =
      Read("format = 'csv'\ndelimiter = ';'\nslots = ['a']", "label;a\n1;\"x;y\"\n0;p,q\n");
  EXPECT_THAT(batch.groups[0].keys, ElementsAre(Key("a", "x;y"), Key("a", "p,q")));
}

TEST(CsvParser, SeparatorGivesSeveralKeys) {
  const Batch batch = Read("format = 'csv'\nslots = ['u', {name='tags', separator='|'}, 'v']",
                           "label,u,tags,v\n1,U,a|b||c,V\n0,,,\n1,U,|,V\n");
  EXPECT_THAT(BagOf(batch, 0, 0, 1),
              ElementsAre(Key("tags", "a"), Key("tags", "b"), Key("tags", "c")));
  EXPECT_THAT(BagOf(batch, 0, 0, 2), ElementsAre(Key("v", "V")));
  EXPECT_THAT(BagOf(batch, 0, 1, 0), ElementsAre(Key("u", "")));
  EXPECT_THAT(BagOf(batch, 0, 1, 1), ElementsAre(Key("tags", "")));
  EXPECT_THAT(BagOf(batch, 0, 2, 1), ElementsAre(Key("tags", "")));
}

TEST(CsvParser, MissingCellsGiveNoKeyIfToldSo) {
  const Batch batch = Read(
      "format = 'csv'\nslots = [{name='a', missing='skip'}, "
      "{name='b', missing='skip', separator=' '}]\ndense = [{name='x', missing=-7}]",
      "label,a,b,x\n1,,,\n0,A,B,1\n");
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 0, 0, 1, 2));
  EXPECT_THAT(batch.dense, ElementsAre(-7, 1));
}

TEST(CsvParser, NumbersBecomeBuckets) {
  const Batch batch = Read(
      "format = 'csv'\nslots = [{name='x', bucket='log'}, "
      "{name='y', bucket='boundaries', boundaries=[0, 10]}, {name='z', bucket='log', separator=' "
      "'}]",
      "label,x,y,z\n1,1000,10,3 -1\n0,,-5,\n");
  const auto bucket = [](const char* slot, int64_t number) {
    return IntegerKey(SlotSeed(slot), static_cast<uint64_t>(number));
  };
  EXPECT_THAT(BagOf(batch, 0, 0, 0), ElementsAre(bucket("x", 47)));
  EXPECT_THAT(BagOf(batch, 0, 0, 1), ElementsAre(bucket("y", 2)));
  EXPECT_THAT(BagOf(batch, 0, 0, 2), ElementsAre(bucket("z", 1), bucket("z", -2)));
  EXPECT_THAT(BagOf(batch, 0, 1, 0), ElementsAre(Key("x", "")));
  EXPECT_THAT(BagOf(batch, 0, 1, 1), ElementsAre(bucket("y", 0)));
}

TEST(CsvParser, SlotsGoToTheGroupOfTheirTable) {
  const Batch batch = Read(
      "format = 'csv'\nslots = [{name='u', table='users'}, {name='a', table='ads'}, "
      "{name='s', table='ads', separator=' ', same_keys_as='a'}]",
      "label,u,a,s\n1,U,A,A B\n");
  ASSERT_EQ(batch.groups.size(), 2u);
  EXPECT_THAT(batch.groups[0].keys, ElementsAre(Key("a", "A"), Key("a", "A"), Key("a", "B")));
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 1, 3));
  EXPECT_THAT(batch.groups[1].keys, ElementsAre(Key("u", "U")));
}

TEST(CsvParser, ReadsWeightTimeAndGroup) {
  const Batch batch =
      Read("format = 'csv'\nslots = ['a']\nweight = 'w'\ntimestamp = 't'\ngroup = 'a'",
           "label,a,w,t\n0.25,A,2.5,-1\n1,,0,9223372036854775807\n");
  EXPECT_THAT(batch.labels, ElementsAre(0.25f, 1));
  EXPECT_THAT(batch.weights, ElementsAre(2.5f, 0));
  EXPECT_THAT(batch.timestamps, ElementsAre(-1, INT64_MAX));
  EXPECT_THAT(batch.group_ids, ElementsAre(Key("a", "A"), Key("a", "")));
}

TEST(CsvParser, LineEndsMayBeCrlfAndTheLastOneMayBeMissing) {
  const char* toml = "format = 'csv'\nslots = ['a']";
  const Batch expected = Read(toml, "label,a\n1,x\n0,y\n");
  EXPECT_TRUE(SameExamples(Read(toml, "label,a\r\n1,x\r\n0,y\r\n"), expected));
  EXPECT_TRUE(SameExamples(Read(toml, "label,a\n1,x\n0,y"), expected));
  EXPECT_TRUE(SameExamples(Read(toml, "label,a\r\n1,x\n\n\r\n0,y\r"), expected));
  EXPECT_TRUE(SameExamples(Read(toml, "\xef\xbb\xbflabel,a\n1,x\n0,y\n\n"), expected));
}

TEST(CsvParser, AFileWithNothingOrOnlyAHeaderHasNoExamples) {
  const char* toml = "format = 'csv'\nslots = ['a']";
  EXPECT_EQ(Read(toml, "").examples, 0);
  EXPECT_EQ(Read(toml, "label,a").examples, 0);
  EXPECT_EQ(Read(toml, "label,a\r\n").examples, 0);
}

TEST(CsvParser, HashesCellsOfEveryLengthAsTextKeyDoes) {
  std::string text = "label,a\n";
  std::vector<uint64_t> expected;
  for (size_t length = 0; length < 600; ++length) {
    const std::string cell(length, static_cast<char>('a' + length % 26));
    text += "1," + cell + "\n";
    expected.push_back(Key("a", cell));
  }
  EXPECT_EQ(Read("format = 'csv'\nslots = ['a']", text).groups[0].keys, expected);
}

TEST(CsvParser, DenseValuesAreThoseOfTheTransform) {
  EXPECT_TRUE(rc::check([] {
    DataConfig config = DataConfigFrom(
        "format = 'csv'\ntrain = 'f'\nslots = ['a']\n"
        "dense = [{name='x', log=true, clip=[-5, 6.5]}]");
    const auto numbers = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-3000, 3000));
    MemoryEnv env;
    env.files["f"] = "label,a,x\n";
    std::vector<float> expected;
    const FeatureSpec spec = FeatureSpec::Resolve(config);
    for (const int number : numbers) {
      env.files["f"] += "0,," + std::to_string(number) + "\n";
      expected.push_back(spec.dense[0].Transform(number));
    }
    RC_ASSERT(ReadAll(env, config).dense == expected);
  }));
}

TEST(CsvParser, ManyValuesInACellAreAllKept) {
  std::string cell = "k0";
  for (int i = 1; i < 5000; ++i) cell += "|k" + std::to_string(i);
  const Batch batch = Read("format = 'csv'\nslots = [{name='a', separator='|'}, 'b']",
                           "label,a,b\n1,x,y\n0," + cell + ",z\n1,,w\n");
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 1, 2, 5002, 5003, 5004, 5005));
  EXPECT_EQ(batch.groups[0].keys[5001], Key("a", "k4999"));
  EXPECT_EQ(batch.groups[0].keys[5002], Key("b", "z"));
}

}  // namespace
}  // namespace terrace
