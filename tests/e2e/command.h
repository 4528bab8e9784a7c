// Runs the built binary as a user would.
#pragma once

#include <string>

namespace terrace {

struct CommandResult {
  int exit_code = -1;
  std::string output;  // standard output and error together
};

// Runs `line` in a shell, in `directory`, with the built terrace first in PATH.
CommandResult RunCommand(const std::string& line, const std::string& directory);

// A new empty directory that is removed with the object; `examples` in it leads to the project's.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& contents) const;
  std::string Read(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace terrace
