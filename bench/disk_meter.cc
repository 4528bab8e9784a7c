#include "bench/disk_meter.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.h"

namespace terrace {
namespace {

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

double ProcessCpuSeconds() { return Seconds(CLOCK_PROCESS_CPUTIME_ID); }
double ThreadCpuSeconds() { return Seconds(CLOCK_THREAD_CPUTIME_ID); }

uint64_t WrittenBytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t value = 0;
  while (io >> name >> value)
    if (name == "write_bytes:") return value;
  throw Error(ErrorCode::kIo, "/proc/self/io has no write_bytes; the kernel must count task IO");
}

uint64_t DirectoryBytes(const std::string& dir) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    struct stat s;
    if (stat(entry.path().c_str(), &s) == 0) bytes += static_cast<uint64_t>(s.st_blocks) * 512;
  }
  return bytes;
}

void Meter::EndBatch(uint64_t keys) {
  keys_ += keys;
  batch_seconds_.push_back(under_way_);
  under_way_ = 0;
}

void Meter::AddParallel(const Meter& other) {
  keys_ += other.keys_;
  own_cpu_ += other.own_cpu_;
  ++callers_;
  batch_seconds_.insert(batch_seconds_.end(), other.batch_seconds_.begin(),
                        other.batch_seconds_.end());
}

double Meter::seconds() const {
  const double sum = std::accumulate(batch_seconds_.begin(), batch_seconds_.end(), under_way_);
  return sum / std::max(callers_, 1);
}

std::string Meter::Result() const {
  const double cpu = ProcessCpuSeconds() - start_cpu_ - own_cpu_;
  std::string result = fmt::format("\"seconds\": {:.4f}, \"cpu_seconds\": {:.3f}", seconds(), cpu);
  if (keys_ == 0) return result;
  std::vector<double> sorted = batch_seconds_;
  std::sort(sorted.begin(), sorted.end());
  const double keys = static_cast<double>(keys_);
  return result +
         fmt::format(
             ", \"keys\": {}, \"batches\": {}, \"keys_per_s\": {:.0f}, \"cpu_us\": {:.3f}, "
             "\"p50_ms\": {:.3f}, \"max_ms\": {:.3f}",
             keys_, sorted.size(), keys_per_second(), cpu / keys * 1e6,
             sorted[sorted.size() / 2] * 1e3, sorted.back() * 1e3);
}

}  // namespace terrace
