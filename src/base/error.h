// Errors that end a command or a request.
//
// Throw Error for what the user or the world did (config, data, IO, corruption). Messages say what,
// where, found against expected, and what to do. CHECK is for our own bugs: it stays on in release.
#pragma once

#include <stdexcept>
#include <string>

namespace terrace {

enum class ErrorCode {
  kUsage,        // wrong flag, config key or value: exit code 2
  kData,         // an input file holds something that cannot be read
  kIo,           // the operating system refused a read, write, open ...
  kCorruption,   // our own file fails its checksum or format
  kNumeric,      // NaN or infinity in training
  kInterrupted,  // the user asked to stop
  kInternal,     // a broken invariant of ours
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace terrace

#define TERRACE_CHECK(condition)                              \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::terrace::CheckFailed(#condition, __FILE__, __LINE__); \
  } while (false)
