#include "cli/snapshot_diff.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/queue.h"
#include "base/workers.h"
#include "checkpoint/dense_part.h"
#include "cli/row_norms.h"
#include "tier/disk_page.h"

namespace terrace {
namespace {

struct Stopped {};  // thrown through a scan whose rows nobody takes any more

// Rows of a store one by one, scanned by a thread of its own.
class RowStream {
 public:
  explicit RowStream(DiskStore* store) : store_(*store), queue_(4), thread_([this] { Run(); }) {}
  ~RowStream() { queue_.Cancel(); }

  // False at the end. Throws what the scan threw.
  bool Next() {
    if (block_ && ++at_ < block_->keys.size()) return true;
    at_ = 0;
    block_ = queue_.Pop();
    if (block_) return true;
    if (failure_) std::rethrow_exception(failure_);
    return false;
  }
  uint64_t key() const { return block_->keys[at_]; }
  const std::byte* row() const { return &block_->rows[at_ * store_.row_bytes()]; }

 private:
  struct Block {
    std::vector<uint64_t> keys;
    std::vector<std::byte> rows;
  };

  void Run() {
    NameThisThread("diff-read");
    try {
      store_.Scan(0, store_.partitions(),
                  [&](std::span<const uint64_t> keys, const std::byte* rows) {
                    Block block{{keys.begin(), keys.end()},
                                {rows, rows + keys.size() * store_.row_bytes()}};
                    if (!queue_.Push(std::move(block))) throw Stopped();
                  });
    } catch (const Stopped&) {
    } catch (...) {
      failure_ = std::current_exception();
    }
    queue_.Close();
  }

  DiskStore& store_;
  BoundedQueue<Block> queue_;
  std::exception_ptr failure_;  // written before the queue is closed, read after that
  std::optional<Block> block_;
  size_t at_ = 0;
  std::jthread thread_;  // last: it uses the others
};

void Note(uint64_t key, size_t limit, int64_t* count, std::vector<uint64_t>* keys) {
  if (static_cast<size_t>(++*count) <= limit) keys->push_back(key);
}

TableDiff DiffTable(const SnapshotView& before, const SnapshotView& after, const std::string& name,
                    const DiffOptions& options) {
  TableDiff diff;
  diff.name = name;
  diff.before = before.info().FindTable(name) != nullptr;
  diff.after = after.info().FindTable(name) != nullptr;
  if (!diff.before || !diff.after) return diff;
  const std::unique_ptr<DiskStore> old_store = before.OpenTable(name);
  const std::unique_ptr<DiskStore> new_store = after.OpenTable(name);
  const TableSchema &old_schema = before.Schema(name), &new_schema = after.Schema(name);
  RowDecoder old_rows(old_schema, old_store->row_bytes());
  RowDecoder new_rows(new_schema, new_store->row_bytes());
  const int weights = new_rows.layout().weights;
  diff.same_layout = old_rows.layout().weights == weights;
  std::vector<float> difference(static_cast<size_t>(weights));
  double sum = 0;
  const auto measure = [&](const std::byte* old_row, const std::byte* new_row) {
    const float* const a = old_rows.Decode(old_row, 1).data();
    const float* const b = new_rows.Decode(new_row, 1).data();
    for (int i = 0; i < weights; ++i) difference[static_cast<size_t>(i)] = b[i] - a[i];
    const double norm = NormOf(difference.data(), weights);
    sum += norm;
    diff.max_change = std::max(diff.max_change, norm);
  };
  diff.rows = DiffStores(old_store.get(), new_store.get(), options,
                         diff.same_layout ? ChangedRow(measure) : ChangedRow());
  if (diff.rows.changed > 0) diff.mean_change = sum / static_cast<double>(diff.rows.changed);
  return diff;
}

struct Block {
  std::vector<int64_t> shape;
  const float* numbers = nullptr;
  int64_t count = 0;
};
std::map<std::string, Block> BlocksOf(const SnapshotInfo& info, const DensePart& dense) {
  std::map<std::string, Block> blocks;
  const float* at = dense.params.data();
  for (const SnapshotDense& block : info.dense) {
    blocks[block.name] = {block.shape, at, NumbersOf(block)};
    at += NumbersOf(block);
  }
  return blocks;
}

std::vector<DenseDiff> DiffDense(const SnapshotView& before, const SnapshotView& after) {
  const auto read = [](const SnapshotView& view) {
    const bool has = view.info().FindFile(kDenseFile) != nullptr;
    return has ? ReadDense(view.snapshot()) : DensePart{};
  };
  const auto info = [](const SnapshotView& view, const DensePart& part) {
    return part.params.empty() ? std::map<std::string, Block>{} : BlocksOf(view.info(), part);
  };
  const DensePart old_part = read(before), new_part = read(after);
  std::map<std::string, Block> old_blocks = info(before, old_part);
  std::map<std::string, Block> new_blocks = info(after, new_part);
  std::set<std::string> names;
  for (const auto& named : old_blocks) names.insert(named.first);
  for (const auto& named : new_blocks) names.insert(named.first);
  std::vector<DenseDiff> diffs;
  for (const std::string& name : names) {
    const Block a = old_blocks[name], b = new_blocks[name];
    DenseDiff& diff = diffs.emplace_back();
    diff.name = name;
    diff.before = NormOf(a.numbers, a.count);
    diff.after = NormOf(b.numbers, b.count);
    diff.comparable = a.shape == b.shape;
    if (!diff.comparable) continue;
    std::vector<float> difference(static_cast<size_t>(a.count));
    for (int64_t i = 0; i < a.count; ++i)
      difference[static_cast<size_t>(i)] = b.numbers[i] - a.numbers[i];
    diff.difference = NormOf(difference.data(), a.count);
  }
  return diffs;
}

}  // namespace

RowsDiff DiffStores(DiskStore* before, DiskStore* after, const DiffOptions& options,
                    const ChangedRow& changed) {
  RowsDiff diff;
  const size_t bytes = after->row_bytes();
  const bool same_size = before->row_bytes() == bytes;
  const auto removed = [&](uint64_t key) {
    Note(key, options.keys, &diff.removed, &diff.removed_keys);
  };
  int64_t seen = 0;
  RowStream old_rows(before);
  bool more = old_rows.Next();
  after->Scan(0, after->partitions(), [&](std::span<const uint64_t> keys, const std::byte* rows) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t mix = MixOfKey(keys[i]);
      for (; more && MixOfKey(old_rows.key()) < mix; more = old_rows.Next())
        removed(old_rows.key());
      if (!more || old_rows.key() != keys[i]) {
        Note(keys[i], options.keys, &diff.added, &diff.added_keys);
        continue;
      }
      const std::byte* const row = rows + i * bytes;
      if (same_size && std::memcmp(old_rows.row(), row, bytes) == 0) {
        ++diff.same;
      } else {
        Note(keys[i], options.keys, &diff.changed, &diff.changed_keys);
        if (changed) changed(old_rows.row(), row);
      }
      more = old_rows.Next();
    }
    seen += static_cast<int64_t>(keys.size());
    if (options.progress) options.progress(seen);
  });
  for (; more; more = old_rows.Next()) removed(old_rows.key());
  return diff;
}

SnapshotDiff DiffSnapshots(const SnapshotView& before, const SnapshotView& after,
                           const DiffOptions& options) {
  std::set<std::string> names;
  for (const SnapshotTable& table : before.info().tables) names.insert(table.name);
  for (const SnapshotTable& table : after.info().tables) names.insert(table.name);
  SnapshotDiff diff;
  for (const std::string& name : names)
    diff.tables.push_back(DiffTable(before, after, name, options));
  diff.dense = DiffDense(before, after);
  return diff;
}

}  // namespace terrace
