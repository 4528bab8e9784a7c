// Writes examples into the arrays of a chunk, row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"

namespace terrace {

// The arrays are sized for `max_rows` rows at once and cut at the end, so that a row is written
// through plain pointers. A row counts when it is committed; one that is not is overwritten by the
// next. Used by one thread; lives shorter than the chunk.
class ChunkWriter {
 public:
  // The keys of one group in the current row: begin with Begin, then Add for each key and EndBag
  // after each slot.
  class Keys {
   public:
    // Room for one key a slot and row is there; more has to be asked for.
    void EnsureRoom(size_t more) {
      if (room_ - used_ < more + slots_) [[unlikely]]
        Grow(more);
    }
    void Add(uint64_t key) { keys_[used_++] = key; }
    void Add(uint64_t key, float value) {
      values_[used_] = value;
      keys_[used_++] = key;
    }
    void EndBag() { *++offset_ = static_cast<uint32_t>(used_); }
    // `bags` bags of one key each: key_of(0), key_of(1), ...
    template <typename KeyOf>
    void AddOneEach(size_t bags, KeyOf key_of) {
      uint64_t* const keys = keys_ + used_;
      uint32_t* const ends = offset_ + 1;
      const auto first_end = static_cast<uint32_t>(used_ + 1);
      for (size_t i = 0; i < bags; ++i) {
        keys[i] = key_of(i);
        ends[i] = first_end + static_cast<uint32_t>(i);
      }
      used_ += bags;
      offset_ += bags;
    }

   private:
    friend class ChunkWriter;
    void Grow(size_t more);

    KeyGroup* group_ = nullptr;
    size_t slots_ = 0;
    size_t used_ = 0;
    size_t room_ = 0;
    uint64_t* keys_ = nullptr;
    float* values_ = nullptr;     // null: the shape has none
    uint32_t* offset_ = nullptr;  // of the bag before the next one to end
  };

  ChunkWriter(const BatchShape& shape, int64_t max_rows, Batch* chunk);

  size_t groups() const { return keys_.size(); }
  // Starts the current row's keys of a group anew.
  Keys& Begin(size_t group) {
    Keys& keys = keys_[group];
    keys.offset_ = keys.group_->offsets.data() + row_ * static_cast<int64_t>(keys.slots_);
    keys.used_ = *keys.offset_;
    keys.EnsureRoom(0);
    return keys;
  }
  float* dense() { return chunk_->dense.data() + row_ * chunk_->dense_columns; }
  float& label() { return chunk_->labels[row_]; }
  float& weight() { return chunk_->weights[row_]; }
  uint64_t& group_id() { return chunk_->group_ids[row_]; }
  int64_t& timestamp() { return chunk_->timestamps[row_]; }

  // The current row, with every bag of every group ended, becomes part of the chunk.
  void Commit() { ++row_; }
  // The same for a line that has no example: no keys, zeros, the label kNoExample.
  void CommitNone();
  // Cuts the arrays to the committed rows.
  void Finish();

 private:
  Batch* const chunk_;
  const BatchShape& shape_;
  std::vector<Keys> keys_;
  int64_t row_ = 0;
};

}  // namespace terrace
