#include "device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/cpu.h"
#include "base/error.h"

extern "C" int openblas_get_num_threads();
extern "C" char* openblas_get_corename();

namespace terrace {
namespace {

TEST(CpuDevice, GivesAlignedZeroedMemoryOfAnySize) {
  for (int64_t size : {1, 3, 16, 1000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9'000'001}) {
    for (int round = 0; round < 2; ++round) {  // the second one may reuse dirty memory
      Buffer<char> buffer(&CpuDevice(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u) << size;
      EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + size, [](char c) { return c == 0; }))
          << size;
      std::fill_n(buffer.data(), size, 'x');
    }
  }
}

TEST(CpuDevice, LargeMemoryStartsOnAHugePage) {
  Buffer<char> buffer(&CpuDevice(), 8 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (2 << 20), 0u);
}

TEST(CpuDevice, RefusesMoreMemoryThanThereIsAndNamesTheSize) {
  for (size_t bytes : {size_t{1} << 60, SIZE_MAX, SIZE_MAX - 4096}) {
    try {
      CpuDevice().Allocate(bytes);
      FAIL() << bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kIo);
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos) << e.what();
    }
  }
}

TEST(CpuDevice, PinsTheBlasLibraryToOneThread) {
  CpuDevice();
  EXPECT_EQ(openblas_get_num_threads(), 1);
}

TEST(CpuDevice, UsesBlasKernelsOfThisCpuEvenIfTheLibraryDoesNotKnowIt) {
  CpuDevice();
  if (CurrentIsa() == IsaLevel::kBaseline) return;
  EXPECT_STRNE(openblas_get_corename(), "Prescott");  // what it takes for CPUs it does not know
}

TEST(Buffer, MovesItsMemory) {
  Buffer<int> a(&CpuDevice(), 5);
  a[4] = 7;
  Buffer<int> b = std::move(a);
  EXPECT_EQ(b[4], 7);
  a = std::move(b);
  EXPECT_EQ(a.size(), 5);
  EXPECT_EQ(a[4], 7);
}

TEST(Buffer, GrowsOnlyWhenItIsTooSmall) {
  Buffer<int> a(&CpuDevice(), 5);
  const int* const before = a.data();
  a.EnsureSize(&CpuDevice(), 4);
  EXPECT_EQ(a.data(), before);
  EXPECT_EQ(a.size(), 5);
  a.EnsureSize(&CpuDevice(), 50);
  EXPECT_EQ(a.size(), 50);
  EXPECT_EQ(a[49], 0);
}

TEST(MatrixView, ColumnsKeepTheStride) {
  float data[12] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
  const Matrix all{data, 3, 4, 4};
  const ConstMatrix middle = all.Columns(1, 2);
  EXPECT_EQ(middle.rows, 3);
  EXPECT_EQ(middle.cols, 2);
  EXPECT_EQ(middle.row(2)[1], 22);
}

}  // namespace
}  // namespace terrace
