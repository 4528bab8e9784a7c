// What a phase of disk_bench costs: time of each batch, CPU of the process, bytes written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace terrace {

double ProcessCpuSeconds();  // of all threads
double ThreadCpuSeconds();   // of this one
// That this process has caused to be written to devices so far.
uint64_t WrittenBytes();
// Allocated to files under `dir`.
uint64_t DirectoryBytes(const std::string& dir);

// From its construction to Result. For one thread.
class Meter {
 public:
  // Times one call. A call of 0 keys and the next one together are a batch.
  template <typename F>
  void Time(uint64_t keys, F f) {
    const double start = NowSeconds();
    f();
    under_way_ += NowSeconds() - start;
    if (keys > 0) EndBatch(keys);
  }
  // CPU time that is the bench's own, not the engine's.
  void AddOwnCpu(double seconds) { own_cpu_ += seconds; }
  // Work that another thread did at the same time.
  void AddParallel(const Meter& other);

  uint64_t keys() const { return keys_; }
  uint64_t batches() const { return batch_seconds_.size(); }
  double keys_per_second() const { return static_cast<double>(keys_) / seconds(); }
  // `"name": value` pairs of JSON.
  std::string Result() const;

 private:
  void EndBatch(uint64_t keys);
  double seconds() const;  // of calls

  const double start_cpu_ = ProcessCpuSeconds();
  uint64_t keys_ = 0;
  double under_way_ = 0;  // seconds of calls that are no whole batch yet
  double own_cpu_ = 0;
  int callers_ = 0;
  std::vector<double> batch_seconds_;
};

}  // namespace terrace
