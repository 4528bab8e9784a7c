// What tests of the reading side share.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "data/batch.h"
#include "data/memory_env.h"
#include "data/open_data.h"

namespace terrace {

inline DataConfig DataConfigFrom(const std::string& toml) {
  DataConfig config;
  ConfigFile::Parse(toml, "test.toml").Read([&](ConfigVisitor& v) { config.Visit(v); });
  return config;
}

inline bool SameExamples(const Batch& a, const Batch& b) {
  if (a.examples != b.examples || a.groups.size() != b.groups.size()) return false;
  for (size_t g = 0; g < a.groups.size(); ++g)
    if (a.groups[g].slots != b.groups[g].slots || a.groups[g].keys != b.groups[g].keys ||
        a.groups[g].offsets != b.groups[g].offsets || a.groups[g].values != b.groups[g].values)
      return false;
  return a.dense_columns == b.dense_columns && a.dense == b.dense && a.labels == b.labels &&
         a.weights == b.weights && a.group_ids == b.group_ids && a.timestamps == b.timestamps &&
         a.truth == b.truth;
}

// Keys of the one slot `place` of example `example`.
inline std::vector<uint64_t> BagOf(const Batch& batch, size_t group, int64_t example, int place) {
  const KeyGroup& keys = batch.groups[group];
  const int64_t bag = example * keys.slots + place;
  return {keys.keys.begin() + keys.offsets[bag], keys.keys.begin() + keys.offsets[bag + 1]};
}

// All examples of a part as one batch, read `size` at a time.
inline Batch ReadAll(Env& env, const DataConfig& config, const OpenDataOptions& options = {},
                     int64_t size = 7) {
  const FeatureSpec spec = FeatureSpec::Resolve(config);
  const std::unique_ptr<DataStream> stream = OpenData(env, config, spec, options);
  Batch all = MakeBatch(spec.shape);
  Batch batch;
  while (stream->Next(size, &batch)) AppendExamples(batch, 0, batch.examples, &all);
  return all;
}

// The message of the Error that `f` throws; "no error" if it throws none.
template <typename F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
template <typename F>
ErrorCode CodeOf(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;
}

}  // namespace terrace
