#include "data/chunk_writer.h"

#include <algorithm>

namespace terrace {

ChunkWriter::ChunkWriter(const BatchShape& shape, int64_t max_rows, Batch* chunk)
    : chunk_(chunk), shape_(shape), keys_(shape.group_slots.size()) {
  chunk->labels.resize(max_rows);
  chunk->dense.resize(max_rows * shape.dense_columns);
  if (shape.has_weights) chunk->weights.resize(max_rows);
  if (shape.has_group_ids) chunk->group_ids.resize(max_rows);
  if (shape.has_timestamps) chunk->timestamps.resize(max_rows);
  for (size_t g = 0; g < keys_.size(); ++g) {
    Keys& keys = keys_[g];
    keys.group_ = &chunk->groups[g];
    keys.slots_ = static_cast<size_t>(shape.group_slots[g]);
    keys.room_ = (max_rows + 1) * keys.slots_;
    keys.group_->offsets.resize(max_rows * keys.slots_ + 1);
    keys.group_->keys.resize(keys.room_);
    if (shape.has_values) keys.group_->values.resize(keys.room_);
    keys.keys_ = keys.group_->keys.data();
    keys.values_ = shape.has_values ? keys.group_->values.data() : nullptr;
  }
}

void ChunkWriter::Keys::Grow(size_t more) {
  room_ = std::max(2 * room_, used_ + more + slots_);
  group_->keys.resize(room_);
  keys_ = group_->keys.data();
  if (values_ == nullptr) return;
  group_->values.resize(room_);
  values_ = group_->values.data();
}

void ChunkWriter::CommitNone() {
  label() = kNoExample;
  std::fill_n(dense(), chunk_->dense_columns, 0.0f);
  if (shape_.has_weights) weight() = 0;
  if (shape_.has_group_ids) group_id() = 0;
  if (shape_.has_timestamps) timestamp() = 0;
  for (size_t g = 0; g < keys_.size(); ++g) {
    Keys& keys = Begin(g);
    for (size_t s = 0; s < keys.slots_; ++s) keys.EndBag();
  }
  Commit();
}

void ChunkWriter::Finish() {
  chunk_->examples = row_;
  chunk_->labels.resize(row_);
  chunk_->dense.resize(row_ * shape_.dense_columns);
  if (shape_.has_weights) chunk_->weights.resize(row_);
  if (shape_.has_group_ids) chunk_->group_ids.resize(row_);
  if (shape_.has_timestamps) chunk_->timestamps.resize(row_);
  for (Keys& keys : keys_) {
    const size_t used = keys.group_->offsets[row_ * keys.slots_];
    keys.group_->offsets.resize(row_ * keys.slots_ + 1);
    keys.group_->keys.resize(used);
    if (shape_.has_values) keys.group_->values.resize(used);
  }
}

}  // namespace terrace
