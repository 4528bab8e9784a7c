#include "device/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "device/kernel_testing.h"

namespace terrace {
namespace {

struct Shape {
  int64_t m, n, k;
};

std::vector<double> NaiveGemm(const TestMatrix& a, const TestMatrix& b, const TestMatrix& c,
                              bool ta, bool tb, double alpha, double beta) {
  std::vector<double> out;
  const int64_t inner = ta ? a.rows() : a.cols();
  for (int64_t i = 0; i < c.rows(); ++i) {
    for (int64_t j = 0; j < c.cols(); ++j) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += double{ta ? a.at(k, i) : a.at(i, k)} * (tb ? b.at(j, k) : b.at(k, j));
      out.push_back(alpha * sum + (beta == 0 ? 0 : beta * c.at(i, j)));
    }
  }
  return out;
}

TEST(Gemm, MatchesTheDefinitionForAllTransposesAndOddShapes) {
  Stream stream(&CpuDevice());
  const Shape shapes[] = {{1, 1, 1},  {1, 7, 3},    {5, 1, 9},   {3, 4, 1},   {17, 13, 11},
                          {64, 8, 5}, {31, 33, 65}, {2, 100, 3}, {100, 2, 37}};
  for (const Shape& s : shapes) {
    for (int mode = 0; mode < 4; ++mode) {
      const bool ta = (mode & 1) != 0;
      const bool tb = (mode & 2) != 0;
      for (float beta : {0.0f, 1.0f, -0.5f}) {
        const float alpha = beta == 1.0f ? 1.0f : 1.5f;
        TestMatrix a(ta ? s.k : s.m, ta ? s.m : s.k, 1);
        TestMatrix b(tb ? s.n : s.k, tb ? s.k : s.n, 2);
        TestMatrix c(s.m, s.n, 3);
        const std::vector<double> want = NaiveGemm(a, b, c, ta, tb, alpha, beta);
        Gemm(stream, {.a = a.view(),
                      .b = b.view(),
                      .c = c.view(),
                      .transpose_a = ta,
                      .transpose_b = tb,
                      .alpha = alpha,
                      .beta = beta});
        EXPECT_EQ(FirstDifference(c.Elements(), want, 1e-5), "");
      }
    }
  }
}

TEST(Gemm, IgnoresOldContentsWhenBetaIsZero) {
  Stream stream(&CpuDevice());
  TestMatrix a(3, 2, 1), b(2, 4, 2), c(3, 4, 3);
  const std::vector<double> want = NaiveGemm(a, b, c, false, false, 1, 0);
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t col = 0; col < 4; ++col) c.at(r, col) = std::numeric_limits<float>::quiet_NaN();
  Gemm(stream, {.a = a.view(), .b = b.view(), .c = c.view()});
  EXPECT_EQ(FirstDifference(c.Elements(), want, 1e-5), "");
}

TEST(Gemm, CarriesNanFromTheFactors) {
  Stream stream(&CpuDevice());
  TestMatrix a(3, 2, 1), b(2, 4, 2), c(3, 4, 3);
  a.at(1, 0) = std::numeric_limits<float>::quiet_NaN();
  for (int64_t col = 0; col < 4; ++col) b.at(0, col) = 0;
  Gemm(stream, {.a = a.view(), .b = b.view(), .c = c.view()});
  for (int64_t col = 0; col < 4; ++col) {
    EXPECT_FALSE(std::isnan(c.at(0, col)));
    EXPECT_TRUE(std::isnan(c.at(1, col)));
  }
}

TEST(Gemm, DoesNothingToAnEmptyResult) {
  Stream stream(&CpuDevice());
  TestMatrix a(0, 3), b(3, 4, 1), c(0, 4);
  Gemm(stream, {.a = a.view(), .b = b.view(), .c = c.view()});
  EXPECT_TRUE(c.Elements().empty());
}

TEST(Gemm, RefusesShapesThatDoNotFit) {
  Stream stream(&CpuDevice());
  TestMatrix a(3, 2, 1), b(3, 4, 2), c(3, 4, 3);
  EXPECT_THROW(Gemm(stream, {.a = a.view(), .b = b.view(), .c = c.view()}), Error);
}

}  // namespace
}  // namespace terrace
