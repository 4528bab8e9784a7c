// Keys that a user names: as numbers, or as values of a slot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env.h"

namespace terrace {

struct RowKeysOptions {
  std::string path;       // a line each; "-": standard input
  std::string slot;       // lines are values of this slot; empty: lines are keys
  bool integers = false;  // the slot's values are integer ids
};

struct NamedKey {
  std::string name;  // the line
  uint64_t key = 0;
};

// Empty lines are passed over. Throws Error(kData) with the line that is no key, Error(kUsage) if
// there is none.
std::vector<NamedKey> ReadRowKeys(Env& env, const RowKeysOptions& options);

}  // namespace terrace
