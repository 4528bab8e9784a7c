#include "bench/shapes.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/process.h"

namespace terrace {

const BenchShape& ShapeOf(const std::string& name) {
  static const std::map<std::string, BenchShape> shapes = {
      {"criteo", {26, 1, 13, 16, "[400, 400, 400]"}},
      {"ads100", {20, 5, 0, 8, "[64, 32]"}},
      {"ads500", {50, 10, 0, 8, "[64, 32]"}},
  };
  const auto found = shapes.find(name);
  if (found == shapes.end())
    throw Error(ErrorCode::kUsage,
                "unknown shape \"" + name + "\"; there are criteo, ads100, ads500");
  return found->second;
}

RunConfig ShapeConfig(const BenchShape& shape, const std::vector<std::string>& sets,
                      const std::string& program) {
  ConfigFile file = ConfigFile::Parse(
      fmt::format(R"(
[data]
format = "synthetic"
[data.synthetic]
slots = {}
dense = {}
test_examples = 0
[tables.main]
dim = {}
lr = 0.05
[model]
kind = "deepfm"
hidden = {}
[optimizer]
lr = 0.001
[train]
batch = 4096
threads = {}
)",
                  shape.slots, shape.dense, shape.dim, shape.hidden, AvailableCores()),
      program);
  for (const std::string& set : sets) file.Set(set);
  return RunConfig::Read(file);
}

}  // namespace terrace
