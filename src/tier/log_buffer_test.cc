#include "tier/log_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kRowBytes = 16;

class LogBufferTest : public ::testing::Test {
 protected:
  void Add(uint64_t mix) { buffer_.Add(mix, Row(mix)); }
  const std::byte* Row(uint64_t value) {
    std::memset(row_, static_cast<int>(value), kRowBytes);
    return row_;
  }
  std::vector<uint64_t> Mixes(const std::vector<uint32_t>& slots) {
    std::vector<uint64_t> mixes;
    for (uint32_t slot : slots) mixes.push_back(buffer_.mix(slot));
    return mixes;
  }
  // Removes what Choose gives, and checks what stays.
  std::vector<uint64_t> Write(bool everything) {
    const std::vector<uint32_t> slots = buffer_.Choose(everything, 2);
    const std::vector<uint64_t> written = Mixes(slots);
    const size_t before = buffer_.size();
    buffer_.Remove(slots);
    EXPECT_EQ(buffer_.size(), before - slots.size());
    for (size_t slot = 0; slot < buffer_.size(); ++slot)
      if (!buffer_.tombstone(slot)) {
        EXPECT_EQ(buffer_.row(slot)[kRowBytes - 1], std::byte(buffer_.mix(slot)));
      }
    return written;
  }

  LogBuffer buffer_{kRowBytes};
  std::byte row_[kRowBytes];
};

TEST_F(LogBufferTest, WritesAllInTheOrderOfMixes) {
  for (uint64_t mix : {5, 1, 9, 3, 7}) Add(mix);
  buffer_.NoteRead(1);
  EXPECT_THAT(Write(true), ElementsAre(1, 3, 5, 7, 9));
  EXPECT_EQ(buffer_.size(), 0u);
}

TEST_F(LogBufferTest, KeepsForOneRoundWhatWasReadOrReplaced) {
  for (uint64_t mix : {5, 1, 9, 3, 7, 2}) Add(mix);
  buffer_.NoteRead(1);
  buffer_.Replace(2, Row(9));
  EXPECT_THAT(Write(false), ElementsAre(2, 3, 5, 7));
  ASSERT_EQ(buffer_.size(), 2u);
  EXPECT_THAT(Write(false), ElementsAre(1, 9));
}

TEST_F(LogBufferTest, WritesWholePagesWhereItMayChoose) {
  for (uint64_t mix : {5, 1, 9, 3, 7}) Add(mix);
  EXPECT_THAT(Write(false), ElementsAre(1, 3, 5, 7));
  EXPECT_EQ(buffer_.mix(0), 9u);
}

TEST_F(LogBufferTest, WritesAllWhenTooLittleWouldGo) {
  for (uint64_t mix : {5, 1, 9, 3, 7, 2}) Add(mix);
  for (size_t slot = 0; slot < 5; ++slot) buffer_.NoteRead(slot);
  EXPECT_THAT(Write(false), ElementsAre(1, 2, 3, 5, 7, 9));
}

TEST_F(LogBufferTest, ATombstoneReplacesARowAndTheOtherWayRound) {
  Add(1);
  buffer_.Add(2, nullptr);
  EXPECT_TRUE(buffer_.tombstone(1));
  EXPECT_EQ(buffer_.row(1), nullptr);
  buffer_.Replace(0, nullptr);
  buffer_.Replace(1, Row(2));
  EXPECT_TRUE(buffer_.tombstone(0));
  EXPECT_FALSE(buffer_.tombstone(1));
  Add(3);
  Add(4);
  EXPECT_THAT(Write(false), ElementsAre(3, 4));
  EXPECT_TRUE(buffer_.tombstone(0));
  EXPECT_FALSE(buffer_.tombstone(1));
  EXPECT_THAT(buffer_.Choose(true, 2), ElementsAre(0, 1));
  Write(true);
  EXPECT_THAT(buffer_.Choose(false, 2), IsEmpty());
}

}  // namespace
}  // namespace terrace
