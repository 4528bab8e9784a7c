// A fixed team of threads that runs numbered tasks.
//
// Run(n, f) calls f(task, worker) once for each task in [0, n) and returns when all are done. The
// caller is worker 0 and works too; tasks are handed out in order, so which worker gets a task is
// not fixed and results must not depend on it. The first exception of a task is rethrown by Run
// after the others have ended. One Run at a time, from one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace terrace {

class Workers {
 public:
  // `threads` >= 1 counts the caller. Threads are named "<name>-<i>" and call `first`,
  // which the caller does not.
  Workers(const std::string& name, int threads, const std::function<void()>& first = {});
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }
  void Run(int64_t tasks, const std::function<void(int64_t task, int worker)>& f) EXCLUDES(mu_);

 private:
  void HelperLoop(int worker) EXCLUDES(mu_);
  void TakeTasks(int worker) EXCLUDES(mu_);

  Mutex mu_;
  CondVar start_;
  CondVar done_;
  uint64_t round_ GUARDED_BY(mu_) = 0;
  bool open_ GUARDED_BY(mu_) = false;  // helpers may still join the round
  int running_ GUARDED_BY(mu_) = 0;    // helpers that joined it and are not done
  bool stop_ GUARDED_BY(mu_) = false;
  std::exception_ptr error_ GUARDED_BY(mu_);

  // Written by Run while no helper runs (ordered by mu_ and round_), then read by all.
  const std::function<void(int64_t, int)>* task_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};  // a counter

  std::vector<std::jthread> helpers_;
};

// Names the calling thread in debuggers and /proc (15 characters are kept).
void NameThisThread(const std::string& name);

// For a thread that mostly waits for a device: it gets the CPU soon after it wakes, also beside
// threads that compute, so that the device does not wait for it. For Linux 6.12 and later; without
// effect on others.
void TakeShortTurns();

}  // namespace terrace
