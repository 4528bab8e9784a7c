#include "table/row_optimizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "table/row_kernels.h"

namespace terrace {
namespace {

constexpr RowOptimizer kAll[] = {RowOptimizer::kSgd, RowOptimizer::kAdaGrad,
                                 RowOptimizer::kRowAdaGrad, RowOptimizer::kAdam,
                                 RowOptimizer::kFtrl};

// A small arena of rows with their initial values.
struct TestTable {
  TableSchema schema;
  std::vector<float> arena;

  TestTable(const TableConfig& config, bool linear, int rows)
      : schema(TableSchema::Make("t", config, linear, 1)),
        arena(rows * schema.layout.stride / sizeof(float)) {
    for (int r = 0; r < rows; ++r) {
      InitRow(schema, RandomBits(1, r), reinterpret_cast<std::byte*>(row(r)));
      std::fill(row(r) + schema.layout.weights + schema.layout.state, row(r + 1), 77.0f);
    }
  }
  float* row(int r) { return arena.data() + r * schema.layout.stride / sizeof(float); }

  void Update(const std::vector<uint32_t>& positions, std::vector<float> grads, int64_t step,
              double lr_factor = 1) {
    Stream stream(nullptr);
    RowUpdateArgs args;
    args.base = reinterpret_cast<std::byte*>(arena.data());
    args.stride_bytes = schema.layout.stride;
    args.positions = positions.data();
    args.grads = grads.data();
    args.rows = static_cast<int64_t>(positions.size());
    args.lr = schema.config.lr * lr_factor;
    args.step = step;
    UpdateRows(stream, schema, args);
  }
};

std::vector<float> RandomGrads(int64_t n, uint64_t seed) {
  std::vector<float> grads(n);
  for (int64_t i = 0; i < n; ++i) grads[i] = 2 * UnitFloat(RandomBits(seed, i)) - 1;
  return grads;
}

// The textbook, in double, for one row: weights and state as InitRow lays them out.
void Reference(const TableConfig& c, int linear, int64_t step, std::vector<double> g,
               std::vector<double>* weights, std::vector<double>* state) {
  std::vector<double>& w = *weights;
  std::vector<double>& s = *state;
  const int n = static_cast<int>(w.size());
  double norm = 0;
  for (int i = 0; i < n; ++i) {
    g[i] += c.l2 * w[i];
    norm += g[i] * g[i];
  }
  norm = std::sqrt(norm);
  if (c.clip_norm > 0 && norm > c.clip_norm)
    for (double& x : g) x *= c.clip_norm / norm;
  const int dim = n - linear;
  double mean_square = 0;
  for (int i = 0; i < dim; ++i) mean_square += g[i] * g[i] / dim;
  if (c.optimizer == RowOptimizer::kRowAdaGrad) {
    if (dim > 0) s[0] += mean_square;
    if (linear != 0) s.back() += g[dim] * g[dim];
  }
  for (int i = 0; i < n; ++i) {
    switch (c.optimizer) {
      case RowOptimizer::kSgd:
        w[i] -= c.lr * g[i];
        break;
      case RowOptimizer::kAdaGrad:
        s[i] += g[i] * g[i];
        w[i] -= c.lr * g[i] / (std::sqrt(s[i]) + c.eps);
        break;
      case RowOptimizer::kRowAdaGrad:
        w[i] -= c.lr * g[i] / (std::sqrt(i < dim ? s[0] : s.back()) + c.eps);
        break;
      case RowOptimizer::kAdam: {
        s[i] = c.beta1 * s[i] + (1 - c.beta1) * g[i];
        s[n + i] = c.beta2 * s[n + i] + (1 - c.beta2) * g[i] * g[i];
        const double m = s[i] / (1 - std::pow(c.beta1, static_cast<double>(step)));
        const double v = s[n + i] / (1 - std::pow(c.beta2, static_cast<double>(step)));
        w[i] -= c.lr * m / (std::sqrt(v) + c.eps);
        break;
      }
      case RowOptimizer::kFtrl: {
        const double sigma = (std::sqrt(s[n + i] + g[i] * g[i]) - std::sqrt(s[n + i])) / c.lr;
        s[i] += g[i] - sigma * w[i];
        s[n + i] += g[i] * g[i];
        const double sign = s[i] > 0 ? 1 : -1;
        w[i] = std::abs(s[i]) <= c.ftrl_l1
                   ? 0
                   : -(s[i] - sign * c.ftrl_l1) /
                         ((c.ftrl_beta + std::sqrt(s[n + i])) / c.lr + c.ftrl_l2);
        break;
      }
    }
  }
}

TableConfig ConfigOf(RowOptimizer optimizer, int64_t dim) {
  TableConfig config;
  config.optimizer = optimizer;
  config.dim = dim;
  config.init_scale = 0.5;
  config.initial_accumulator = 0.125;
  config.ftrl_l1 = 0.4;
  config.ftrl_l2 = 0.3;
  config.ftrl_beta = 0.7;
  return config;
}

TEST(UpdateRows, FollowsTheTextbook) {
  for (RowOptimizer optimizer : kAll)
    for (int64_t dim : {0, 1, 3, 7, 8, 15, 16, 31, 32, 40})
      for (bool linear : {false, true})
        for (bool regularised : {false, true}) {
          if (dim == 0 && !linear) continue;
          TableConfig config = ConfigOf(optimizer, dim);
          config.lr = 0.1;
          if (regularised) {
            config.l2 = 0.25;
            config.clip_norm = 1.5;
          }
          TestTable table(config, linear, 3);
          const RowLayout& layout = table.schema.layout;
          std::vector<double> weights(table.row(1), table.row(1) + layout.weights);
          std::vector<double> state(table.row(1) + layout.weights,
                                    table.row(1) + layout.weights + layout.state);
          for (int64_t step = 1; step <= 5; ++step) {
            const std::vector<float> grads = RandomGrads(layout.weights, step);
            Reference(config, layout.linear, step, {grads.begin(), grads.end()}, &weights, &state);
            table.Update({1}, grads, step);
          }
          for (int i = 0; i < layout.weights; ++i)
            ASSERT_NEAR(table.row(1)[i], weights[i], 2e-5)
                << static_cast<int>(optimizer) << " dim " << dim << " weight " << i;
          for (int i = 0; i < layout.state; ++i)
            ASSERT_NEAR(table.row(1)[layout.weights + i], state[i], 2e-5 * (1 + std::abs(state[i])))
                << static_cast<int>(optimizer) << " dim " << dim << " state " << i;
        }
}

TEST(UpdateRows, FtrlKeepsTheInitialWeightsUntilGradientsMoveThem) {
  TableConfig config = ConfigOf(RowOptimizer::kFtrl, 16);
  TestTable table(config, true, 2);
  const std::vector<float> before(table.row(1), table.row(1) + 17);
  table.Update({1}, std::vector<float>(17, 0.0f), 1);
  for (int i = 0; i < 17; ++i) EXPECT_NEAR(table.row(1)[i], before[i], 1e-6) << i;
  EXPECT_NE(before[0], 0);
}

TEST(UpdateRows, FtrlZeroesWeightsWithLittleEvidence) {
  TableConfig config = ConfigOf(RowOptimizer::kFtrl, 0);
  config.ftrl_l1 = 1;
  TestTable table(config, true, 2);
  table.Update({1}, {0.75f}, 1);
  EXPECT_EQ(table.row(1)[0], 0);
  table.Update({1}, {0.75f}, 2);
  EXPECT_LT(table.row(1)[0], 0);
}

TEST(UpdateRows, ScheduleScalesTheRateOfAllButFtrl) {
  for (RowOptimizer optimizer : kAll) {
    TestTable full(ConfigOf(optimizer, 8), true, 2);
    TestTable none(ConfigOf(optimizer, 8), true, 2);
    const TestTable before = none;
    full.Update({1}, RandomGrads(9, 4), 1);
    none.Update({1}, RandomGrads(9, 4), 1, 0);
    const size_t row = full.schema.layout.stride;
    const bool same = std::memcmp(full.row(1), none.row(1), row) == 0;
    EXPECT_EQ(same, optimizer == RowOptimizer::kFtrl);
    const float* const start = before.arena.data() + row / sizeof(float);
    EXPECT_EQ(std::equal(start, start + 9, none.row(1)), optimizer != RowOptimizer::kFtrl);
  }
}

// One writer a row: a row's bits depend on the row only, not on the others of the call.
TEST(UpdateRows, SplittingTheRowsOfACallChangesNoBit) {
  ASSERT_TRUE(rc::check([] {
    TableConfig config =
        ConfigOf(*rc::gen::elementOf(std::vector(std::begin(kAll), std::end(kAll))),
                 *rc::gen::inRange(0, 40));
    config.l2 = *rc::gen::element(0.0, 0.1);
    config.clip_norm = *rc::gen::element(0.0, 1.0);
    const int rows = *rc::gen::inRange(1, 60);
    TestTable whole(config, true, rows + 1);
    TestTable parts = whole;
    std::vector<uint32_t> positions(rows);
    for (int r = 0; r < rows; ++r) positions[r] = static_cast<uint32_t>(rows - r);
    const int n = whole.schema.layout.weights;
    const std::vector<float> grads = RandomGrads(int64_t{rows} * n, 9);
    whole.Update(positions, grads, 3);
    for (int begin = 0; begin < rows;) {
      const int end = std::min(rows, begin + *rc::gen::inRange(1, 20));
      parts.Update({positions.begin() + begin, positions.begin() + end},
                   {grads.begin() + begin * n, grads.begin() + end * n}, 3);
      begin = end;
    }
    RC_ASSERT(whole.arena.size() == parts.arena.size());
    RC_ASSERT(std::memcmp(whole.arena.data(), parts.arena.data(), whole.arena.size() * 4) == 0);
  }));
}

TEST(UpdateRows, TouchesOnlyWeightsAndStateOfItsRows) {
  for (RowOptimizer optimizer : kAll)
    for (int64_t dim : {1, 8, 16, 37}) {
      TestTable table(ConfigOf(optimizer, dim), true, 5);
      TestTable before = table;
      const RowLayout& layout = table.schema.layout;
      table.Update({2, 4}, RandomGrads(2 * layout.weights, 1), 1);
      const int used = layout.weights + layout.state;
      const int stride = static_cast<int>(layout.stride / sizeof(float));
      for (int r = 0; r < 5; ++r)
        for (int i = (r == 2 || r == 4) ? used : 0; i < stride; ++i)
          ASSERT_EQ(table.row(r)[i], before.row(r)[i]) << r << " " << i;
      ASSERT_NE(table.row(2)[0], before.row(2)[0]);
      ASSERT_NE(table.row(4)[0], before.row(4)[0]);
    }
}

TEST(RowOptimizerKernels, GiveTheSameBitsAtEveryLevel) {
  std::vector<const RowOptimizerKernels*> tables = {&isa_baseline::kRowOptimizerKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) tables.push_back(&isa_avx2::kRowOptimizerKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) tables.push_back(&isa_avx512::kRowOptimizerKernels);
#endif
  using Kernel = void (*RowOptimizerKernels::*)(const RowKernelArgs&);
  const Kernel kernels[] = {&RowOptimizerKernels::sgd, &RowOptimizerKernels::adagrad,
                            &RowOptimizerKernels::row_adagrad, &RowOptimizerKernels::adam,
                            &RowOptimizerKernels::ftrl};
  for (size_t k = 0; k < std::size(kernels); ++k)
    for (int dim = 0; dim <= 40; ++dim)
      for (int linear = dim == 0 ? 1 : 0; linear < 2; ++linear) {
        const TestTable start(ConfigOf(kAll[k], dim), linear != 0, 30);
        std::vector<uint32_t> positions;
        for (uint32_t p = 1; p < 30; p += 2) positions.push_back(p);
        std::vector<float> first;
        for (const RowOptimizerKernels* table : tables) {
          TestTable t = start;
          const RowLayout& layout = t.schema.layout;
          std::vector<float> grads =
              RandomGrads(static_cast<int64_t>(positions.size()) * layout.weights, dim);
          RowKernelArgs a;
          auto* const base = reinterpret_cast<std::byte*>(t.arena.data());
          a.weights = {base, layout.stride, positions.data()};
          a.state = {base + 4 * layout.weights, layout.stride, positions.data()};
          a.dim = layout.dim;
          a.linear = layout.linear;
          a.grads = grads.data();
          a.rows = static_cast<int64_t>(positions.size());
          a.l2 = 0.01f;
          a.clip_norm = 1.1f;
          a.lr = 0.3f;
          a.eps = 1e-8f;
          a.beta1 = 0.9f;
          a.one_minus_beta1 = 0.1f;
          a.beta2 = 0.99f;
          a.one_minus_beta2 = 0.01f;
          a.rescale = 3;
          a.ftrl_l1 = 0.3f;
          a.ftrl_l2 = 0.1f;
          a.ftrl_beta = 0.7f;
          (table->*kernels[k])(a);
          if (first.empty()) first = t.arena;
          ASSERT_EQ(std::memcmp(first.data(), t.arena.data(), first.size() * sizeof(float)), 0)
              << "kernel " << k << " dim " << dim;
        }
        ASSERT_NE(std::memcmp(first.data(), start.arena.data(), first.size() * sizeof(float)), 0);
      }
}

}  // namespace
}  // namespace terrace
