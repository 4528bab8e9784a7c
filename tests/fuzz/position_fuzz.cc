// Any bytes as the position of a data stream: it is refused with an Error, or the stream goes on
// there, to its end.
//
// The first byte picks the data, the rest is the position without its checksum, which is supplied.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/config.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/memory_env.h"
#include "data/open_data.h"
#include "data/stream_position.h"

namespace terrace {
namespace {

struct Setup {
  DataConfig config;
  FeatureSpec spec;
};

Setup MakeSetup(const std::string& toml) {
  Setup setup;
  ConfigFile::Parse(toml, "fuzz").Read([&](ConfigVisitor& v) { setup.config.Visit(v); });
  setup.config.threads = 1;
  setup.spec = FeatureSpec::Resolve(setup.config);
  return setup;
}

const std::vector<Setup>& Setups() {
  static const auto* const setups = new std::vector<Setup>{
      MakeSetup("format = 'csv'\nslots = ['a']\ntrain = ['1', '2', '3']\nmax_line_bytes = 20"),
      MakeSetup("format = 'csv'\nslots = ['a']\ntrain = ['1', '2', '3']\nmax_line_bytes = 20\n"
                "shuffle = 7"),
      MakeSetup("format = 'synthetic'\nshuffle = 7\nsynthetic = {train_examples = 30, slots = 1, "
                "features = 5, dense = 0}"),
  };
  return *setups;
}

void Run(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const Setup& setup = Setups()[data[0] % Setups().size()];
  MemoryEnv env;
  env.files["1"] = "label,a\n1,b\n0,c\n1,d\n";
  env.files["2"] = "a,label\nb,1\nc,1\nd,0\ne,1\n\nf,0";
  env.files["3"] = "a,label\nb,1\nc,1\n";
  OpenDataOptions options{.block_bytes = 1};
  options.position.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  AppendValue(&options.position, HashBytes(options.position, kPositionChecksumSeed));
  try {
    const auto stream = OpenData(env, setup.config, setup.spec, options);
    Batch batch;
    while (stream->Next(4, &batch)) {
      options.position = stream->position();
      ParsePosition(options.position);
    }
    if (stream->progress() > 1 || stream->skipped_rows() < 0) std::abort();
  } catch (const Error& e) {
    const std::string message = e.what();
    if (e.code() != ErrorCode::kCorruption && e.code() != ErrorCode::kUsage) std::abort();
    if (message.size() > 1000 + size) std::abort();
  }
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(data, size);
  return 0;
}
