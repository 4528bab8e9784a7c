#include "command.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace terrace {

CommandResult RunCommand(const std::string& line, const std::string& directory) {
  const std::string bin = std::filesystem::path(TERRACE_BINARY).parent_path();
  const std::string full = "cd '" + directory + "' && export PATH='" + bin + "':\"$PATH\" && { " +
                           line + "\n} 2>&1 </dev/null";
  CommandResult result;
  FILE* pipe = popen(full.c_str(), "r");
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

ScratchDir::ScratchDir() {
  std::string pattern = ::testing::TempDir() + "/terrace_XXXXXX";
  path_ = mkdtemp(pattern.data());
  std::filesystem::create_directory_symlink(std::string(TERRACE_SOURCE_DIR) + "/examples",
                                            path_ + "/examples");
}

ScratchDir::~ScratchDir() { std::filesystem::remove_all(path_); }

void ScratchDir::Write(const std::string& name, const std::string& contents) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << contents;
}

std::string ScratchDir::Read(const std::string& name) const {
  std::ostringstream out;
  out << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
  return out.str();
}

namespace {

TEST(Command, RunsInItsDirectoryWithTheBuiltBinary) {
  ScratchDir dir;
  dir.Write("here", "x");
  const CommandResult r = RunCommand("ls && terrace --version && exit 3", dir.path());
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.output, "examples\nhere\nterrace 0.1.0\n");
}

}  // namespace
}  // namespace terrace
