// For tests of memory budgets.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"

namespace terrace {

// The budget in "... raise it to 1.5 GiB or ..."; 0 if the error names none.
inline int64_t BudgetIn(const std::string& error) {
  const size_t raise = error.find("raise ");
  const size_t to = error.find(" to ", raise);
  const size_t end = error.find(" or ", to);
  if (end == std::string::npos) return 0;
  int64_t bytes = 0;
  return ParseBytes(error.substr(to + 4, end - to - 4), &bytes) ? bytes : 0;
}

}  // namespace terrace
