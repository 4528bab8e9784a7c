#include <liburing.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <vector>

#include "base/error.h"
#include "base/posix_io.h"

namespace terrace {
namespace {

// Never reused, other than the system's ids.
uint64_t ThisThread() {
  static std::atomic<uint64_t> count{0};
  thread_local const uint64_t id = ++count;
  return id;
}

class Ring {
 public:
  Ring() = default;
  ~Ring() { Close(); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Returns 0 or an errno.
  int Open(size_t entries, unsigned flags) {
    Close();
    const int result = io_uring_queue_init(static_cast<unsigned>(entries), &ring_, flags);
    open_ = result == 0;
    return -result;
  }
  void Close() {
    if (open_) io_uring_queue_exit(&ring_);
    open_ = false;
  }
  bool open() const { return open_; }
  io_uring* get() { return &ring_; }

 private:
  io_uring ring_;
  bool open_ = false;
};

// One ring. A slot is a buffer and the read that is under way or has arrived in it; the slot's
// number is the user data of its requests. There are twice as many slots as reads may be under way:
// when some arrive, the next ones are handed over before anybody looks at them. Virtual disks
// complete many reads at once and would wait meanwhile.
//
// A ring that only one thread may use takes less CPU a read. So the ring belongs to the first
// thread that reads; when another one comes, it is replaced by a ring for all.
class UringReader : public BatchReader {
 public:
  explicit UringReader(const BatchReaderOptions& options);
  // Returns 0 or an errno.
  int Open(bool for_one_thread);

  size_t max_read() const override { return max_read_; }
  const char* name() const override { return "io_uring"; }
  void Read(std::span<const PageRead> reads, const Done& done) override;

 private:
  // Reads handed over and waited for in one call: half of those under way at the most, so that the
  // device has others meanwhile.
  static constexpr size_t kMaxGroup = 32;

  struct Slot {
    size_t index = 0;  // of the read
    uint32_t got = 0;  // bytes of it
  };

  // One call of Read.
  struct Progress {
    std::span<const PageRead> reads;
    size_t next = 0;  // to be handed over
    std::exception_ptr failure;
  };

  void RegisterBuffers();
  // Makes the ring one that this thread may use.
  void Enter();
  void Queue(size_t slot, const PageRead& read);
  void SubmitAndWait(size_t wait_for);
  // Handles one completion; true when the slot's read has ended, false when it goes on.
  bool Complete(size_t slot, int result, const PageRead& read);
  void QueueNext(Progress* progress);
  // Moves slots whose reads have ended to arrived_.
  void Collect(Progress* progress);

  const size_t max_read_;
  const size_t depth_;
  const size_t group_;
  ReadBuffers buffers_;
  Ring ring_;
  bool for_one_thread_ = false;
  uint64_t owner_ = 0;     // of a ring for one thread; 0: it has none yet
  size_t registered_ = 0;  // slots below this have registered buffers
  std::vector<Slot> slots_;
  std::vector<size_t> free_;
  std::vector<size_t> arrived_;
  size_t under_way_ = 0;
};

UringReader::UringReader(const BatchReaderOptions& options)
    : max_read_(options.max_read),
      depth_(static_cast<size_t>(options.depth)),
      group_(std::clamp<size_t>(depth_ / 2, 1, kMaxGroup)),
      buffers_(2 * depth_, options.max_read),
      slots_(2 * depth_) {
  for (size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
}

int UringReader::Open(bool for_one_thread) {
  constexpr unsigned kForOneThread =
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED;
  int error = EINVAL;  // of flags that the kernel does not know
  if (for_one_thread) error = ring_.Open(slots_.size(), kForOneThread);
  for_one_thread_ = error == 0;
  if (error == EINVAL) error = ring_.Open(slots_.size(), IORING_SETUP_COOP_TASKRUN);
  if (error == EINVAL) error = ring_.Open(slots_.size(), 0);
  if (error == 0) RegisterBuffers();
  return error;
}

// The kernel limits memory that is pinned (RLIMIT_MEMLOCK): as many buffers as it lets us.
void UringReader::RegisterBuffers() {
  registered_ = 0;
  for (size_t count = slots_.size(); count > 0 && registered_ == 0; count /= 2) {
    const iovec all{buffers_[0], count * buffers_.stride()};
    if (io_uring_register_buffers(ring_.get(), &all, 1) == 0) registered_ = count;
  }
}

void UringReader::Enter() {
  if (ring_.open() && (!for_one_thread_ || owner_ == ThisThread())) return;
  int error = 0;
  if (ring_.open() && owner_ == 0) {
    // io_uring_enable_rings is not in the library of Debian 12.
    if (syscall(__NR_io_uring_register, static_cast<unsigned>(ring_.get()->ring_fd),
                IORING_REGISTER_ENABLE_RINGS, nullptr, 0) != 0)
      error = errno;
    owner_ = ThisThread();
  } else {
    error = Open(false);
  }
  if (error != 0) FailIo("io_uring", "set up a ring", error);
}

void UringReader::Queue(size_t slot, const PageRead& read) {
  io_uring_sqe* const sqe = io_uring_get_sqe(ring_.get());
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
  const int n = io_uring_submit_and_wait(ring_.get(), static_cast<unsigned>(wait_for));
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

void UringReader::QueueNext(Progress* progress) {
  while (progress->failure == nullptr && progress->next < progress->reads.size() &&
         under_way_ < depth_ && !free_.empty()) {
    const size_t slot = free_.back();
    free_.pop_back();
    slots_[slot] = {progress->next, 0};
    Queue(slot, progress->reads[progress->next++]);
    ++under_way_;
  }
}

void UringReader::Collect(Progress* progress) {
  io_uring_cqe* cqe = nullptr;
  while (io_uring_peek_cqe(ring_.get(), &cqe) == 0) {
    const size_t slot = io_uring_cqe_get_data64(cqe);
    const int result = cqe->res;
    io_uring_cqe_seen(ring_.get(), cqe);
    const PageRead& read = progress->reads[slots_[slot].index];
    bool ended = true;
    try {
      if (progress->failure == nullptr) ended = Complete(slot, result, read);
    } catch (...) {
      progress->failure = std::current_exception();
    }
    if (!ended) {
      Queue(slot, read);
      continue;
    }
    --under_way_;
    arrived_.push_back(slot);
  }
}

void UringReader::Read(std::span<const PageRead> reads, const Done& done) {
  for (const PageRead& read : reads) TERRACE_CHECK(read.size >= 1 && read.size <= max_read_);
  Enter();
  Progress progress{reads, 0, nullptr};
  QueueNext(&progress);
  while (under_way_ > 0) {
    // A device is rung for each call that hands something over: a few reads at a time cost more.
    while (arrived_.size() < group_ && under_way_ > 0) {
      SubmitAndWait(std::min(group_ - arrived_.size(), under_way_));
      Collect(&progress);
    }
    QueueNext(&progress);
    SubmitAndWait(0);
    for (size_t i = 0; i < arrived_.size(); ++i) {
      const size_t slot = arrived_[i];
      if (i + 1 < arrived_.size()) PrefetchPage(buffers_[arrived_[i + 1]]);
      try {
        if (progress.failure == nullptr) done(slots_[slot].index, buffers_[slot]);
      } catch (...) {
        progress.failure = std::current_exception();
      }
      free_.push_back(slot);
    }
    arrived_.clear();
  }
  if (progress.failure != nullptr) std::rethrow_exception(progress.failure);
}

}  // namespace

std::unique_ptr<BatchReader> TryUringReader(const BatchReaderOptions& options, int* error) {
  auto reader = std::make_unique<UringReader>(options);
  *error = reader->Open(true);
  return *error == 0 ? std::move(reader) : nullptr;
}

}  // namespace terrace
