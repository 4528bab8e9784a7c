#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/posix_io.h"
#include "base/workers.h"

namespace terrace {
namespace {

// Threads that each do one pread at a time, where the system has nothing better.
class ThreadReader : public BatchReader {
 public:
  explicit ThreadReader(const BatchReaderOptions& options);
  ~ThreadReader() override;

  size_t max_read() const override { return max_read_; }
  const char* name() const override { return "threads"; }
  void Read(std::span<const PageRead> reads, const Done& done) override EXCLUDES(mu_);

 private:
  static constexpr int kMaxThreads = 32;

  struct Finished {
    size_t index;
    size_t slot;
    std::exception_ptr error;
  };

  void ThreadLoop() EXCLUDES(mu_);
  bool CanStart() const REQUIRES(mu_) { return next_ < reads_.size() && !free_.empty(); }
  // Waits for finished reads; false when all reads of the batch are done.
  bool TakeFinished(std::vector<Finished>* out) EXCLUDES(mu_);

  const size_t max_read_;
  const size_t slots_;
  ReadBuffers buffers_;

  Mutex mu_;
  CondVar work_;      // for the threads: there is a read to start, or the end
  CondVar finished_;  // for the caller
  std::span<const PageRead> reads_ GUARDED_BY(mu_);
  size_t next_ GUARDED_BY(mu_) = 0;       // of reads_
  size_t under_way_ GUARDED_BY(mu_) = 0;  // started, not yet in finished_reads_
  std::vector<size_t> free_ GUARDED_BY(mu_);
  std::vector<Finished> finished_reads_ GUARDED_BY(mu_);
  bool stop_ GUARDED_BY(mu_) = false;

  std::vector<std::jthread> threads_;
};

// Twice as many buffers as threads: they read on while the caller looks at what they brought.
ThreadReader::ThreadReader(const BatchReaderOptions& options)
    : max_read_(options.max_read),
      slots_(static_cast<size_t>(std::min(options.depth, 2 * kMaxThreads))),
      buffers_(slots_, max_read_) {
  for (size_t i = 0; i < slots_; ++i) free_.push_back(i);
  const int threads = std::min(options.depth, kMaxThreads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { ThreadLoop(); });
}

ThreadReader::~ThreadReader() {
  MutexLock lock(&mu_);
  stop_ = true;
  work_.NotifyAll();
}

void ThreadReader::ThreadLoop() {
  NameThisThread("page-read");
  for (;;) {
    Finished result{};
    PageRead read;
    {
      MutexLock lock(&mu_);
      while (!stop_ && !CanStart()) work_.Wait(&mu_);
      if (stop_) return;
      result.index = next_++;
      result.slot = free_.back();
      free_.pop_back();
      read = reads_[result.index];
      ++under_way_;
    }
    try {
      ReadFully(*read.file, read.offset, buffers_[result.slot], read.size);
    } catch (...) {
      result.error = std::current_exception();
    }
    MutexLock lock(&mu_);
    --under_way_;
    finished_reads_.push_back(std::move(result));
    if (finished_reads_.size() == 1) finished_.NotifyOne();  // the caller waits only for the first
  }
}

bool ThreadReader::TakeFinished(std::vector<Finished>* out) {
  MutexLock lock(&mu_);
  for (const Finished& f : *out) {
    free_.push_back(f.slot);
    work_.NotifyOne();
  }
  out->clear();
  while (finished_reads_.empty() && (under_way_ > 0 || CanStart())) finished_.Wait(&mu_);
  out->swap(finished_reads_);
  return !out->empty();
}

void ThreadReader::Read(std::span<const PageRead> reads, const Done& done) {
  for (const PageRead& read : reads) TERRACE_CHECK(read.size >= 1 && read.size <= max_read_);
  {
    MutexLock lock(&mu_);
    reads_ = reads;
    next_ = 0;
  }
  work_.NotifyAll();
  std::exception_ptr failure;
  std::vector<Finished> finished;
  while (TakeFinished(&finished)) {
    for (Finished& f : finished) {
      if (failure != nullptr) break;
      try {
        if (f.error != nullptr) std::rethrow_exception(f.error);
        done(f.index, buffers_[f.slot]);
      } catch (...) {
        failure = std::current_exception();
        MutexLock lock(&mu_);
        next_ = reads_.size();  // no more are started; those under way are waited for
      }
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace

std::unique_ptr<BatchReader> NewThreadReader(const BatchReaderOptions& options) {
  return std::make_unique<ThreadReader>(options);
}

}  // namespace terrace
