#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
// From here on an allocation has its own mapping: what is freed goes back to the system, which a
// heap with many threads and sizes does badly. From kHuge on huge pages fit in it.
constexpr size_t kLarge = 128 << 10;
constexpr size_t kHuge = 2 * kHugePage;

size_t RoundUp(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// As mremap. The thread sanitizer does not see memory move: it gets fresh memory.
void* Remap(void* data, size_t before, size_t after) {
#if defined(__SANITIZE_THREAD__)
  void* const fresh =
      mmap(nullptr, after, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return fresh;
  std::memcpy(fresh, data, std::min(before, after));
  munmap(data, before);
  return fresh;
#else
  return mremap(data, before, after, MREMAP_MAYMOVE);
#endif
}

// Maps `bytes` (whole pages) that start on a huge page.
void* MapHugePages(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  if (mapped < bytes) return nullptr;
  void* const raw =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(raw);
  const size_t before =
      RoundUp(reinterpret_cast<uintptr_t>(raw), kHugePage) - reinterpret_cast<uintptr_t>(raw);
  const size_t after = kHugePage - before;
  if (before > 0) munmap(begin, before);
  if (after > 0) munmap(begin + before + bytes, after);
  // Only advice: where huge pages are switched off, small ones do.
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

// `bytes` are whole pages. MAP_FAILED when memory runs out.
void* Map(size_t bytes) {
  if (bytes < kHugePage)
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const data = MapHugePages(bytes);
  return data == nullptr ? MAP_FAILED : data;
}

void* TryAllocate(size_t bytes, bool zeroed) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  if (bytes >= kHuge) return MapHugePages(RoundUp(bytes, kPage));  // fresh pages are zero
  if (bytes >= kLarge) {
    void* const data = mmap(nullptr, RoundUp(bytes, kPage), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : data;
  }
  const size_t padded = RoundUp(bytes + (bytes == 0), kAlignment);
  void* const data = std::aligned_alloc(kAlignment, padded);
  if (data != nullptr && zeroed) std::memset(data, 0, padded);
  return data;
}

[[noreturn]] void FailOutOfMemory(size_t bytes) {
  throw Error(ErrorCode::kIo,
              fmt::format("out of memory: cannot allocate {} bytes ({:.2f} GiB) on the CPU; lower "
                          "the memory budget or the batch size",
                          bytes, static_cast<double>(bytes) / (1 << 30)));
}

}  // namespace

void* AllocateArray(size_t bytes, bool zeroed) {
  void* const data = TryAllocate(bytes, zeroed);
  if (data == nullptr) FailOutOfMemory(bytes);
  return data;
}

void FreeArray(void* data, size_t bytes) {
  if (bytes >= kLarge)
    munmap(data, RoundUp(bytes, kPage));
  else
    std::free(data);
}

MappedBytes::~MappedBytes() {
  if (data_ != nullptr) munmap(data_, RoundUp(bytes_, kPage));
}

void MappedBytes::Resize(size_t bytes) {
  const size_t before = RoundUp(bytes_, kPage), after = RoundUp(bytes, kPage);
  if (after == 0) {
    *this = MappedBytes();
  } else if (after != before) {
    void* const data = data_ == nullptr ? Map(after) : Remap(data_, before, after);
    if (data == MAP_FAILED) FailOutOfMemory(bytes);
    data_ = static_cast<std::byte*>(data);
  }
  bytes_ = bytes;
}

}  // namespace terrace
