#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace terrace {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "terrace", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%H:%M:%S %^%l%$ %v");
    return made;
  }();
  return *logger;
}

}  // namespace

void LogInfo(std::string_view message) { Logger().info("{}", message); }
void LogWarning(std::string_view message) { Logger().warn("{}", message); }

}  // namespace terrace
