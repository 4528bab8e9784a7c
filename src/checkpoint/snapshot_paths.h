// Names in a snapshots directory, for files of src/checkpoint only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/env.h"
#include "checkpoint/snapshot_manifest.h"

namespace terrace {

inline constexpr std::string_view kWriting = ".writing-";
inline constexpr std::string_view kRemoving = ".removing-";
inline constexpr size_t kBatchDigits = 12;

// A path without slashes at its end.
std::string WithoutSlashes(std::string path);
std::string BatchName(int64_t batch);
// -1 if it is not the name of a snapshot.
int64_t BatchOfName(std::string_view name);
std::string SnapshotManifestPath(const std::string& snapshot);
std::string TableStorePath(const std::string& snapshot, const std::string& table);
// Of the MANIFEST of a table's store.
Hash128 HashStore(Env& env, const std::string& store);
// Durable when it returns.
void WriteSnapshotManifest(Env& env, const std::string& snapshot, const SnapshotInfo& info);
// Throws Error(kCorruption) if it is not a manifest's, Error(kUsage) if there is none.
SnapshotInfo ReadSnapshotManifest(Env& env, const std::string& snapshot);

}  // namespace terrace
