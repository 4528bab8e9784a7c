// Ranges of names in the config: "C1..C26" stands for C1, C2, ... C26.
#pragma once

#include <string>
#include <vector>

namespace terrace {

// The names that `name` stands for: itself, or those of a range. Leading zeros of the first number
// set the width ("f01..f12"). Throws Error(kUsage) that starts with `where` if it looks like a
// range and is none.
std::vector<std::string> ExpandNames(const std::string& name, const std::string& where);

}  // namespace terrace
