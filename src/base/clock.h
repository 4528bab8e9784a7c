// Monotonic time, and the busy/wait account of a pipeline stage.
#pragma once

#include <chrono>

namespace terrace {

inline double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds a stage spent working, waiting for input and waiting for room downstream.
// Owned and written by the stage's thread; read after it has ended.
struct StageTime {
  double busy = 0;
  double wait_input = 0;
  double wait_output = 0;
};

// Adds the life of the object to *total.
class ScopedSeconds {
 public:
  explicit ScopedSeconds(double* total) : total_(total), start_(NowSeconds()) {}
  ~ScopedSeconds() { *total_ += NowSeconds() - start_; }
  ScopedSeconds(const ScopedSeconds&) = delete;
  ScopedSeconds& operator=(const ScopedSeconds&) = delete;

 private:
  double* const total_;
  const double start_;
};

}  // namespace terrace
