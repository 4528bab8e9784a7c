// Memory that grows and never moves: one reserved range of addresses, made usable from its start
// in steps.
//
// Usable bytes start as zero. Memory is taken from the system when it is first touched, in huge
// pages once the arena has outgrown one, so a small arena stays small. One thread calls Grow;
// others may at the same time use bytes below an earlier size().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace terrace {

class RowArena {
 public:
  // `what` names the arena in errors ("table 'user': rows"). Reserves min(max_bytes, twice the
  // machine's memory). Throws Error(kIo) if the system refuses the addresses.
  RowArena(std::string what, int64_t max_bytes);
  ~RowArena();
  RowArena(const RowArena&) = delete;
  RowArena& operator=(const RowArena&) = delete;

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }          // usable bytes
  int64_t capacity() const { return capacity_; }  // what size() can grow to

  // Makes size() at least `bytes`. Throws Error(kIo) at the capacity or when memory runs out; the
  // arena is then as it was.
  void Grow(int64_t bytes) {
    if (bytes > size_) [[unlikely]]
      GrowSlow(bytes);
  }

 private:
  void GrowSlow(int64_t bytes);

  const std::string what_;
  int64_t capacity_ = 0;
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace terrace
