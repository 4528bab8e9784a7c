#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

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

uint64_t Key(const char* slot, uint64_t index) { return IntegerKey(SlotSeed(slot), index); }

TEST(LibsvmParser, ReadsIndicesAndValues) {
  const Batch batch =
      Read("format = 'libsvm'", "+1 3:0.5 18446744073709551615:-2e3\n-1\t7:1 # note 9:9\n0.5\n");
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 0.5f));
  EXPECT_THAT(batch.groups[0].keys,
              ElementsAre(Key("features", 3), Key("features", UINT64_MAX), Key("features", 7)));
  EXPECT_THAT(batch.groups[0].values, ElementsAre(0.5f, -2000, 1));
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 2, 3, 3));
}

TEST(LibsvmParser, PassesOverEmptyAndCommentLines) {
  EXPECT_EQ(Read("format = 'libsvm'", "\n# all\n  \t\r\n1 1:1  \r\n").examples, 1);
}

TEST(LibsvmParser, QidIsTheGroupOrLeftOut) {
  const char* text = "1 qid:7 1:1\n0 qid:8 1:1\n1 qid:7\n";
  const Batch grouped = Read("format = 'libsvm'\ngroup = 'qid'", text);
  EXPECT_THAT(grouped.group_ids, ElementsAre(Key("qid", 7), Key("qid", 8), Key("qid", 7)));
  const Batch plain = Read("format = 'libsvm'", text);
  EXPECT_THAT(plain.group_ids, IsEmpty());
  EXPECT_EQ(plain.groups[0].keys, grouped.groups[0].keys);
}

TEST(LibffmParser, PutsFieldsIntoTheirSlots) {
  const Batch batch = Read("format = 'libffm'\nfields = 3", "1 2:5:1 0:4:0.5 2:6:2\n0 1:1:1\n");
  EXPECT_THAT(batch.groups[0].keys,
              ElementsAre(Key("field0", 4), Key("field2", 5), Key("field2", 6), Key("field1", 1)));
  EXPECT_THAT(batch.groups[0].values, ElementsAre(0.5f, 1, 2, 1));
  EXPECT_THAT(batch.groups[0].offsets, ElementsAre(0, 1, 1, 3, 3, 4, 4));
}

TEST(LibffmParser, FieldsOfSeveralTablesMatchAModel) {
  EXPECT_TRUE(rc::check([] {
    const char* toml =
        "format = 'libffm'\nslots = [{name='f0', table='b'}, {name='f1', table='a'}, "
        "{name='f2', table='b'}]";
    std::string text;
    std::vector<std::map<int, std::vector<uint64_t>>> model;
    const auto lines = *rc::gen::inRange(0, 6);
    for (int e = 0; e < lines; ++e) {
      auto& fields = model.emplace_back();
      text += "1";
      for (const auto& [field, index] : *rc::gen::container<std::vector<std::pair<int, int>>>(
               rc::gen::pair(rc::gen::inRange(0, 3), rc::gen::inRange(0, 1000)))) {
        text += " " + std::to_string(field) + ":" + std::to_string(index) + ":1";
        const char* names[] = {"f0", "f1", "f2"};
        fields[field].push_back(Key(names[field], static_cast<uint64_t>(index)));
      }
      text += "\n";
    }
    const Batch batch = Read(toml, text);
    RC_ASSERT(batch.examples == lines);
    for (int e = 0; e < lines; ++e) {
      RC_ASSERT(BagOf(batch, 1, e, 0) == model[e][0]);
      RC_ASSERT(BagOf(batch, 0, e, 0) == model[e][1]);
      RC_ASSERT(BagOf(batch, 1, e, 1) == model[e][2]);
    }
  }));
}

}  // namespace
}  // namespace terrace
