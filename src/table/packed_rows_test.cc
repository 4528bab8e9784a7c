// Rows with codecs: their layout, their first value, and updates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "table/row_optimizer.h"

namespace terrace {
namespace {

constexpr RowOptimizer kOptimizers[] = {RowOptimizer::kSgd, RowOptimizer::kAdaGrad,
                                        RowOptimizer::kRowAdaGrad, RowOptimizer::kAdam,
                                        RowOptimizer::kFtrl};
constexpr RowCodec kCodecs[] = {RowCodec::kFp32, RowCodec::kFp16, RowCodec::kBf16, RowCodec::kInt16,
                                RowCodec::kInt8};

TableConfig ConfigOf(RowOptimizer optimizer, int64_t dim, RowCodec weights, RowCodec state) {
  TableConfig config;
  config.optimizer = optimizer;
  config.dim = dim;
  config.init_scale = 0.3;
  config.initial_accumulator = 0.01;
  config.weight_codec = weights;
  config.state_codec = state;
  return config;
}

TableSchema AsFloats(TableSchema schema) {
  TableConfig config = schema.config;
  config.weight_codec = config.state_codec = RowCodec::kFp32;
  return TableSchema::Make(schema.name, config, schema.layout.linear != 0, 1);
}

std::vector<float> RandomGrads(int64_t n, uint64_t seed) {
  std::vector<float> grads(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    grads[static_cast<size_t>(i)] = 2 * UnitFloat(RandomBits(seed, i)) - 1;
  return grads;
}

// Rows behind their keys, as in an arena. Key and row of position p follow from p.
class PackedTable {
 public:
  PackedTable(const TableConfig& config, bool linear, int rows)
      : schema(TableSchema::Make("t", config, linear, 1)),
        bytes(static_cast<size_t>(rows * schema.layout.stride), std::byte{0x77}) {
    for (int r = 0; r < rows; ++r) {
      const uint64_t key = KeyOf(r);
      std::memcpy(row(r) - RowLayout::kKeyBytes, &key, sizeof(key));
      InitRow(schema, key, row(r));
    }
  }
  static uint64_t KeyOf(int r) { return RandomBits(1, r); }
  std::byte* row(int r) { return bytes.data() + RowLayout::kKeyBytes + r * schema.layout.stride; }
  std::vector<std::byte> Row(int r) { return {row(r), row(r) + schema.layout.payload_bytes()}; }
  std::vector<float> Numbers(int r) {
    std::vector<float> numbers(static_cast<size_t>(schema.layout.format.numbers));
    const auto position = static_cast<uint32_t>(r);
    Stream stream(nullptr);
    DecodeRows(stream, schema.layout.format, {row(0), schema.layout.stride, &position, 1},
               RowParts::kAll, numbers.data());
    return numbers;
  }

  int64_t Update(const std::vector<uint32_t>& positions, std::vector<float> grads, int64_t step) {
    std::vector<float> scratch(static_cast<size_t>(RowScratchFloats(schema.layout)) + 1, 99.0f);
    RowUpdateArgs args;
    args.base = row(0);
    args.stride_bytes = schema.layout.stride;
    args.positions = positions.data();
    args.grads = grads.data();
    args.rows = static_cast<int64_t>(positions.size());
    args.lr = schema.config.lr;
    args.step = step;
    args.scratch = scratch.data();
    Stream stream(nullptr);
    const int64_t saturated = UpdateRows(stream, schema, args);
    EXPECT_EQ(scratch.back(), 99.0f);
    return saturated;
  }

  const TableSchema schema;
  std::vector<std::byte> bytes;
};

// The definition, for one row of floats: rounded by the word of (table, key, step).
std::vector<std::byte> PackedRow(const TableSchema& schema, uint64_t key, int64_t step,
                                 const std::vector<float>& numbers) {
  std::vector<std::byte> row(static_cast<size_t>(schema.layout.payload_bytes()));
  const uint32_t position = 0;
  const uint64_t word = RandomBits(schema.rounding_seed, key, static_cast<uint64_t>(step));
  const bool nearest = schema.config.rounding == Rounding::kNearest;
  Stream stream(nullptr);
  EXPECT_EQ(EncodeRows(stream, schema.layout.format, {row.data(), 0, &position, 1}, RowParts::kAll,
                       numbers.data(), nearest ? nullptr : &word),
            0);
  return row;
}

TEST(RowLayout, PacksEachKindOfNumberWithAScaleOfItsOwn) {
  struct Case {
    RowOptimizer optimizer;
    int64_t dim;
    RowCodec weights, state;
    int64_t bytes;
  };
  const Case cases[] = {
      {RowOptimizer::kAdaGrad, 8, RowCodec::kFp32, RowCodec::kFp32, 72},
      {RowOptimizer::kAdaGrad, 8, RowCodec::kInt8, RowCodec::kFp32, 16 + 36},
      {RowOptimizer::kAdaGrad, 8, RowCodec::kInt8, RowCodec::kInt8, 16 + 16},
      {RowOptimizer::kAdaGrad, 8, RowCodec::kFp16, RowCodec::kBf16, 20 + 20},
      {RowOptimizer::kAdaGrad, 16, RowCodec::kInt16, RowCodec::kFp16, 40 + 36},
      {RowOptimizer::kRowAdaGrad, 8, RowCodec::kInt8, RowCodec::kInt8, 16 + 8},
      {RowOptimizer::kAdam, 5, RowCodec::kInt8, RowCodec::kInt8, 16 + 16 + 16},
      {RowOptimizer::kSgd, 0, RowCodec::kBf16, RowCodec::kFp32, 4},
  };
  for (const Case& c : cases) {
    const TableSchema schema =
        TableSchema::Make("t", ConfigOf(c.optimizer, c.dim, c.weights, c.state), true, 1);
    EXPECT_EQ(schema.layout.payload_bytes(), c.bytes);
    EXPECT_EQ(schema.layout.stride, (c.bytes + 8 + 7) / 8 * 8);
    EXPECT_EQ(schema.layout.state, AsFloats(schema).layout.state);
    EXPECT_EQ(schema.layout.View(nullptr).codec, c.weights);
  }
}

TEST(TableConfig, ReadsCodecs) {
  TableConfig config;
  const ConfigFile file = ConfigFile::Parse(
      "weight_codec = \"int8\"\nstate_codec = \"bf16\"\nrounding = \"nearest\"\n", "test");
  file.Read([&](ConfigVisitor& v) { config.Visit(v); });
  EXPECT_EQ(config.weight_codec, RowCodec::kInt8);
  EXPECT_EQ(config.state_codec, RowCodec::kBf16);
  EXPECT_EQ(config.rounding, Rounding::kNearest);
  EXPECT_EQ(TableConfig().rounding, Rounding::kStochastic);
  const ConfigFile bad = ConfigFile::Parse("weight_codec = \"int4\"\n", "test");
  EXPECT_THROW(bad.Read([&](ConfigVisitor& v) { config.Visit(v); }), Error);
}

TEST(TableSchema, RefusesCodecsThatTheRowsDoNotSuit) {
  const auto make = [](const TableConfig& config) { TableSchema::Make("user", config, true, 1); };
  const auto fails = [&](const TableConfig& config, const std::string& text) {
    EXPECT_THAT([&] { make(config); }, testing::ThrowsMessage<Error>(testing::HasSubstr(text)));
  };
  fails(ConfigOf(RowOptimizer::kSgd, 0, RowCodec::kInt8, RowCodec::kFp32),
        "no vector to quantize; use fp16 or bf16");
  fails(ConfigOf(RowOptimizer::kAdam, 0, RowCodec::kFp16, RowCodec::kInt16),
        "no vector to quantize; use fp16 or bf16");
  EXPECT_NO_THROW(make(ConfigOf(RowOptimizer::kAdam, 0, RowCodec::kFp16, RowCodec::kBf16)));
  TableConfig config = ConfigOf(RowOptimizer::kAdaGrad, 4, RowCodec::kFp16, RowCodec::kFp16);
  EXPECT_NO_THROW(make(config));
  config.initial_accumulator = 70000;
  fails(config, "tables.user: optimizer states of new rows are up to 70000, but the codec holds");
  config.state_codec = RowCodec::kBf16;
  EXPECT_NO_THROW(make(config));
  config.init_scale = 20000;
  config.init = RowInit::kNormal;
  fails(config, "weights of new rows are up to 120000");
}

TEST(TableSchema, RoundsByRandomBitsOfItsOwn) {
  const TableConfig config = ConfigOf(RowOptimizer::kSgd, 4, RowCodec::kInt8, RowCodec::kFp32);
  const TableSchema schema = TableSchema::Make("t", config, true, 1);
  EXPECT_NE(schema.rounding_seed, schema.init_seed);
  EXPECT_NE(schema.rounding_seed, TableSchema::Make("t", config, true, 2).rounding_seed);
  EXPECT_NE(schema.rounding_seed, TableSchema::Make("u", config, true, 1).rounding_seed);
}

TEST(InitRow, PacksTheSameNumbersAsStepZero) {
  for (RowOptimizer optimizer : kOptimizers)
    for (RowCodec weights : kCodecs)
      for (RowCodec state : kCodecs)
        for (Rounding rounding : {Rounding::kStochastic, Rounding::kNearest}) {
          TableConfig config = ConfigOf(optimizer, 11, weights, state);
          config.rounding = rounding;
          PackedTable table(config, true, 3);
          const TableSchema floats = AsFloats(table.schema);
          std::vector<float> numbers(static_cast<size_t>(floats.layout.format.numbers));
          InitRow(floats, table.KeyOf(2), reinterpret_cast<std::byte*>(numbers.data()));
          ASSERT_EQ(table.Row(2), PackedRow(table.schema, table.KeyOf(2), 0, numbers));
          ASSERT_NE(table.Row(2), table.Row(1));
        }
}

// Unpack, update as a table of floats does, round: row by row.
TEST(UpdateRows, OfPackedRowsRoundsTheUpdateOfTheirNumbers) {
  for (RowOptimizer optimizer : kOptimizers)
    for (RowCodec weights : kCodecs)
      for (RowCodec state : kCodecs)
        for (int64_t dim : {1, 7, 8, 16, 33}) {
          const bool linear = dim != 7;
          TableConfig config = ConfigOf(optimizer, dim, weights, state);
          config.rounding = dim == 16 ? Rounding::kNearest : Rounding::kStochastic;
          config.l2 = 0.01;
          config.clip_norm = 2;
          constexpr int kRows = 75;  // two blocks and a part
          PackedTable table(config, linear, kRows);
          const TableSchema floats = AsFloats(table.schema);
          const int n = table.schema.layout.weights;
          std::vector<uint32_t> positions;
          for (int r = kRows - 1; r > 0; --r) positions.push_back(static_cast<uint32_t>(r));
          const std::vector<float> grads = RandomGrads(int64_t{kRows - 1} * n, dim);
          std::vector<std::vector<std::byte>> wanted;
          for (size_t i = 0; i < positions.size(); ++i) {
            std::vector<float> numbers = table.Numbers(static_cast<int>(positions[i]));
            std::vector<float> grad(grads.begin() + i * n, grads.begin() + (i + 1) * n);
            RowUpdateArgs args;
            const uint32_t position = 0;
            args.base = reinterpret_cast<std::byte*>(numbers.data());
            args.positions = &position;
            args.grads = grad.data();
            args.rows = 1;
            args.lr = config.lr;
            args.step = 5;
            Stream stream(nullptr);
            EXPECT_EQ(UpdateRows(stream, floats, args), 0);
            wanted.push_back(
                PackedRow(table.schema, table.KeyOf(static_cast<int>(positions[i])), 5, numbers));
          }
          const std::vector<std::byte> before = table.bytes;
          ASSERT_EQ(table.Update(positions, grads, 5), 0);
          for (size_t i = 0; i < positions.size(); ++i)
            ASSERT_EQ(table.Row(static_cast<int>(positions[i])), wanted[i])
                << static_cast<int>(optimizer) << " " << dim;
          // Keys, the default row and padding are as they were.
          const int64_t stride = table.schema.layout.stride;
          for (int64_t b = 0; b < static_cast<int64_t>(before.size()); ++b) {
            const int64_t in_row = b % stride - RowLayout::kKeyBytes;
            const bool payload =
                b >= stride && in_row >= 0 && in_row < table.schema.layout.payload_bytes();
            ASSERT_TRUE(payload || table.bytes[b] == before[b]) << b;
          }
        }
}

TEST(UpdateRows, RandomBitsOfPackedRowsDependOnKeyAndStep) {
  PackedTable table(ConfigOf(RowOptimizer::kSgd, 32, RowCodec::kInt8, RowCodec::kFp32), false, 3);
  const std::vector<std::byte> start = table.bytes;
  std::memcpy(table.row(2), table.row(1), static_cast<size_t>(table.schema.layout.payload_bytes()));
  const std::vector<std::byte> same_rows = table.bytes;
  const std::vector<float> grads(64, 0.003f);
  table.Update({1, 2}, grads, 1);
  EXPECT_NE(table.Row(1), table.Row(2));
  const std::vector<std::byte> first = table.bytes;
  table.bytes = same_rows;
  table.Update({2, 1}, grads, 1);
  EXPECT_EQ(table.bytes, first);
  table.bytes = same_rows;
  table.Update({1, 2}, grads, 2);
  EXPECT_NE(table.bytes, first);
}

TEST(UpdateRows, CountsNumbersBeyondTheirCodec) {
  TableConfig config = ConfigOf(RowOptimizer::kSgd, 4, RowCodec::kFp16, RowCodec::kFp32);
  config.lr = 1;
  PackedTable table(config, true, 3);
  EXPECT_EQ(table.Update({1, 2}, {1, 2, 3, 4, 5, 1e6f, 2, -1e6f, 4, 1e9f}, 1), 3);
  EXPECT_EQ(table.Numbers(2)[0], -65504);
  EXPECT_EQ(table.Numbers(2)[2], 65504);
  EXPECT_EQ(table.Numbers(2)[4], -65504);
}

}  // namespace
}  // namespace terrace
