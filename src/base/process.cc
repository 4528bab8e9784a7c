#include "base/process.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <thread>

namespace terrace {
namespace {

std::atomic<bool> stop_requested{false};  // set by the handler, read by work loops
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void HandleStopSignal(int signal_number) {
  stop_requested.store(true, std::memory_order_relaxed);
  std::signal(signal_number, SIG_DFL);
}

}  // namespace

int64_t RssBytes() {
  int64_t size = 0;
  int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;  // in pages
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t PeakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

int64_t MachineMemoryBytes() {
  return int64_t{sysconf(_SC_PHYS_PAGES)} * int64_t{sysconf(_SC_PAGESIZE)};
}

const std::atomic<bool>& StopOnSignals() {
  std::signal(SIGINT, HandleStopSignal);
  std::signal(SIGTERM, HandleStopSignal);
  return stop_requested;
}

void WantOpenFiles(int64_t files) {
  rlimit limit{};
  const rlim_t wanted = static_cast<rlim_t>(files);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);  // refused: opening too many files tells
}

bool WaitForInput(int timeout_ms) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&input, 1, timeout_ms);
  return ready > 0 || (ready < 0 && errno != EINTR);
}

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace terrace
