#include "cli/store_paths.h"

#include "base/error.h"
#include "tier/disk_manifest.h"

namespace terrace {
namespace {

std::string LastPart(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::vector<StorePath> FindStores(Env& env, const std::string& dir) {
  if (env.Exists(ManifestPath(dir))) return {{LastPart(dir), dir}};
  if (!env.Exists(dir)) throw Error(ErrorCode::kUsage, dir + ": there is no such directory");
  std::vector<std::string> names;
  try {
    names = env.List(dir);
  } catch (const Error&) {
    throw Error(ErrorCode::kUsage, dir + ": not a directory; name a store, or a directory of them");
  }
  std::vector<StorePath> stores;
  for (const std::string& name : names) {
    const std::string path = dir + "/" + name;
    if (env.Exists(ManifestPath(path))) stores.push_back({name, path});
  }
  if (stores.empty())
    throw Error(ErrorCode::kUsage,
                dir + ": holds no store: there is no MANIFEST in it or in a directory right below");
  return stores;
}

}  // namespace terrace
