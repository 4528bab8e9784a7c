// Memory for large arrays: on huge pages, so that random access does not miss the TLB.
//
// Small arrays come from the heap, aligned to cache lines. All calls are safe from any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace terrace {

// `zeroed`: the bytes are 0, else they are anything. Throws Error(kIo) when memory runs out.
void* AllocateArray(size_t bytes, bool zeroed);
// `bytes` as in the allocation.
void FreeArray(void* data, size_t bytes);

template <typename T>
struct ArrayAllocator {
  using value_type = T;

  ArrayAllocator() = default;
  template <typename U>
  ArrayAllocator(const ArrayAllocator<U>&) {}  // NOLINT: as the standard wants it

  T* allocate(size_t n) {
    if (n > std::numeric_limits<size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(AllocateArray(n * sizeof(T), false));
  }
  void deallocate(T* data, size_t n) { FreeArray(data, n * sizeof(T)); }

  // resize(n) leaves new elements as they are: who resizes writes them.
  template <typename U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Args>
  void construct(U* place, Args&&... args) {
    ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
  }

  bool operator==(const ArrayAllocator&) const { return true; }
};

// A vector of plain values for the hot path. resize() does not clear.
template <typename T>
using Array = std::vector<T, ArrayAllocator<T>>;

// Sets the size; what was in the array is lost. Unlike resize() it takes little more memory than is
// needed, for arrays whose size is about the same each time.
template <typename T>
void SetSize(Array<T>* array, size_t size) {
  if (size > array->capacity()) {
    *array = {};
    array->reserve(size + size / 16);
  }
  array->resize(size);
}

// Bytes in a mapping of their own: a new size moves no bytes, and what is given up goes back to the
// system at once. For arrays that grow and shrink in large steps for as long as the process lives.
// What is mapped at once for the first time is on huge pages, as far as they fit.
class MappedBytes {
 public:
  MappedBytes() = default;
  ~MappedBytes();
  MappedBytes(MappedBytes&& other) noexcept { *this = std::move(other); }
  MappedBytes& operator=(MappedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  // Keeps the bytes below both sizes; new ones are anything. Throws Error(kIo) when memory runs
  // out; then nothing has changed.
  void Resize(size_t bytes);

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace terrace
