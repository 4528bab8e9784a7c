// Which stage sets a run's pace, and what a user can do about it.
#pragma once

#include "train/trainer.h"

namespace terrace {

// Sets `bottleneck` and `advice` of a report from its stages, its time and its windows.
void NameBottleneck(RunReport* report);

}  // namespace terrace
