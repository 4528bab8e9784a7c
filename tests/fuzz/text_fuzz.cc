// Any bytes as a text file: the parsers give a batch of consistent shape or an Error.
//
// The first byte picks the config, the second the size of blocks, the rest is the file.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "data/memory_env.h"
#include "data/text_producer.h"

namespace terrace {
namespace {

struct Setup {
  DataConfig config;
  FeatureSpec spec;
};

Setup MakeSetup(const std::string& toml) {
  Setup setup;
  ConfigFile::Parse(toml, "fuzz").Read([&](ConfigVisitor& v) { setup.config.Visit(v); });
  setup.spec = FeatureSpec::Resolve(setup.config);
  return setup;
}

const std::vector<Setup>& Setups() {
  static const std::vector<Setup>* const setups = [] {
    auto* made = new std::vector<Setup>;
    const std::string columns =
        "slots = ['a', {name='b', separator='|', missing='skip', table='t'}, "
        "{name='c', bucket='log'}, "
        "{name='d', column='c', bucket='boundaries', boundaries=[-1, 2.5]}]\n"
        "dense = [{name='x', log=true, clip=[-3, 3]}, {name='y', column='x', missing=5}]\n"
        "weight = 'w'\ntimestamp = 't'\ngroup = 'a'\n";
    for (const std::string on_bad_row : {"on_bad_row = 'skip'\n", "on_bad_row = 'error'\n"}) {
      const std::string common = on_bad_row + "max_line_bytes = 300\n";
      made->push_back(MakeSetup(common + "format = 'criteo'"));
      made->push_back(MakeSetup(common + "format = 'csv'\n" + columns));
      made->push_back(MakeSetup(common + "format = 'tsv'\n" + columns));
      made->push_back(MakeSetup(common + "format = 'libsvm'"));
      made->push_back(MakeSetup(common + "format = 'libsvm'\ngroup = 'qid'"));
      made->push_back(MakeSetup(common +
                                "format = 'libffm'\nslots = [{name='f0..f3', linear_table='t'}, "
                                "{name='g', table='t'}]"));
    }
    return made;
  }();
  return *setups;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckBatch(const Batch& batch, const BatchShape& shape, bool labels) {
  const auto examples = static_cast<size_t>(batch.examples);
  const auto has = [&](bool wanted, size_t size) { Require(size == (wanted ? examples : 0)); };
  Require(batch.groups.size() == shape.group_slots.size());
  for (size_t g = 0; g < batch.groups.size(); ++g) {
    const KeyGroup& group = batch.groups[g];
    Require(group.slots == shape.group_slots[g]);
    Require(group.offsets.size() == examples * static_cast<size_t>(group.slots) + 1);
    Require(group.offsets.front() == 0 && group.offsets.back() == group.keys.size());
    for (size_t b = 1; b < group.offsets.size(); ++b)
      Require(group.offsets[b - 1] <= group.offsets[b]);
    Require(group.values.size() == (shape.has_values ? group.keys.size() : 0));
    for (const float value : group.values) Require(std::isfinite(value));
  }
  Require(batch.dense.size() == examples * static_cast<size_t>(shape.dense_columns));
  for (const float value : batch.dense) Require(std::isfinite(value));
  has(true, batch.labels.size());
  for (const float label : batch.labels)
    Require((label >= 0 && label <= 1) || (!labels && label == kNoExample));
  has(shape.has_weights, batch.weights.size());
  for (const float weight : batch.weights) Require(weight >= 0 && std::isfinite(weight));
  has(shape.has_group_ids, batch.group_ids.size());
  has(shape.has_timestamps, batch.timestamps.size());
}

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  const Setup& setup = Setups()[data[0] % Setups().size()];
  const size_t block_bytes = 1 + 8 * static_cast<size_t>(data[1]);
  const bool labels = data[0] < 128;
  MemoryEnv env;
  env.files["f"].assign(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const auto producer = MakeTextProducer(env, {"f"}, setup.config, setup.spec,
                                           {.block_bytes = block_bytes, .labels = labels});
    Batch chunk = MakeBatch(setup.spec.shape);
    while (const auto work = producer->Claim()) {
      ClearBatch(&chunk);
      producer->Produce(*work, &chunk);
      CheckBatch(chunk, setup.spec.shape, labels);
    }
  } catch (const Error& e) {
    // Plain text of modest length, whatever the file holds.
    const std::string message = e.what();
    Require(e.code() == ErrorCode::kData && message.size() < 10'000);
  }
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(data, size);
  return 0;
}
