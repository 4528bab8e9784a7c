#include "table/widen_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"

namespace terrace {
namespace {

constexpr int kRows = 600;

std::vector<uint64_t> Keys() {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < kRows; ++i) keys.push_back(Mix64(i));
  return keys;
}

std::vector<float> Decode(const TableSchema& schema, const std::byte* row) {
  std::vector<float> numbers(static_cast<size_t>(schema.layout.format.numbers));
  const uint32_t position = 0;
  Stream stream(nullptr);
  DecodeRows(stream, schema.layout.format, {const_cast<std::byte*>(row), 0, &position, 1},
             RowParts::kAll, numbers.data());
  return numbers;
}

struct Case {
  TableConfig config;
  bool linear = true;
  int from = 4, to = 7;
};

// The place of a number of the old row in the new one.
int PlaceOf(const RowLayout& from, const RowLayout& to, int part, int i) {
  const int vector = from.format.parts[part].numbers() - from.linear;
  const RowPart& wide = to.format.parts[part];
  return wide.first + (i < vector ? i : wide.numbers() - to.linear + (i - vector));
}

void ExpectWidened(const Case& c, bool exact) {
  TableConfig config = c.config;
  config.dim = c.from;
  const TableSchema from = TableSchema::Make("t", config, c.linear, 3);
  config.dim = c.to;
  const TableSchema to = TableSchema::Make("t", config, c.linear, 3);
  ASSERT_TRUE(CanWiden(from, to));
  EXPECT_FALSE(CanWiden(to, from));
  const std::vector<uint64_t> keys = Keys();
  const size_t narrow = static_cast<size_t>(from.layout.payload_bytes()) + 4;
  const size_t wide = static_cast<size_t>(to.layout.payload_bytes()) + 8;
  std::vector<std::byte> rows(kRows * narrow), wider(kRows * wide, std::byte{9});
  Stream stream(nullptr);
  for (size_t r = 0; r < kRows; ++r) {
    std::byte* const row = rows.data() + r * narrow;
    std::vector<float> numbers;
    for (int i = 0; i < from.layout.format.numbers; ++i) {
      const float x =
          static_cast<float>(RandomBits(1, r, static_cast<uint64_t>(i)) >> 40) * 0x1p-24f;
      numbers.push_back(i < from.layout.weights ? x - 0.5f : x);
    }
    const uint32_t position = 0;
    ASSERT_EQ(EncodeRows(stream, from.layout.format, {row, 0, &position, 1}, RowParts::kAll,
                         numbers.data(), nullptr),
              0);
    if (from.layout.counts)
      RowStats{1.5f, 0.5f, static_cast<uint32_t>(r)}.Write(row + from.layout.stats_offset());
  }
  WidenRows(from, to, keys, rows.data(), narrow, wider.data(), wide);

  std::vector<std::byte> fresh(static_cast<size_t>(to.layout.payload_bytes()));
  for (size_t r = 0; r < kRows; ++r) {
    const std::vector<float> old = Decode(from, rows.data() + r * narrow);
    const std::vector<float> got = Decode(to, wider.data() + r * wide);
    InitRow(to, keys[r], fresh.data());
    const std::vector<float> init = Decode(to, fresh.data());
    std::vector<float> want = init;
    for (int p = 0; p < from.layout.format.part_count; ++p) {
      const RowPart& part = from.layout.format.parts[p];
      for (int i = 0; i < part.numbers(); ++i)
        want[static_cast<size_t>(PlaceOf(from.layout, to.layout, p, i))] =
            old[static_cast<size_t>(part.first + i)];
    }
    for (int p = 0; p < to.layout.format.part_count; ++p) {
      const RowPart& part = to.layout.format.parts[p];
      float largest = 0;
      for (int i = 0; i < part.coded; ++i)
        largest = std::max(largest, std::abs(want[static_cast<size_t>(part.first + i)]));
      const float step = largest / (part.codec == RowCodec::kInt8 ? 127.0f : 32767.0f);
      for (int i = 0; i < part.numbers(); ++i) {
        const auto at = static_cast<size_t>(part.first + i);
        const bool coded = i < part.coded && HasScale(part.codec);
        // A positive sum of squares does not become 0.
        const float most = part.keeps_positive ? 1.001f * step : 0.501f * step;
        ASSERT_NEAR(got[at], want[at], exact || !coded ? 0 : most)
            << "row " << r << " part " << p << " number " << i;
      }
    }
    if (to.layout.counts) {
      ASSERT_EQ(
          std::memcmp(wider.data() + r * wide + to.layout.stats_offset(),
                      rows.data() + r * narrow + from.layout.stats_offset(), sizeof(RowStats)),
          0);
    }
    for (size_t i = static_cast<size_t>(to.layout.payload_bytes()); i < wide; ++i)
      ASSERT_EQ(wider[r * wide + i], std::byte{9});  // not its own
  }
}

constexpr RowOptimizer kOptimizers[] = {RowOptimizer::kSgd, RowOptimizer::kAdaGrad,
                                        RowOptimizer::kRowAdaGrad, RowOptimizer::kAdam,
                                        RowOptimizer::kFtrl};

TEST(WidenRows, KeepsTheBitsOfFloats) {
  for (RowOptimizer optimizer : kOptimizers)
    for (RowCodec codec : {RowCodec::kFp32, RowCodec::kFp16, RowCodec::kBf16})
      for (bool linear : {false, true})
        for (bool counts : {false, true}) {
          Case c;
          c.config.optimizer = optimizer;
          c.config.weight_codec = c.config.state_codec = codec;
          c.config.initial_accumulator = 0.125;
          c.config.life.statistics = counts;
          c.linear = linear;
          ExpectWidened(c, true);
        }
}

TEST(WidenRows, GivesLinearWeightsAVector) {
  for (RowOptimizer optimizer : kOptimizers) {
    Case c;
    c.config.optimizer = optimizer;
    c.from = 0;
    ExpectWidened(c, true);
  }
}

TEST(WidenRows, RoundsIntegerCodesToTheNearest) {
  for (RowOptimizer optimizer : kOptimizers)
    for (RowCodec codec : {RowCodec::kInt16, RowCodec::kInt8})
      for (double scale : {0.01, 3.0}) {  // new numbers that are smaller, and larger
        Case c;
        c.config.optimizer = optimizer;
        c.config.weight_codec = c.config.state_codec = codec;
        c.config.init_scale = scale;
        ExpectWidened(c, false);
      }
}

TEST(WidenRows, OtherCodecsOrOptimizersAreNotWidened) {
  TableConfig config;
  config.dim = 4;
  const TableSchema from = TableSchema::Make("t", config, true, 3);
  config.dim = 8;
  EXPECT_TRUE(CanWiden(from, TableSchema::Make("t", config, true, 3)));
  EXPECT_FALSE(CanWiden(from, TableSchema::Make("t", config, false, 3)));
  config.weight_codec = RowCodec::kFp16;
  EXPECT_FALSE(CanWiden(from, TableSchema::Make("t", config, true, 3)));
  config = {};
  config.optimizer = RowOptimizer::kSgd;
  EXPECT_FALSE(CanWiden(from, TableSchema::Make("t", config, true, 3)));
}

}  // namespace
}  // namespace terrace
