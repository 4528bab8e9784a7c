// Where a storage device interrupts.
//
// A device with one queue for all CPUs, as virtual machines have, interrupts one of them. Reads
// that are handed over by a thread on that CPU cost about half as much CPU time as those of others:
// what a read leaves behind is in that CPU's caches, and nobody has to be woken elsewhere.
//
// Any thread may call; nothing fails: where the system does not tell, all stays as it is.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace terrace {

struct SystemFiles {
  std::filesystem::path sys = "/sys", proc = "/proc";
};

// The CPU that handles the interrupts of the device with the files in `path`. -1: it has more than
// one queue, which do better by themselves, or nothing is known of it.
int InterruptCpu(const std::string& path);
int InterruptCpu(dev_t device, const SystemFiles& files);

// Keeps the thread that calls Set on a CPU, or lets it run wherever the one that made this might.
// Each thread has its own, or a copy.
class CpuStay {
 public:
  // Does nothing if `cpu` is -1, or none that the thread may run on.
  explicit CpuStay(int cpu);
  void Set(bool stay);

 private:
  cpu_set_t anywhere_, there_;
  bool possible_ = false;
  bool stays_ = false;
};

}  // namespace terrace
