#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace terrace {

void NameThisThread(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

void TakeShortTurns() {
  // struct sched_attr, which glibc 2.36 does not have.
  struct {
    uint32_t size = 48, policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = getpriority(PRIO_PROCESS, 0);  // stays
    uint32_t priority = 0;
    uint64_t runtime = 100'000, deadline = 0, period = 0;  // ns
  } attributes;
  static_assert(sizeof(attributes) == 48);
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

Workers::Workers(const std::string& name, int threads, const std::function<void()>& first) {
  for (int i = 1; i < threads; ++i) {
    helpers_.emplace_back([this, name, i, first] {
      NameThisThread(name + "-" + std::to_string(i));
      if (first) first();
      HelperLoop(i);
    });
  }
}

Workers::~Workers() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    start_.NotifyAll();
  }
  helpers_.clear();  // joins
}

void Workers::Run(int64_t tasks, const std::function<void(int64_t, int)>& f) {
  {
    MutexLock lock(&mu_);
    task_ = &f;
    tasks_ = tasks;
    next_.store(0, std::memory_order_relaxed);
    error_ = nullptr;
    if (tasks > 1) {
      open_ = true;
      ++round_;
      start_.NotifyAll();
    }
  }
  TakeTasks(0);
  MutexLock lock(&mu_);
  open_ = false;  // a helper that wakes up now is not waited for: nothing is left to do
  while (running_ > 0) done_.Wait(&mu_);
  if (error_) std::rethrow_exception(error_);
}

void Workers::HelperLoop(int worker) {
  uint64_t seen = 0;
  for (;;) {
    {
      MutexLock lock(&mu_);
      while ((!open_ || round_ == seen) && !stop_) start_.Wait(&mu_);
      if (stop_) return;
      seen = round_;
      ++running_;
    }
    TakeTasks(worker);
    MutexLock lock(&mu_);
    if (--running_ == 0 && !open_) done_.NotifyOne();
  }
}

void Workers::TakeTasks(int worker) {
  for (;;) {
    const int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks_) return;
    try {
      (*task_)(task, worker);
    } catch (...) {
      MutexLock lock(&mu_);
      if (!error_) error_ = std::current_exception();
    }
  }
}

}  // namespace terrace
