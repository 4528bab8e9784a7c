// Log lines on standard error. Callers format with fmt. Never called per key.
#pragma once

#include <string_view>

namespace terrace {

void LogInfo(std::string_view message);
void LogWarning(std::string_view message);

}  // namespace terrace
