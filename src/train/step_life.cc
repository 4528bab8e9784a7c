// What a step does for the life of rows: rows that are due start anew, uses are counted.
#include <algorithm>
#include <numeric>

#include "train/step.h"

namespace terrace {
namespace {

constexpr int64_t kTaskRows = 8 << 10;
constexpr int64_t kAhead = 16;  // rows whose statistics are fetched before their turn

}  // namespace

void StepRunner::RestartDue(const std::vector<TablePlan>& plans, uint32_t tick) {
  for (size_t g = 0; g < plans.size(); ++g) {
    TableLife* const life = state_.lives[g].get();
    if (life == nullptr) continue;
    life->Begin(tick);
    if (!life->expires()) continue;
    MemoryTier& table = *state_.tables[g];
    const TableSchema& schema = table.schema();
    const Array<uint32_t>& positions = plans[g].row_positions;
    const auto rows = static_cast<int64_t>(positions.size());
    const auto row_at = [&](int64_t r) {
      return table.base() + positions[static_cast<size_t>(r)] * schema.layout.stride;
    };
    workers_.Run((rows + kTaskRows - 1) / kTaskRows, [&](int64_t task, int worker) {
      const int64_t end = std::min(rows, (task + 1) * kTaskRows);
      for (int64_t r = task * kTaskRows; r < end; ++r) {
        if (r + kAhead < end) __builtin_prefetch(row_at(r + kAhead) + schema.layout.stats_offset());
        const RowStats stats = RowStats::Read(row_at(r) + schema.layout.stats_offset());
        if (stats.seen == 0 || !life->due().Due(stats)) continue;
        InitRow(schema, table.key(positions[static_cast<size_t>(r)]), row_at(r));
        ++restarted_[static_cast<size_t>(worker)];
      }
    });
  }
}

void StepRunner::HideDue(std::vector<TablePlan>* plans, uint32_t tick) {
  for (size_t g = 0; g < plans->size(); ++g) {
    TableLife* const life = state_.lives[g].get();
    if (life == nullptr) continue;
    life->Begin(tick);
    if (!life->expires()) continue;
    const MemoryTier& table = *state_.tables[g];
    for (uint32_t& position : (*plans)[g].positions) {
      const RowStats stats =
          RowStats::Read(table.row(position) + table.schema().layout.stats_offset());
      if (stats.seen != 0 && life->due().Due(stats)) position = 0;
    }
  }
}

void StepRunner::CountUses(const Batch& batch, const TablePlan& plan, const UpdateTask& task,
                           int worker) {
  const auto g = static_cast<size_t>(task.table);
  const TableLife* const life = state_.lives[g].get();
  if (life == nullptr) return;
  MemoryTier& table = *state_.tables[g];
  const RowLayout& layout = table.schema().layout;
  const auto slots = static_cast<uint32_t>(state_.mean_slots[g].size());
  const uint32_t tick = life->due().now;
  std::vector<RowUse>& uses = uses_[g][static_cast<size_t>(worker)];
  for (int64_t r = task.begin; r < task.end; ++r) {
    const auto row = static_cast<size_t>(r);
    const uint32_t begin = plan.row_offsets[row], end = plan.row_offsets[row + 1];
    float clicks = 0;
    for (uint32_t o = begin; o < end; ++o) clicks += batch.labels[plan.row_bags[o] / slots];
    std::byte* const at =
        table.base() + plan.row_positions[row] * layout.stride + layout.stats_offset();
    RowStats stats = RowStats::Read(at);
    RowUse use;
    if (life->capped() && stats.seen != 0) use = {life->rules().Level(stats), stats.seen, 0};
    life->rules().Use(tick, static_cast<float>(end - begin), clicks, &stats);
    stats.Write(at);
    if (!life->capped()) continue;
    use.is = life->rules().Level(stats);
    uses.push_back(use);
  }
}

void StepRunner::EndLives() {
  for (size_t g = 0; g < state_.lives.size(); ++g) {
    if (state_.lives[g] == nullptr) continue;
    std::vector<RowUse>& all = uses_[g][0];
    for (size_t w = 1; w < uses_[g].size(); ++w) {
      all.insert(all.end(), uses_[g][w].begin(), uses_[g][w].end());
      uses_[g][w].clear();
    }
    state_.lives[g]->End(all);
    all.clear();
  }
}

int64_t StepRunner::restarted() const {
  return std::accumulate(restarted_.begin(), restarted_.end(), int64_t{0});
}

}  // namespace terrace
