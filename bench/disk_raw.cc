#include "bench/disk_raw.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "bench/disk_meter.h"

namespace terrace {
namespace {

constexpr size_t kPage = 4096;
constexpr unsigned kDepth = 256;
constexpr unsigned kSubmit = 32;
struct Extent {
  uint64_t offset;
  uint32_t size;
};

[[noreturn]] void Fail(const std::string& what, int error) {
  throw Error(ErrorCode::kIo, fmt::format("raw reads: {}: {}", what, std::strerror(error)));
}

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }
};
using Aligned = std::unique_ptr<std::byte[], AlignedFree>;

Aligned AllocateAligned(size_t bytes) {
  return Aligned(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
}

class Ring {
 public:
  Ring(int fd, size_t read_bytes)
      : read_bytes_(read_bytes), buffers_(AllocateAligned(kDepth * read_bytes)) {
    std::memset(buffers_.get(), 0, kDepth * read_bytes);
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    int error = io_uring_queue_init_params(kDepth, &ring_, &params);
    if (error != 0) error = io_uring_queue_init(kDepth, &ring_, 0);  // before Linux 6.1
    if (error != 0) Fail("io_uring_queue_init", -error);
    iovec all{buffers_.get(), kDepth * read_bytes};
    if (const int e = io_uring_register_buffers(&ring_, &all, 1)) Fail("register buffers", -e);
    if (const int e = io_uring_register_files(&ring_, &fd, 1)) Fail("register file", -e);
    for (unsigned i = 0; i < kDepth; ++i) free_.push_back(i);
  }
  ~Ring() { io_uring_queue_exit(&ring_); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void Read(const std::vector<Extent>& extents) {
    size_t next = 0;
    while (next < extents.size() || free_.size() < kDepth) {
      unsigned queued = 0;
      for (; next < extents.size() && !free_.empty() && queued < kSubmit; ++next, ++queued)
        Queue(extents[next]);
      const bool full = free_.empty() || next == extents.size();
      const int error = io_uring_submit_and_wait(&ring_, full ? 1 : 0);
      if (error < 0 && error != -EINTR) Fail("io_uring_submit_and_wait", -error);
      Reap();
    }
  }

 private:
  void Queue(const Extent& extent) {
    const unsigned slot = free_.back();
    free_.pop_back();
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    io_uring_prep_read_fixed(sqe, 0, buffers_.get() + slot * read_bytes_, extent.size,
                             extent.offset, 0);
    sqe->flags |= IOSQE_FIXED_FILE;
    sizes_[slot] = extent.size;
    io_uring_sqe_set_data64(sqe, slot);
  }

  void Reap() {
    io_uring_cqe* cqes[kDepth];
    const unsigned n = io_uring_peek_batch_cqe(&ring_, cqes, kDepth);
    for (unsigned i = 0; i < n; ++i) {
      const auto slot = static_cast<unsigned>(cqes[i]->user_data);
      if (cqes[i]->res < 0) Fail("read", -cqes[i]->res);
      if (static_cast<uint32_t>(cqes[i]->res) != sizes_[slot]) Fail("short read", EIO);
      free_.push_back(slot);
    }
    io_uring_cq_advance(&ring_, n);
  }

  const size_t read_bytes_;
  Aligned buffers_;
  io_uring ring_{};
  std::vector<unsigned> free_;
  uint32_t sizes_[kDepth] = {};
};

// The pages of `batch` random rows, near ones as one read.
std::vector<Extent> MakeExtents(uint64_t pages, size_t batch, uint64_t seed, size_t read_bytes,
                                uint64_t near_pages) {
  std::vector<uint64_t> wanted(batch);
  for (size_t i = 0; i < batch; ++i) wanted[i] = BelowN(RandomBits(seed, i), pages);
  std::sort(wanted.begin(), wanted.end());
  std::vector<Extent> extents;
  for (uint64_t page : wanted) {
    if (!extents.empty()) {
      Extent& last = extents.back();
      const uint64_t first = last.offset / kPage;
      const uint64_t end = first + last.size / kPage;
      if (page < end + near_pages && (page + 1 - first) * kPage <= read_bytes) {
        last.size = static_cast<uint32_t>(std::max(end, page + 1) - first) * kPage;
        continue;
      }
    }
    extents.push_back({page * kPage, kPage});
  }
  return extents;
}

}  // namespace

RawReader::RawReader(const std::string& dir, uint64_t rows, size_t row_bytes)
    : path_(dir + "/raw"), pages_((rows * (row_bytes + 8) + kPage - 1) / kPage) {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0644);
  if (fd_ < 0) Fail("open " + path_, errno);
  constexpr size_t kChunk = 4 << 20;
  Aligned chunk = AllocateAligned(kChunk);
  auto* words = reinterpret_cast<uint64_t*>(chunk.get());
  for (size_t i = 0; i < kChunk / 8; ++i) words[i] = RandomBits(1, i);
  for (uint64_t offset = 0; offset < pages_ * kPage; offset += kChunk)
    if (pwrite(fd_, chunk.get(), kChunk, static_cast<off_t>(offset)) != kChunk)
      Fail("write " + path_, errno);
  if (fdatasync(fd_) != 0) Fail("fdatasync " + path_, errno);
}

RawReader::~RawReader() {
  close(fd_);
  unlink(path_.c_str());
}

std::string RawReader::Measure(size_t batch, double seconds) {
  double best = 0;
  std::string result;
  // What is read in vain between two pages may cost less than a read: devices differ.
  struct Way {
    size_t read_bytes;
    uint64_t near_pages;
  };
  constexpr Way kWays[] = {{32 << 10, 2}, {32 << 10, 4}, {128 << 10, 4}};
  for (const auto& [read_bytes, near_pages] : kWays) {
    Ring ring(fd_, read_bytes);
    Meter meter;
    const double start = NowSeconds();
    double own_cpu = ThreadCpuSeconds();
    for (uint64_t seed = 0; NowSeconds() - start < seconds / std::size(kWays); ++seed) {
      const std::vector<Extent> extents = MakeExtents(pages_, batch, seed, read_bytes, near_pages);
      meter.AddOwnCpu(ThreadCpuSeconds() - own_cpu);
      meter.Time(batch, [&] { ring.Read(extents); });
      own_cpu = ThreadCpuSeconds();
    }
    meter.AddOwnCpu(ThreadCpuSeconds() - own_cpu);
    if (meter.keys_per_second() > best) {
      best = meter.keys_per_second();
      result = fmt::format("\"read_bytes\": {}, {}", read_bytes, meter.Result());
    }
  }
  return result;
}

}  // namespace terrace
