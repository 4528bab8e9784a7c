#include "cli/inspect_snapshot.h"

#include "base/error.h"
#include "checkpoint/dense_part.h"

namespace terrace {
namespace {

void ReadRows(const SnapshotView& view, DiskStore* store, const InspectOptions& options,
              TableReport* report) {
  RowDecoder decoder(view.Schema(report->table.name), store->row_bytes());
  const RowLayout& layout = decoder.layout();
  report->counts = layout.counts;
  HottestRows hottest(options.hottest);
  store->Scan(0, store->partitions(), [&](std::span<const uint64_t> keys, const std::byte* rows) {
    const std::span<const float> numbers = decoder.Decode(rows, keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const float* const row = &numbers[i * static_cast<size_t>(layout.format.numbers)];
      const float norm = NormOf(row, layout.weights);
      const RowStats stats = decoder.Stats(rows + i * store->row_bytes());
      report->norms.Add(norm);
      hottest.Add(layout.counts ? stats.show : norm, {keys[i], norm, stats});
    }
    report->rows += static_cast<int64_t>(keys.size());
    if (options.progress) options.progress(report->table.name, report->rows);
  });
  report->hottest = hottest.Sorted();
}

}  // namespace

SnapshotReport InspectSnapshot(const SnapshotView& view, const InspectOptions& options) {
  SnapshotReport report;
  report.path = view.snapshot().path();
  report.info = view.info();
  report.rows_read = options.rows;
  for (const SnapshotTable& table : report.info.tables) {
    TableReport& one = report.tables.emplace_back();
    one.table = table;
    const std::unique_ptr<DiskStore> store = view.OpenTable(table.name);
    one.file_bytes = store->stats().total.file_bytes;
    one.partitions = store->partitions();
    if (options.rows) ReadRows(view, store.get(), options, &one);
  }
  if (report.info.FindFile(kDenseFile) == nullptr) return report;
  const DensePart dense = ReadDense(view.snapshot());
  report.dense_state = static_cast<int64_t>(dense.state.size());
  const float* at = dense.params.data();
  for (const SnapshotDense& block : report.info.dense) {
    const int64_t numbers = NumbersOf(block);
    report.dense.push_back({block, NormOf(at, numbers)});
    at += numbers;
  }
  return report;
}

}  // namespace terrace
