#include "base/interrupt_cpu.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace terrace {
namespace {

namespace fs = std::filesystem;

// How often each CPU was interrupted by `irq`, in all; -1: there is no such line.
int64_t InterruptCount(const fs::path& proc, const std::string& irq) {
  std::ifstream in(proc / "interrupts");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name != irq + ":") continue;
    int64_t sum = 0;
    for (int64_t count = 0; words >> count;) sum += count;
    return sum;
  }
  return -1;
}

// The interrupt of the device that came most often: others are for changes of its settings.
std::string BusiestInterrupt(const fs::path& proc, const fs::path& irqs) {
  std::string busiest;
  int64_t most = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(irqs)) {
    const std::string irq = entry.path().filename();
    const int64_t count = InterruptCount(proc, irq);
    if (count > most) {
      most = count;
      busiest = irq;
    }
  }
  return busiest;
}

int Find(dev_t device, const SystemFiles& files) {
  fs::path dir = fs::canonical(files.sys / "dev" / "block" /
                               fmt::format("{}:{}", major(device), minor(device)));
  if (fs::exists(dir / "partition")) dir = dir.parent_path();
  const fs::directory_iterator queues(dir / "mq");
  if (std::distance(begin(queues), end(queues)) != 1) return -1;
  while (!fs::exists(dir / "msi_irqs")) {
    if (dir == dir.parent_path()) return -1;
    dir = dir.parent_path();
  }
  const std::string irq = BusiestInterrupt(files.proc, dir / "msi_irqs");
  std::ifstream in(files.proc / "irq" / irq / "effective_affinity_list");
  std::string cpus;
  std::getline(in, cpus);
  int cpu = -1;
  const auto [end, error] = std::from_chars(cpus.data(), cpus.data() + cpus.size(), cpu);
  const bool one = error == std::errc() && end == cpus.data() + cpus.size();
  return one ? cpu : -1;
}

}  // namespace

int InterruptCpu(dev_t device, const SystemFiles& files) {
  try {
    return Find(device, files);
  } catch (const fs::filesystem_error&) {
    return -1;
  }
}

int InterruptCpu(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return -1;
  return InterruptCpu(status.st_dev, {});
}

CpuStay::CpuStay(int cpu) {
  CPU_ZERO(&anywhere_);
  CPU_ZERO(&there_);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  CPU_SET(cpu, &there_);
  possible_ =
      sched_getaffinity(0, sizeof(anywhere_), &anywhere_) == 0 && CPU_ISSET(cpu, &anywhere_);
}

void CpuStay::Set(bool stay) {
  if (!possible_ || stay == stays_) return;
  (void)sched_setaffinity(0, sizeof(cpu_set_t), stay ? &there_ : &anywhere_);
  stays_ = stay;
}

}  // namespace terrace
