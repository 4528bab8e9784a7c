// Every `terrace` command in a ```sh block of the documentation works as written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "command.h"

namespace terrace {
namespace {

std::vector<std::string> Commands(const std::filesystem::path& page) {
  std::vector<std::string> commands;
  std::ifstream file(page);
  bool in_block = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      in_block = line == "```sh";
    } else if (in_block && !line.empty()) {
      commands.push_back(line);
    }
  }
  return commands;
}

TEST(Docs, CommandsWorkAsWritten) {
  const std::filesystem::path root = TERRACE_SOURCE_DIR;
  std::vector<std::filesystem::path> pages = {root / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  int ran = 0;
  for (const auto& page : pages) {
    ScratchDir dir;
    std::filesystem::create_directory_symlink(root / "tests", dir.path() + "/tests");
    for (const std::string& command : Commands(page)) {
      const CommandResult r = RunCommand(command, dir.path());
      EXPECT_EQ(r.exit_code, 0) << page << ": " << command << "\n" << r.output;
      ++ran;
    }
  }
  EXPECT_GE(ran, 4);
}

}  // namespace
}  // namespace terrace
