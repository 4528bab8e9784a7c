#include "tier/key_dedup.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <map>
#include <vector>

#include "base/hash.h"

namespace terrace {
namespace {

void ExpectNumbered(KeyDedup* dedup, const std::vector<uint64_t>& keys) {
  Array<uint64_t> distinct;
  Array<uint32_t> numbers;
  dedup->Run(keys, &distinct, &numbers);
  std::map<uint64_t, uint32_t> model;
  Array<uint64_t> wanted;
  ASSERT_EQ(numbers.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (model.emplace(keys[i], static_cast<uint32_t>(wanted.size())).second)
      wanted.push_back(keys[i]);
    ASSERT_EQ(numbers[i], model[keys[i]]) << i;
  }
  ASSERT_EQ(distinct, wanted);
}

TEST(KeyDedup, NumbersKeysInTheOrderOfFirstUse) {
  ASSERT_TRUE(rc::check([] {
    KeyDedup dedup;
    for (int batch = 0; batch < 4; ++batch) {
      const auto range = *rc::gen::element<uint64_t>(3, 1000, 1'000'000);
      ExpectNumbered(
          &dedup, *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, range)));
    }
  }));
}

TEST(KeyDedup, GrowsWithinABatch) {
  KeyDedup dedup;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 30'000; ++i) keys.push_back(Mix64(i % 20'000));
  ExpectNumbered(&dedup, keys);
  EXPECT_GE(dedup.bytes(), 20'000 * 16);
}

TEST(KeyDedup, NumbersKeysWithOneHomeSlot) {
  // Keys whose hashes begin alike: Mix64 has no inverse here, so they are searched for.
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; keys.size() < 40; ++key)
    if (Mix64(key) >> 54 == 1023) keys.push_back(key);  // the last slot of the smallest table
  std::vector<uint64_t> twice = keys;
  twice.insert(twice.end(), keys.rbegin(), keys.rend());
  KeyDedup dedup;
  ExpectNumbered(&dedup, twice);
}

TEST(KeyDedup, ForgetsOldBatchesWhenMarksRunOut) {
  KeyDedup dedup(std::numeric_limits<uint32_t>::max() - 250);
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 100; ++i) keys.push_back(i % 60);
  for (int batch = 0; batch < 10; ++batch) {
    ExpectNumbered(&dedup, keys);
    for (uint64_t& key : keys) key += 7;
  }
}

}  // namespace
}  // namespace terrace
