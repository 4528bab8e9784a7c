#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/features.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FeatureSpec SpecOf(const std::string& toml) { return FeatureSpec::Resolve(DataConfigFrom(toml)); }

std::vector<std::string> DenseNames(const FeatureSpec& spec) {
  std::vector<std::string> names;
  for (const DenseColumn& column : spec.dense) names.push_back(column.config.name);
  return names;
}
std::vector<std::string> SlotNames(const FeatureSpec& spec) {
  std::vector<std::string> names;
  for (const Slot& slot : spec.slots) names.push_back(slot.config.name);
  return names;
}

TEST(FeatureSpec, CriteoHasItsOwnColumns) {
  const FeatureSpec spec = SpecOf("format = 'criteo'");
  ASSERT_EQ(spec.slots.size(), 26u);
  ASSERT_EQ(spec.dense.size(), 13u);
  EXPECT_EQ(spec.slots[25].config.column, "C26");
  EXPECT_EQ(spec.dense[12].config.column, "I13");
  EXPECT_TRUE(spec.dense[0].config.log);
  EXPECT_THAT(spec.group_names, ElementsAre("main"));
  EXPECT_THAT(spec.shape.group_slots, ElementsAre(26));
  EXPECT_EQ(spec.shape.dense_columns, 13);
  EXPECT_FALSE(spec.shape.has_values);
  EXPECT_EQ(spec.slots[0].seed, SlotSeed("C1"));
  EXPECT_EQ(spec.slots[0].missing_key, TextKey(SlotSeed("C1"), ""));
}

TEST(FeatureSpec, CriteoIntegersThatBecomeKeysAreNotAlsoDense) {
  const FeatureSpec spec = SpecOf(
      "slots = ['C1..C3', {name = 'I1..I12', bucket = 'log'}, {name = 'x', column = 'I13'}]");
  EXPECT_EQ(spec.slots.size(), 16u);
  EXPECT_THAT(spec.dense, IsEmpty());
  EXPECT_THAT(DenseNames(SpecOf("slots = ['C1..C26', 'I2..I12']")), ElementsAre("I1", "I13"));
  EXPECT_EQ(SpecOf("dense = ['I4']").slots.size(), 26u);
}

TEST(FeatureSpec, GroupsAreTablesInNameOrderAndKeepTheOrderOfSlots) {
  const FeatureSpec spec = SpecOf(
      "format = 'csv'\nslots = [{name='u', table='users'}, {name='a', table='ads'}, "
      "{name='v', table='users'}]");
  EXPECT_THAT(spec.group_names, ElementsAre("ads", "users"));
  EXPECT_THAT(spec.group_slots, ElementsAre(ElementsAre(1), ElementsAre(0, 2)));
  EXPECT_THAT(spec.shape.group_slots, ElementsAre(1, 2));
  EXPECT_EQ(spec.slots[2].group, 1);
  EXPECT_EQ(spec.slots[2].index_in_group, 1);
}

TEST(FeatureSpec, RangesTakeTheirOptionsAlong) {
  const FeatureSpec spec =
      SpecOf("format = 'csv'\nslots = [{name='a1..a3', column='c7..c9', missing='skip'}]");
  EXPECT_THAT(SlotNames(spec), ElementsAre("a1", "a2", "a3"));
  EXPECT_EQ(spec.slots[2].config.column, "c9");
  EXPECT_EQ(spec.slots[2].config.missing, MissingKey::kSkip);
}

TEST(FeatureSpec, SameKeysAsSharesTheSeed) {
  const FeatureSpec spec =
      SpecOf("format = 'csv'\nslots = ['ad', {name='seen', separator=' ', same_keys_as='ad'}]");
  EXPECT_EQ(spec.slots[1].seed, SlotSeed("ad"));
  EXPECT_EQ(spec.slots[1].missing_key, spec.slots[0].missing_key);
}

TEST(FeatureSpec, SparseFormatsHaveValuesAndNoMissingKeys) {
  const FeatureSpec svm = SpecOf("format = 'libsvm'\ngroup = 'qid'");
  EXPECT_THAT(SlotNames(svm), ElementsAre("features"));
  EXPECT_TRUE(svm.shape.has_values);
  EXPECT_TRUE(svm.shape.has_group_ids);
  const FeatureSpec ffm = SpecOf("format = 'libffm'\nfields = 3");
  EXPECT_THAT(SlotNames(ffm), ElementsAre("field0", "field1", "field2"));
  EXPECT_EQ(ffm.slots[0].config.missing, MissingKey::kSkip);
  EXPECT_EQ(SpecOf("format = 'libffm'\nslots = ['f0..f4']").slots.size(), 5u);
}

TEST(FeatureSpec, SyntheticFollowsItsGenerator) {
  const FeatureSpec spec = SpecOf("format = 'synthetic'\nsynthetic = {slots = 4, dense = 2}");
  EXPECT_THAT(SlotNames(spec), ElementsAre("s0", "s1", "s2", "s3"));
  EXPECT_THAT(DenseNames(spec), ElementsAre("d0", "d1"));
  EXPECT_TRUE(spec.shape.has_truth);
}

TEST(FeatureSpec, OptionalColumnsAreInTheShape) {
  const FeatureSpec spec =
      SpecOf("format = 'csv'\nslots = ['a']\nweight = 'w'\ntimestamp = 't'\ngroup = 'g'");
  EXPECT_TRUE(spec.shape.has_weights);
  EXPECT_TRUE(spec.shape.has_timestamps);
  EXPECT_TRUE(spec.shape.has_group_ids);
}

struct Refusal {
  const char* toml;
  const char* message;
};

class FeatureSpecRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(FeatureSpecRefuses, WithAClearMessage) {
  const auto resolve = [] { SpecOf(GetParam().toml); };
  EXPECT_THAT(ErrorOf(resolve), HasSubstr(GetParam().message));
  EXPECT_EQ(CodeOf(resolve), ErrorCode::kUsage);
}

INSTANTIATE_TEST_SUITE_P(
    All, FeatureSpecRefuses,
    ::testing::Values(
        Refusal{"slots = ['C1', 'C1']", "data.slots: the name \"C1\" occurs twice"},
        Refusal{"dense = ['I1', 'I1']", "data.dense: the name \"I1\" occurs twice"},
        Refusal{"slots = ['']", "data.slots: an element has no name"},
        Refusal{"slots = ['C27']", "found column \"C27\", expected a Criteo column"},
        Refusal{"dense = ['J1']", "did you mean \"I1\"?"},
        Refusal{"group = 'user'", "data.group: found column \"user\", expected a Criteo column"},
        Refusal{"slots = ['C1', {name='x', column='label'}]",
                "slot \"x\" reads the label's column"},
        Refusal{"label = 'I1'", "data.dense: column \"I1\" reads the label's column"},
        Refusal{"label = ''", "data.label is empty"},
        Refusal{"slots = [{name='C1', table=''}]", "slot \"C1\": table is empty"},
        Refusal{"slots = [{name='C1', separator='||'}]", "separator has 2 bytes, expected one"},
        Refusal{"slots = [{name='C1..C3', column='C1..C2'}]",
                "\"C1..C3\" stands for 3 names and its column \"C1..C2\" for 2"},
        Refusal{"slots = [{name='C1', same_keys_as='C2'}]", "same_keys_as = \"C2\" is not a slot"},
        Refusal{"slots = ['C1', {name='C2', same_keys_as='C1', table='t'}]",
                "the tables are \"t\" and \"main\""},
        Refusal{"slots = [{name='C1', same_keys_as='C1'}]", "itself has same_keys_as"},
        Refusal{"slots = [{name='I1', bucket='boundaries'}]", "go together"},
        Refusal{"slots = [{name='I1', boundaries=[1]}]", "go together"},
        Refusal{"slots = [{name='I1', bucket='boundaries', boundaries=[1, 3, 3]}]",
                "boundaries must ascend; found 3 after 3"},
        Refusal{"dense = [{name='I1', clip=[1]}]", "clip has 1 numbers, expected [low, high]"},
        Refusal{"dense = [{name='I1', clip=[2, 1]}]", "clip = [2, 1], expected low < high"},
        Refusal{"dense = [{name='I1', missing=1e300}]",
                "missing = 1e+300, expected a number that a float can hold"},
        Refusal{"delimiter = ','", "data.delimiter is for csv and tsv"},
        Refusal{"format = 'csv'\nslots = ['a']\ndelimiter = ';;'", "expected one character"},
        Refusal{"format = 'csv'\nslots = ['a']\ndelimiter = '\"'", "expected one character"},
        Refusal{"max_line_bytes = 0", "data.max_line_bytes = 0, expected 1 to"},
        Refusal{"format = 'csv'", "data.slots is empty; format = \"csv\" needs"},
        Refusal{"format = 'tsv'\ndense = ['x']", "data.slots is empty; format = \"tsv\" needs"},
        Refusal{"format = 'libffm'", "data.fields is 0"},
        Refusal{"format = 'libffm'\nfields = 2\nslots = ['a']",
                "found 1 slots, expected data.fields = 2"},
        Refusal{"format = 'libsvm'\nslots = ['a', 'b']", "found 2 slots, expected one"},
        Refusal{"format = 'libsvm'\ndense = ['x']", "format \"libsvm\" has no dense columns"},
        Refusal{"format = 'libsvm'\nweight = 'w'", "format \"libsvm\" has no such column"},
        Refusal{"format = 'libsvm'\ngroup = 'user'", "data.group = \"qid\" is possible"},
        Refusal{"format = 'libffm'\nfields = 2\ngroup = 'qid'", "has no such column"},
        Refusal{"format = 'libsvm'\nslots = [{name='a', separator='|'}]",
                "column, separator and bucket are for formats with columns"},
        Refusal{"format = 'synthetic'\nslots = ['a']",
                "found 1 slots, expected data.synthetic.slots = 26"},
        Refusal{"format = 'synthetic'\ndense = ['a']", "expected data.synthetic.dense = 13"}));

}  // namespace
}  // namespace terrace
