#include "cli/snapshot_sizes.h"

namespace terrace {
namespace {

void Add(Env& env, const std::string& dir, SeenFiles* seen, int64_t* new_bytes,
         SnapshotSizes* sizes) {
  for (const std::string& name : env.List(dir)) {
    const std::string path = dir + "/" + name;
    if (env.IsDirectory(path)) {
      Add(env, path, seen, new_bytes, sizes);
      continue;
    }
    const FileStatus status = env.Status(path);
    ++sizes->files;
    (status.links > 1 ? sizes->shared_bytes : sizes->own_bytes) += status.bytes;
    if (seen->insert({status.device, status.inode}).second) *new_bytes += status.bytes;
  }
}

}  // namespace

SnapshotSizes MeasureSnapshot(Env& env, const std::string& path, SeenFiles* seen,
                              int64_t* new_bytes) {
  SnapshotSizes sizes;
  Add(env, path, seen, new_bytes, &sizes);
  return sizes;
}

}  // namespace terrace
