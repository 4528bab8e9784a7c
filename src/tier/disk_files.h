// Which files of a store may be removed: those that neither the store nor its last commit uses.
//
// Any thread may call.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/mutex.h"
#include "tier/disk_manifest.h"

namespace terrace {

// Paths of all files that the manifest of `dir` names.
std::set<std::string> FilesOf(const std::string& dir, const DiskManifest& manifest);
// Removes files of `dir` that look like a store's and are not in `used`: what a crash left. Throws
// where one cannot be removed: its number will be used again, and a snapshot may share its bytes.
void RemoveLeftovers(Env& env, const std::string& dir, const std::set<std::string>& used);

// With its parents; they stay after a power cut.
void MakeDurableDirectory(Env& env, const std::string& dir);
// Links the files that the manifest of `from` names to `to`, which has none of these names.
void LinkFiles(Env& env, const std::string& from, const DiskManifest& manifest,
               const std::string& to);
// Makes `to`, which is empty, a store of its own by links to the files that the manifest of `from`
// names. Durable when it returns, if these files are.
void LinkStore(Env& env, const std::string& from, const DiskManifest& manifest,
               const std::string& to);
// What LinkStore may have left. What cannot be removed stays.
void RemoveStore(Env& env, const std::string& dir, const DiskManifest& manifest);

class DiskFiles {
 public:
  explicit DiskFiles(Env& env) : env_(env) {}

  // Removes the files, or keeps them until the commit that they belong to is replaced.
  void Retire(const std::vector<std::string>& paths) EXCLUDES(mu_);
  // From Hold to Release nothing is removed: files are being linked, or a manifest written.
  void Hold() EXCLUDES(mu_);
  void Release() EXCLUDES(mu_);
  // The last commit consists of these now.
  void SetCommitted(std::set<std::string> paths) EXCLUDES(mu_);

  int64_t pinned_bytes() const EXCLUDES(mu_);

 private:
  void RemoveUnused() REQUIRES(mu_);

  Env& env_;
  mutable Mutex mu_;
  int holds_ GUARDED_BY(mu_) = 0;
  std::set<std::string> committed_ GUARDED_BY(mu_);
  std::vector<std::string> retired_ GUARDED_BY(mu_);
};

}  // namespace terrace
