// Slots with two tables: every reader puts the same keys into both groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/features.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads `text` as the config says, with and without linear tables: `both` and `plain`. Each slot's
// bags in its table and in its linear table must be those of `plain`.
void ExpectKeysInBothGroups(const std::string& format, const std::string& plain_slots,
                            const std::string& both_slots, const std::string& text) {
  MemoryEnv env;
  env.files["f"] = text;
  const std::string toml = "train = 'f'\n" + format + "\nslots = ";
  const DataConfig plain_config = DataConfigFrom(toml + plain_slots);
  const DataConfig both_config = DataConfigFrom(toml + both_slots);
  const Batch plain = ReadAll(env, plain_config);
  const Batch both = ReadAll(env, both_config);
  const FeatureSpec from = FeatureSpec::Resolve(plain_config);
  const FeatureSpec to = FeatureSpec::Resolve(both_config);
  ASSERT_GT(plain.examples, 0);
  ASSERT_EQ(both.examples, plain.examples);
  EXPECT_EQ(both.labels, plain.labels);
  EXPECT_EQ(both.truth, plain.truth);
  ASSERT_EQ(to.slots.size(), from.slots.size());
  int linear = 0;
  for (size_t s = 0; s < to.slots.size(); ++s) {
    const Slot& slot = to.slots[s];
    for (int64_t e = 0; e < both.examples; ++e) {
      const auto want = BagOf(plain, from.slots[s].group, e, from.slots[s].index_in_group);
      EXPECT_EQ(BagOf(both, slot.group, e, slot.index_in_group), want);
      if (slot.linear_group < 0) continue;
      ++linear;
      EXPECT_EQ(BagOf(both, slot.linear_group, e, slot.linear_index), want);
    }
  }
  EXPECT_GT(linear, 0);
}

TEST(LinearTable, CsvPutsKeysIntoBothGroups) {
  ExpectKeysInBothGroups(
      "format = 'csv'", "['a', {name='b', separator='|'}, {name='c', bucket='log'}, 'd']",
      "[{name='a', linear_table='w'}, {name='b', separator='|', linear_table='w'}, "
      "{name='c', bucket='log', linear_table='w'}, {name='d', table='w'}]",
      "label,a,b,c,d\n1,x,p|q|r,17,y\n0,,q,3,\n1,\"z,z\",,1,y\n");
}

TEST(LinearTable, CriteoPutsKeysIntoBothGroups) {
  std::string text;
  for (int row = 0; row < 3; ++row) {
    text += "1";
    for (int i = 1; i <= 13; ++i) text += "\t" + std::to_string(i * row);
    for (int i = 1; i <= 26; ++i) text += "\tv" + std::to_string(i + row);
    text += "\n";
  }
  ExpectKeysInBothGroups("format = 'criteo'", "['C1..C26']",
                         "[{name='C1..C9', linear_table='w'}, {name='C10..C26', table='other'}]",
                         text);
}

TEST(LinearTable, LibsvmPutsKeysIntoBothGroupsWithTheirValues) {
  ExpectKeysInBothGroups("format = 'libsvm'", "['f']", "[{name='f', linear_table='w'}]",
                         "1 3:0.5 9:2\n-1 7:1\n0\n");
  MemoryEnv env;
  env.files["f"] = "1 3:0.5 9:2\n-1 7:1\n";
  const Batch batch = ReadAll(
      env, DataConfigFrom("train='f'\nformat='libsvm'\nslots=[{name='f', linear_table='w'}]"));
  ASSERT_EQ(batch.groups.size(), 2u);
  for (const KeyGroup& group : batch.groups) EXPECT_THAT(group.values, ElementsAre(0.5f, 2, 1));
}

TEST(LinearTable, LibffmPutsKeysIntoBothGroups) {
  ExpectKeysInBothGroups("format = 'libffm'", "['f0', 'f1', 'f2']",
                         "[{name='f0', table='z', linear_table='b'}, {name='f1', table='b'}, "
                         "{name='f2', table='a', linear_table='b'}]",
                         "1 2:5:1 0:4:0.5 2:6:2\n0 1:1:1\n1 0:1:1 1:2:1\n");
}

TEST(LinearTable, TheGeneratorPutsKeysIntoBothGroups) {
  ExpectKeysInBothGroups(
      "format = 'synthetic'\nsynthetic = {slots = 3, values_per_slot = 3, features = 50, "
      "train_examples = 40}",
      "['s0', 's1', 's2']",
      "[{name='s0', linear_table='w'}, {name='s1', table='w'}, {name='s2', linear_table='v'}]", "");
}

TEST(LinearTable, ItsSlotsAreMembersOfBothGroupsInConfigOrder) {
  const FeatureSpec spec = FeatureSpec::Resolve(DataConfigFrom(
      "format = 'csv'\nslots = [{name='a', table='v', linear_table='w'}, {name='b', table='w'}, "
      "{name='c', table='v', linear_table='w'}]"));
  EXPECT_THAT(spec.group_names, ElementsAre("v", "w"));
  EXPECT_THAT(spec.group_slots, ElementsAre(ElementsAre(0, 2), ElementsAre(0, 1, 2)));
  EXPECT_THAT(spec.shape.group_slots, ElementsAre(2, 3));
  EXPECT_THAT(spec.vectors_only, ElementsAre(1, 0));
  EXPECT_EQ(spec.slots[1].linear_group, -1);
  EXPECT_EQ(spec.slots[2].linear_group, 1);
  EXPECT_EQ(spec.slots[2].linear_index, 2);
}

TEST(LinearTable, ExplainsTablesThatDoNotGoTogether) {
  const auto error = [](const std::string& slots) {
    return ErrorOf(
        [&] { FeatureSpec::Resolve(DataConfigFrom("format = 'csv'\nslots = [" + slots + "]")); });
  };
  EXPECT_THAT(error("{name='a', table='v', linear_table='v'}"),
              HasSubstr("slot \"a\": table and linear_table are both \"v\""));
  for (const char* slots :
       {"{name='a', linear_table='w'}, 'b'", "'b', {name='a', linear_table='w'}"})
    EXPECT_THAT(error(slots),
                HasSubstr("slot \"a\" has a linear_table and slot \"b\" has none, but both are of "
                          "table \"main\""));
  EXPECT_THAT(
      error("{name='a', table='v', linear_table='w'}, "
            "{name='b', table='u', linear_table='v'}"),
      HasSubstr("table \"v\" is the linear_table of slot \"b\", but it holds the vectors of "
                "slot \"a\""));
  EXPECT_THAT(error("{name='a', linear_table='w'}, "
                    "{name='b', same_keys_as='a', linear_table='x'}"),
              HasSubstr("shares rows, but linear_table is \"x\" and \"w\""));
}

}  // namespace
}  // namespace terrace
