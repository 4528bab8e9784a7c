// The manifest of a store: which files make it up, and how much of each. docs/disk_format.md.
//
// A small text file with a checksum, written whole beside the old one and renamed over it, so that
// a store moves from one state to the next at once. Whatever it says is checked when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "tier/disk_page.h"

namespace terrace {

struct ManifestBase {
  uint64_t file = 0;  // 0: none
  int64_t pages = 0, rows = 0;
};
struct ManifestLog {
  uint64_t file = 0;
  int64_t pages = 0;
};
struct ManifestPartition {
  ManifestBase base;
  std::vector<ManifestLog> logs;  // oldest first
};

struct DiskManifest {
  static constexpr int kVersion = 1;

  PageLayout layout;
  uint64_t commit = 0;     // counts up
  uint64_t next_file = 1;  // above every number in use
  std::vector<ManifestPartition> partitions;

  int64_t rows() const;  // in the bases
  std::string ToText() const;
  // `path` is for messages. Throws Error(kCorruption) with the line and what was expected there.
  static DiskManifest Parse(std::string_view text, const std::string& path);
};

std::string ManifestPath(const std::string& dir);
std::string BasePath(const std::string& dir, uint64_t file);
std::string LogPath(const std::string& dir, uint64_t file);
// The number in the name of a base or a log, 0 if it is neither.
uint64_t FileNumber(std::string_view name);

DiskManifest ReadManifest(Env& env, const std::string& dir);
// Durable when it returns. `renamed` tells whether the new one took the old one's place, also when
// this throws: after that nobody knows which one a crash would leave.
void WriteManifest(Env& env, const std::string& dir, const DiskManifest& manifest, bool* renamed);

}  // namespace terrace
