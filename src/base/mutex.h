// Mutex, MutexLock and CondVar with clang's thread-safety annotations.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TERRACE_ANNOTATE(x) __attribute__((x))
#else
#define TERRACE_ANNOTATE(x)
#endif
#define CAPABILITY(x) TERRACE_ANNOTATE(capability(x))
#define SCOPED_CAPABILITY TERRACE_ANNOTATE(scoped_lockable)
#define GUARDED_BY(x) TERRACE_ANNOTATE(guarded_by(x))
#define REQUIRES(...) TERRACE_ANNOTATE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) TERRACE_ANNOTATE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) TERRACE_ANNOTATE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) TERRACE_ANNOTATE(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS TERRACE_ANNOTATE(no_thread_safety_analysis)

namespace terrace {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mu_.lock(); }
  void Unlock() RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex* mu) ACQUIRE(mu) : mu_(mu) { mu_->Lock(); }
  ~MutexLock() RELEASE() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

class CondVar {
 public:
  // The mutex is held on return. Spurious wake-ups happen: wait in a loop on the condition.
  void Wait(Mutex* mu) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // The same, for no longer than so many seconds.
  void WaitFor(Mutex* mu, double seconds) REQUIRES(mu) {
    std::unique_lock<std::mutex> lock(mu->mu_, std::adopt_lock);
    cv_.wait_for(lock, std::chrono::duration<double>(seconds));
    lock.release();
  }
  void NotifyOne() { cv_.notify_one(); }
  void NotifyAll() { cv_.notify_all(); }

 private:
  std::condition_variable cv_;
};

}  // namespace terrace
