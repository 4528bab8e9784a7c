// The stores that a command is asked about.
#pragma once

#include <string>
#include <vector>

#include "base/env.h"

namespace terrace {

struct StorePath {
  std::string name;  // of the table: the last part of the path
  std::string path;
};

// `dir` if it is a store, else the stores right below it, by name. Throws Error(kUsage) if there is
// none.
std::vector<StorePath> FindStores(Env& env, const std::string& dir);

}  // namespace terrace
