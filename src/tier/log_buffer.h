// The newest entries of a partition, on no page yet.
//
// A full buffer is written, but for rows that were asked for again since they came: like a clock's
// second chance, these stay until nobody has asked for them for one round, so that rows in steady
// use are neither written nor read. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/memory.h"

namespace terrace {

class LogBuffer {
 public:
  explicit LogBuffer(size_t row_bytes = 0) : row_bytes_(row_bytes) {}

  size_t size() const { return mixes_.size(); }
  uint64_t mix(size_t slot) const { return mixes_[slot]; }
  bool tombstone(size_t slot) const { return (flags_[slot] & kTombstone) != 0; }
  // Null: a tombstone.
  const std::byte* row(size_t slot) const {
    return tombstone(slot) ? nullptr : &rows_[slot * row_bytes_];
  }

  // `row` null: a tombstone. The entry's slot is the size before.
  void Add(uint64_t mix, const std::byte* row) {
    mixes_.push_back(mix);
    flags_.push_back(0);
    rows_.resize(size() * row_bytes_);
    Store(size() - 1, row);
  }
  void Replace(size_t slot, const std::byte* row) {
    flags_[slot] = kAgain;
    Store(slot, row);
  }
  void NoteRead(size_t slot) { flags_[slot] |= kAgain; }

  // Slots to be written, in the order of their mixes: all, or whole pages of what nobody asked for
  // again (all, if that is little).
  std::vector<uint32_t> Choose(bool everything, size_t rows_per_page) const;

  // Forgets what was written. The others move to the front in their order, and have to be asked for
  // again to stay.
  void Remove(const std::vector<uint32_t>& written) {
    for (uint32_t slot : written) flags_[slot] = kWritten;
    size_t kept = 0;
    for (size_t slot = 0; slot < size(); ++slot) {
      if (flags_[slot] == kWritten) continue;
      mixes_[kept] = mixes_[slot];
      flags_[kept] = flags_[slot] & kTombstone;
      std::memmove(&rows_[kept * row_bytes_], &rows_[slot * row_bytes_], row_bytes_);
      ++kept;
    }
    mixes_.resize(kept);
    flags_.resize(kept);
    rows_.resize(kept * row_bytes_);
  }

 private:
  static constexpr uint8_t kTombstone = 1, kAgain = 2, kWritten = 4;

  void Store(size_t slot, const std::byte* row) {
    if (row != nullptr)
      std::memcpy(&rows_[slot * row_bytes_], row, row_bytes_);
    else
      flags_[slot] |= kTombstone;
  }

  size_t row_bytes_;
  std::vector<uint64_t> mixes_;
  std::vector<uint8_t> flags_;
  Array<std::byte> rows_;
};

}  // namespace terrace
