#include "tier/row_arena.h"

#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace terrace {
namespace {

constexpr int64_t kHugePage = 2 << 20;
// Below kLarge the arena grows by small steps, so that it never has much more than it needs; above,
// by huge pages.
constexpr int64_t kSmallStep = 64 << 10;
constexpr int64_t kLarge = 4 << 20;

int64_t RoundUp(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// Twice, because the system may have swap space.
int64_t MostBytes() {
  return 2 * int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
}

}  // namespace

RowArena::RowArena(std::string what, int64_t max_bytes)
    : what_(std::move(what)), capacity_(RoundUp(std::min(max_bytes, MostBytes()), kHugePage)) {
  // One huge page more, so that the range can start at a multiple of it.
  const int64_t mapped = capacity_ + kHugePage;
  void* const start =
      mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: cannot reserve {} of addresses: {}. Raise the limit of virtual "
                            "memory (ulimit -v)",
                            what_, ShortBytes(mapped), std::strerror(errno)));
  const int64_t skipped =
      RoundUp(reinterpret_cast<intptr_t>(start), kHugePage) - reinterpret_cast<intptr_t>(start);
  data_ = static_cast<std::byte*>(start) + skipped;
  if (skipped > 0) munmap(start, skipped);
  munmap(data_ + capacity_, kHugePage - skipped);
}

RowArena::~RowArena() { munmap(data_, capacity_); }

void RowArena::GrowSlow(int64_t bytes) {
  if (bytes > capacity_)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: {} are needed, at most {} can be held on this machine. Use a "
                            "smaller dim, fewer keys, or a machine with more memory",
                            what_, ShortBytes(bytes), ShortBytes(capacity_)));
  const int64_t size = RoundUp(bytes, bytes > kLarge ? kHugePage : kSmallStep);
  if (mprotect(data_ + size_, size - size_, PROT_READ | PROT_WRITE) != 0)
    throw Error(ErrorCode::kIo,
                fmt::format("{}: no memory to grow from {} to {}: {}", what_, ShortBytes(size_),
                            ShortBytes(size), std::strerror(errno)));
  // Advice only: where there are no huge pages, small ones do.
  if (size >= kHugePage) madvise(data_, size, MADV_HUGEPAGE);
#if defined(MADV_COLLAPSE)
  // What grew by small steps has small pages until a huge page is full.
  const int64_t full = std::min(size, kLarge) / kHugePage * kHugePage;
  const int64_t old_full = size_ / kHugePage * kHugePage;
  if (full > old_full) madvise(data_ + old_full, full - old_full, MADV_COLLAPSE);
#endif
  size_ = size;
}

}  // namespace terrace
