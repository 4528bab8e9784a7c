#include "tier/chunk_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace terrace {
namespace {

TEST(ChunkMap, GrowsByOneChunkAndMovesKeysToTheNextPartOnly) {
  ChunkMap map;
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 2000; ++i) hashes.push_back(RandomBits(5, i));
  for (uint64_t chunks = 4; chunks < 3000; ++chunks) {
    ASSERT_EQ(map.chunks(), chunks);
    const ChunkMap old = map;
    map.Advance();
    for (uint64_t hash : hashes) {
      const uint64_t before = old.Home(hash);
      const uint64_t after = map.Home(hash);
      ASSERT_LT(before, chunks);
      if (before == after) continue;
      ASSERT_EQ(before & (old.groups() - 1), old.split());
      ASSERT_EQ(after, before + old.groups());
    }
  }
}

TEST(ChunkMap, FillsChunksEvenly) {
  ChunkMap map;
  while (map.chunks() < 4096 + 1500) map.Advance();
  std::vector<int> count(map.chunks());
  for (uint64_t i = 0; i < 100 * map.chunks(); ++i) ++count[map.Home(RandomBits(6, i))];
  // Groups that were not split yet have 4 or 5 parts: 100 keys a chunk on average, at most 125.
  EXPECT_GT(*std::min_element(count.begin(), count.end()), 40);
  EXPECT_LT(*std::max_element(count.begin(), count.end()), 190);
}

}  // namespace
}  // namespace terrace
