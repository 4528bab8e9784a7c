#include "train/bottleneck.h"

#include <algorithm>

#include "base/error.h"

namespace terrace {
namespace {

// Where training waits for a smaller share of the time, faster stages before it would gain little.
constexpr double kLittleWait = 0.2;

std::string AdviceFor(const std::string& stage, const WindowStats& windows) {
  if (stage == "read")
    return "raise data.threads, or split the input into plain (uncompressed) files";
  if (stage == "dedup")
    return "raise train.threads: up to 6, every second one brings a dedup thread";
  if (stage == "plan" || stage == "link")
    return "raise train.batch: planning cost falls with the share of repeated keys";
  if (stage == "pull") {
    // Windows that were cut would not be longer.
    if (windows.cut > windows.windows / 2)
      return "raise tiers.memory.budget: fewer rows come from disk";
    return "raise tiers.memory.budget (fewer rows come from disk) or train.window "
           "(more rows a read)";
  }
  if (stage == "push")
    return "raise tiers.memory.budget (fewer rows leave) or tiers.disk.memory (fewer merges)";
  return "";
}

}  // namespace

void NameBottleneck(RunReport* report) {
  const auto train = std::find_if(report->stages.begin(), report->stages.end(),
                                  [](const StageReport& stage) { return stage.name == "train"; });
  TERRACE_CHECK(train != report->stages.end());
  auto slowest = train;
  if (train->time.wait_input >= kLittleWait * report->seconds)
    slowest = std::max_element(
        report->stages.begin(), report->stages.end(),
        [](const StageReport& a, const StageReport& b) { return a.time.busy < b.time.busy; });
  report->bottleneck = slowest->name;
  report->advice = AdviceFor(slowest->name, report->tiers.windows);
}

}  // namespace terrace
