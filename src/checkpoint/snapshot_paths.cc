#include "checkpoint/snapshot_paths.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"
#include "tier/disk_manifest.h"

namespace terrace {
namespace {

constexpr int64_t kMaxManifestBytes = 64 << 20;

}  // namespace

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string BatchName(int64_t batch) { return fmt::format("{:0{}}", batch, kBatchDigits); }

int64_t BatchOfName(std::string_view name) {
  int64_t batch = 0;
  if (name.size() != kBatchDigits || name[0] == '-') return -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), batch);
  return error == std::errc() && end == name.data() + name.size() ? batch : -1;
}

std::string SnapshotManifestPath(const std::string& snapshot) { return snapshot + "/MANIFEST"; }

std::string TableStorePath(const std::string& snapshot, const std::string& table) {
  return snapshot + "/tables/" + EscapeName(table);
}

Hash128 HashStore(Env& env, const std::string& store) {
  const std::string manifest = ReadWholeFile(env, ManifestPath(store));
  return HashBytes128(manifest.data(), manifest.size(), 0);
}

void WriteSnapshotManifest(Env& env, const std::string& snapshot, const SnapshotInfo& info) {
  const std::string path = SnapshotManifestPath(snapshot), text = info.ToText();
  SnapshotInfo::Parse(text, path);  // what cannot be read is not written
  WriteFileAtomically(env, path, text);
  env.SyncDirectory(snapshot);
}

SnapshotInfo ReadSnapshotManifest(Env& env, const std::string& snapshot) {
  const std::string path = SnapshotManifestPath(snapshot);
  if (const int64_t bytes = env.FileSize(path); bytes < 0 || bytes > kMaxManifestBytes)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: {} bytes are too many for a manifest; use another snapshot "
                            "(terrace snapshot list)",
                            path, bytes));
  return SnapshotInfo::Parse(ReadWholeFile(env, path), path);
}

}  // namespace terrace
