// Examples in compressed form: the unit that flows from `read` to `train`.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace terrace {

// The keys of the slots that share one table. A *bag* is one slot of one example: bag
// e * slots + j holds the keys of the group's slot j in example e.
struct KeyGroup {
  int slots = 0;
  std::vector<uint64_t> keys;  // [occurrences], example-major, then slot, then cell order
  std::vector<uint32_t>
      offsets;                // [examples * slots + 1]: bag b holds keys [offsets[b], offsets[b+1])
  std::vector<float> values;  // [occurrences], or empty: every value is 1
};

// How many keys each bag of a group with some has, if all have as many; else 0.
uint32_t KeysOfEachBag(const KeyGroup& group);
// The offsets of `bags` such bags.
void FillOffsets(size_t bags, uint32_t keys, std::vector<uint32_t>* offsets);

// The label in place of one where a line to be scored has no example (OpenDataOptions::labels).
inline constexpr float kNoExample = -1;

// Plain data; owned by one stage at a time. Arrays that a source does not provide stay empty.
struct Batch {
  int64_t examples = 0;
  std::vector<KeyGroup> groups;  // one for each table, in table order
  int dense_columns = 0;
  std::vector<float> dense;         // [examples, dense_columns]
  std::vector<float> labels;        // [examples], in [0, 1], or kNoExample
  std::vector<float> weights;       // [examples], or empty: 1
  std::vector<uint64_t> group_ids;  // [examples], or empty: the key of GAUC's group column
  std::vector<int64_t> timestamps;  // [examples], or empty
  std::vector<float> truth;         // [examples], or empty: the generator's click probability
};

// The shape that every batch of a source has; fixed before reading starts.
struct BatchShape {
  std::vector<int> group_slots;  // slots of each key group
  int dense_columns = 0;
  bool has_values = false;
  bool has_weights = false;
  bool has_group_ids = false;
  bool has_timestamps = false;
  bool has_truth = false;
};

// An empty batch of that shape (offsets hold their leading 0).
Batch MakeBatch(const BatchShape& shape);
// Forgets the examples, keeps shape and memory.
void ClearBatch(Batch* batch);
// Appends examples [begin, end) of `from`, which has the same shape.
void AppendExamples(const Batch& from, int64_t begin, int64_t end, Batch* to);

// One example of a list of batches.
struct ExampleRef {
  uint32_t batch = 0;
  uint32_t example = 0;
};
// Appends the examples of `from`, all of the same shape as `to`, in the order of `refs`.
void GatherExamples(const std::vector<std::unique_ptr<Batch>>& from,
                    std::span<const ExampleRef> refs, Batch* to);

// Bytes held by the arrays.
int64_t BatchBytes(const Batch& batch);

// A stream of batches in a fixed order. One thread calls Next.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual const BatchShape& shape() const = 0;
  // Fills *batch with the next `size` examples (fewer at the end). False: nothing was left.
  // Throws Error on bad input.
  virtual bool Next(int64_t size, Batch* batch) = 0;
};

}  // namespace terrace
