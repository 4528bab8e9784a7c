// This process: its memory, and the user's wish to stop.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace {

int64_t RssBytes();
int64_t PeakRssBytes();
int64_t MachineMemoryBytes();

// From now on the first SIGINT or SIGTERM sets the flag and the second one ends the process as
// usual. The flag is for work loops to look at between batches.
const std::atomic<bool>& StopOnSignals();

// Waits until standard input has something to read, or has ended. False after `timeout_ms`.
bool WaitForInput(int timeout_ms);

// Lets this process hold at least `files` open, as far as the system's hard limit goes.
void WantOpenFiles(int64_t files);

// Cores this process may use.
int AvailableCores();

}  // namespace terrace
