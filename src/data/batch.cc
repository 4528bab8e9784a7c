#include "data/batch.h"

#include <algorithm>

#include "base/error.h"

namespace terrace {
namespace {

template <typename T>
void AppendRange(const std::vector<T>& from, int64_t begin, int64_t end, std::vector<T>* to) {
  if (from.empty()) return;
  to->insert(to->end(), from.begin() + begin, from.begin() + end);
}

template <typename T>
void AppendPicked(const std::vector<std::unique_ptr<Batch>>& from, std::vector<T> Batch::*array,
                  std::span<const ExampleRef> refs, Batch* to) {
  if (refs.empty() || ((*from[refs[0].batch]).*array).empty()) return;
  std::vector<T>& out = to->*array;
  const size_t begin = out.size();
  out.resize(begin + refs.size());
  for (size_t i = 0; i < refs.size(); ++i)
    out[begin + i] = ((*from[refs[i].batch]).*array)[refs[i].example];
}

void AppendKeys(const KeyGroup& from, int64_t begin, int64_t end, KeyGroup* to) {
  const uint32_t* bags = from.offsets.data();
  const uint32_t first = bags[begin * from.slots];
  const uint32_t last = bags[end * from.slots];
  // Unsigned arithmetic wraps as it should where the shift is to the left.
  const uint32_t shift = static_cast<uint32_t>(to->keys.size()) - first;
  AppendRange(from.keys, first, last, &to->keys);
  AppendRange(from.values, first, last, &to->values);
  const int64_t first_bag = begin * from.slots + 1;
  const int64_t count = (end - begin) * from.slots;
  const size_t out = to->offsets.size();
  to->offsets.resize(out + count);
  for (int64_t b = 0; b < count; ++b) to->offsets[out + b] = bags[first_bag + b] + shift;
}

// The examples lie anywhere in the block that is being shuffled: what a pass reads is asked for
// this many examples ahead.
constexpr size_t kPrefetchAhead = 8;

// A batch without a single key of the group does not tell.
bool HasValues(const std::vector<std::unique_ptr<Batch>>& from, size_t group) {
  for (const auto& batch : from)
    if (!batch->groups[group].keys.empty()) return !batch->groups[group].values.empty();
  return false;
}

void AppendPickedKeys(const std::vector<std::unique_ptr<Batch>>& from, size_t group,
                      std::span<const ExampleRef> refs, KeyGroup* to) {
  const int64_t slots = to->slots;
  const auto bags_of = [&](const ExampleRef& ref) {
    return from[ref.batch]->groups[group].offsets.data() + ref.example * slots;
  };
  size_t bag = to->offsets.size();
  to->offsets.resize(bag + refs.size() * slots);
  uint32_t total = static_cast<uint32_t>(to->keys.size());
  for (size_t i = 0; i < refs.size(); ++i) {
    if (i + kPrefetchAhead < refs.size()) __builtin_prefetch(bags_of(refs[i + kPrefetchAhead]));
    const uint32_t* bags = bags_of(refs[i]);
    const uint32_t shift = total - bags[0];
    for (int64_t j = 1; j <= slots; ++j) to->offsets[bag++] = bags[j] + shift;
    total = bags[slots] + shift;
  }
  const bool has_values = HasValues(from, group);
  size_t out = to->keys.size();
  to->keys.resize(total);
  if (has_values) to->values.resize(total);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (i + kPrefetchAhead < refs.size()) {
      const ExampleRef& ahead = refs[i + kPrefetchAhead];
      __builtin_prefetch(from[ahead.batch]->groups[group].keys.data() + bags_of(ahead)[0]);
    }
    const KeyGroup& keys = from[refs[i].batch]->groups[group];
    const uint32_t* bags = bags_of(refs[i]);
    std::copy(keys.keys.begin() + bags[0], keys.keys.begin() + bags[slots], to->keys.begin() + out);
    if (has_values)
      std::copy(keys.values.begin() + bags[0], keys.values.begin() + bags[slots],
                to->values.begin() + out);
    out += bags[slots] - bags[0];
  }
}

template <typename T>
int64_t BytesOf(const std::vector<T>& array) {
  return static_cast<int64_t>(array.capacity() * sizeof(T));
}

}  // namespace

uint32_t KeysOfEachBag(const KeyGroup& group) {
  const std::vector<uint32_t>& offsets = group.offsets;
  const size_t bags = offsets.size() - 1;
  if (bags == 0 || offsets[bags] % bags != 0) return 0;
  const auto keys = static_cast<uint32_t>(offsets[bags] / bags);
  uint32_t different = 0;
  for (size_t bag = 0; bag < bags; ++bag) different |= offsets[bag + 1] - offsets[bag] - keys;
  return different == 0 ? keys : 0;
}

void FillOffsets(size_t bags, uint32_t keys, std::vector<uint32_t>* offsets) {
  offsets->resize(bags + 1);
  for (size_t bag = 0; bag <= bags; ++bag) (*offsets)[bag] = static_cast<uint32_t>(bag) * keys;
}

Batch MakeBatch(const BatchShape& shape) {
  Batch batch;
  batch.dense_columns = shape.dense_columns;
  batch.groups.resize(shape.group_slots.size());
  for (size_t g = 0; g < shape.group_slots.size(); ++g) {
    batch.groups[g].slots = shape.group_slots[g];
    batch.groups[g].offsets.push_back(0);
  }
  return batch;
}

void ClearBatch(Batch* batch) {
  batch->examples = 0;
  for (KeyGroup& group : batch->groups) {
    group.keys.clear();
    group.offsets.assign(1, 0);
    group.values.clear();
  }
  batch->dense.clear();
  batch->labels.clear();
  batch->weights.clear();
  batch->group_ids.clear();
  batch->timestamps.clear();
  batch->truth.clear();
}

void AppendExamples(const Batch& from, int64_t begin, int64_t end, Batch* to) {
  TERRACE_CHECK(0 <= begin && begin <= end && end <= from.examples);
  TERRACE_CHECK(from.groups.size() == to->groups.size());
  TERRACE_CHECK(from.dense_columns == to->dense_columns);
  for (size_t g = 0; g < from.groups.size(); ++g)
    AppendKeys(from.groups[g], begin, end, &to->groups[g]);
  AppendRange(from.dense, begin * from.dense_columns, end * from.dense_columns, &to->dense);
  AppendRange(from.labels, begin, end, &to->labels);
  AppendRange(from.weights, begin, end, &to->weights);
  AppendRange(from.group_ids, begin, end, &to->group_ids);
  AppendRange(from.timestamps, begin, end, &to->timestamps);
  AppendRange(from.truth, begin, end, &to->truth);
  to->examples += end - begin;
}

void GatherExamples(const std::vector<std::unique_ptr<Batch>>& from,
                    std::span<const ExampleRef> refs, Batch* to) {
  if (refs.empty()) return;
  for (size_t g = 0; g < to->groups.size(); ++g) AppendPickedKeys(from, g, refs, &to->groups[g]);
  const int64_t columns = to->dense_columns;
  if (columns > 0) {
    size_t out = to->dense.size();
    to->dense.resize(out + refs.size() * columns);
    for (size_t i = 0; i < refs.size(); ++i, out += columns) {
      if (i + kPrefetchAhead < refs.size()) {
        const ExampleRef& ahead = refs[i + kPrefetchAhead];
        __builtin_prefetch(from[ahead.batch]->dense.data() + ahead.example * columns);
      }
      const float* row = from[refs[i].batch]->dense.data() + refs[i].example * columns;
      std::copy(row, row + columns, to->dense.data() + out);
    }
  }
  AppendPicked(from, &Batch::labels, refs, to);
  AppendPicked(from, &Batch::weights, refs, to);
  AppendPicked(from, &Batch::group_ids, refs, to);
  AppendPicked(from, &Batch::timestamps, refs, to);
  AppendPicked(from, &Batch::truth, refs, to);
  to->examples += static_cast<int64_t>(refs.size());
}

int64_t BatchBytes(const Batch& batch) {
  int64_t bytes = BytesOf(batch.dense) + BytesOf(batch.labels) + BytesOf(batch.weights) +
                  BytesOf(batch.group_ids) + BytesOf(batch.timestamps) + BytesOf(batch.truth);
  for (const KeyGroup& group : batch.groups)
    bytes += BytesOf(group.keys) + BytesOf(group.offsets) + BytesOf(group.values);
  return bytes;
}

}  // namespace terrace
