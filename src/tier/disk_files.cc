#include "tier/disk_files.h"

#include "base/error.h"

namespace terrace {
namespace {

// A file that cannot be removed is left over: opening the store again removes it.
void TryRemove(Env& env, const std::string& path) {
  try {
    env.Remove(path);
  } catch (const Error&) {
  }
}

std::string ParentOf(const std::string& dir) {
  const size_t end = dir.find_last_not_of('/');
  const size_t slash = dir.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : dir.substr(0, slash);
}

}  // namespace

std::set<std::string> FilesOf(const std::string& dir, const DiskManifest& manifest) {
  std::set<std::string> paths;
  for (const ManifestPartition& partition : manifest.partitions) {
    if (partition.base.file != 0) paths.insert(BasePath(dir, partition.base.file));
    for (const ManifestLog& log : partition.logs) paths.insert(LogPath(dir, log.file));
  }
  return paths;
}

void RemoveLeftovers(Env& env, const std::string& dir, const std::set<std::string>& used) {
  for (const std::string& name : env.List(dir)) {
    const std::string path = dir + "/" + name;
    const bool ours = FileNumber(name) != 0 || name.starts_with("MANIFEST.tmp");
    if (ours && !used.contains(path)) env.Remove(path);
  }
}

void MakeDurableDirectory(Env& env, const std::string& dir) {
  std::vector<std::string> parents = {ParentOf(dir)};
  while (!env.Exists(parents.back())) parents.push_back(ParentOf(parents.back()));
  env.MakeDirectory(dir);
  for (const std::string& parent : parents) env.SyncDirectory(parent);
}

void LinkFiles(Env& env, const std::string& from, const DiskManifest& manifest,
               const std::string& to) {
  for (const ManifestPartition& partition : manifest.partitions) {
    if (partition.base.file != 0)
      env.Link(BasePath(from, partition.base.file), BasePath(to, partition.base.file));
    for (const ManifestLog& log : partition.logs)
      env.Link(LogPath(from, log.file), LogPath(to, log.file));
  }
}

void LinkStore(Env& env, const std::string& from, const DiskManifest& manifest,
               const std::string& to) {
  LinkFiles(env, from, manifest, to);
  env.SyncDirectory(to);
  bool renamed = false;
  WriteManifest(env, to, manifest, &renamed);
}

void RemoveStore(Env& env, const std::string& dir, const DiskManifest& manifest) {
  TryRemove(env, ManifestPath(dir));
  for (const std::string& path : FilesOf(dir, manifest)) TryRemove(env, path);
}

void DiskFiles::Retire(const std::vector<std::string>& paths) {
  MutexLock lock(&mu_);
  retired_.insert(retired_.end(), paths.begin(), paths.end());
  RemoveUnused();
}

void DiskFiles::Hold() {
  MutexLock lock(&mu_);
  ++holds_;
}

void DiskFiles::Release() {
  MutexLock lock(&mu_);
  --holds_;
  RemoveUnused();
}

void DiskFiles::SetCommitted(std::set<std::string> paths) {
  MutexLock lock(&mu_);
  committed_ = std::move(paths);
  RemoveUnused();
}

void DiskFiles::RemoveUnused() {
  if (holds_ > 0) return;
  std::vector<std::string> pinned;
  for (std::string& path : retired_) {
    if (committed_.contains(path))
      pinned.push_back(std::move(path));
    else
      TryRemove(env_, path);
  }
  retired_ = std::move(pinned);
}

int64_t DiskFiles::pinned_bytes() const {
  MutexLock lock(&mu_);
  int64_t bytes = 0;
  for (const std::string& path : retired_) bytes += env_.FileSize(path);
  return bytes;
}

}  // namespace terrace
