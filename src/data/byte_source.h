// The bytes of an input file, decompressed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/env.h"

namespace terrace {

// Opens `path` ("-": standard input). Its first bytes, not its name, tell whether it is gzip
// (several members in a row are fine), zstd (several frames are fine) or plain. Read throws
// Error(kData) with the place if compressed data are corrupt or cut short, Error(kIo) if the system
// fails. `consumed` is increased by the bytes taken from the file, or passed over there, and must
// outlive the result. Who waits for standard input finds its end once `cancelled` is set; null:
// waits on.
std::unique_ptr<SequentialFile> OpenBytes(Env& env, const std::string& path, int64_t* consumed,
                                          std::shared_ptr<const std::atomic<bool>> cancelled = {});

// The path as messages name it.
std::string DisplayPath(const std::string& path);

}  // namespace terrace
