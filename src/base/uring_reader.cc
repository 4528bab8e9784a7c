#include <liburing.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <vector>

#include "base/error.h"
#include "base/posix_io.h"

namespace terrace {
namespace {

// One ring. A slot is a buffer and the read that is under way in it; the slot's number is the
// user data of its requests.
class UringReader : public BatchReader {
 public:
  UringReader(const io_uring& ring, const BatchReaderOptions& options);
  ~UringReader() override { io_uring_queue_exit(&ring_); }

  size_t max_read() const override { return max_read_; }
  size_t buffer_bytes() const override { return buffers_.bytes(); }
  const char* name() const override { return "io_uring"; }
  void Read(std::span<const PageRead> reads, const Done& done) override;

 private:
  // Reads handed over and waited for in one call: few enough that the queue stays nearly full.
  static constexpr size_t kMaxGroup = 32;

  struct Slot {
    size_t index = 0;  // of the read
    uint32_t got = 0;  // bytes of it
  };

  void RegisterBuffers();
  void Queue(size_t slot, const PageRead& read);
  void SubmitAndWait(size_t wait_for);
  // Handles one completion; true when the slot's read has ended, false when it goes on.
  bool Complete(size_t slot, int result, const PageRead& read);

  const size_t max_read_;
  const size_t group_;
  ReadBuffers buffers_;
  io_uring ring_;
  size_t registered_ = 0;  // slots below this have registered buffers
  std::vector<Slot> slots_;
  std::vector<size_t> free_;
};

UringReader::UringReader(const io_uring& ring, const BatchReaderOptions& options)
    : max_read_(options.max_read),
      group_(std::clamp<size_t>(static_cast<size_t>(options.depth) / 8, 1, kMaxGroup)),
      buffers_(static_cast<size_t>(options.depth), options.max_read),
      ring_(ring),
      slots_(static_cast<size_t>(options.depth)) {
  for (size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
  RegisterBuffers();
}

// The kernel limits memory that is pinned (RLIMIT_MEMLOCK): as many buffers as it lets us.
void UringReader::RegisterBuffers() {
  for (size_t count = slots_.size(); count > 0 && registered_ == 0; count /= 2) {
    const iovec all{buffers_[0], count * buffers_.stride()};
    if (io_uring_register_buffers(&ring_, &all, 1) == 0) registered_ = count;
  }
}

void UringReader::Queue(size_t slot, const PageRead& read) {
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
  TERRACE_CHECK(sqe != nullptr);  // the ring has as many entries as we have slots
  const uint32_t got = slots_[slot].got;
  const int fd = read.file->descriptor();
  if (slot < registered_)
    io_uring_prep_read_fixed(sqe, fd, buffers_[slot] + got, read.size - got, read.offset + got, 0);
  else
    io_uring_prep_read(sqe, fd, buffers_[slot] + got, read.size - got, read.offset + got);
  io_uring_sqe_set_data64(sqe, slot);
}

void UringReader::SubmitAndWait(size_t wait_for) {
  const int n = io_uring_submit_and_wait(&ring_, static_cast<unsigned>(wait_for));
  if (n >= 0 || n == -EINTR) return;
  // The kernel is short of memory for requests; what it did not take stays in the queue.
  TERRACE_CHECK(n == -EAGAIN || n == -EBUSY);
  sched_yield();
}

bool UringReader::Complete(size_t slot, int result, const PageRead& read) {
  PageFile& file = *read.file;
  if (result == -EINTR || result == -EAGAIN) return false;
  if (result < 0) FailRead(file.path(), read.offset, read.size, -result);
  uint32_t& got = slots_[slot].got;
  got += static_cast<uint32_t>(result);
  if (got == read.size) return true;
  // A direct read may not go on where a file that ends within a page does: ask for the end here.
  if (result == 0 || read.offset + got >= file.Size())
    FailPastEnd(file.path(), read.offset, read.size, file.Size());
  return false;
}

void UringReader::Read(std::span<const PageRead> reads, const Done& done) {
  for (const PageRead& read : reads) TERRACE_CHECK(read.size >= 1 && read.size <= max_read_);
  std::exception_ptr failure;
  size_t next = 0;
  size_t under_way = 0;
  const auto more = [&] { return failure == nullptr && next < reads.size() && !free_.empty(); };
  for (;;) {
    for (size_t i = 0; i < group_ && more(); ++i) {
      const size_t slot = free_.back();
      free_.pop_back();
      slots_[slot] = {next, 0};
      Queue(slot, reads[next++]);
      ++under_way;
    }
    if (under_way == 0) break;
    SubmitAndWait(more() ? 0 : std::min(group_, under_way));
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      const size_t slot = io_uring_cqe_get_data64(cqe);
      const int result = cqe->res;
      io_uring_cqe_seen(&ring_, cqe);
      const size_t index = slots_[slot].index;
      try {
        if (failure == nullptr && !Complete(slot, result, reads[index])) {
          Queue(slot, reads[index]);
          continue;
        }
        if (failure == nullptr) done(index, buffers_[slot]);
      } catch (...) {
        failure = std::current_exception();
      }
      free_.push_back(slot);
      --under_way;
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace

std::unique_ptr<BatchReader> TryUringReader(const BatchReaderOptions& options, int* error) {
  io_uring ring;
  *error = -io_uring_queue_init(static_cast<unsigned>(options.depth), &ring, 0);
  if (*error != 0) return nullptr;
  return std::make_unique<UringReader>(ring, options);
}

}  // namespace terrace
