// Any bytes as a compressed file: the byte source gives bytes or an Error, the same for every size
// of reads.
//
// The first byte picks gzip, zstd or neither (the magic bytes are supplied, so that most inputs get
// past them), the second the size of reads.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "data/byte_source.h"
#include "data/memory_env.h"

namespace terrace {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;  // a small file may stand for very many bytes

struct Outcome {
  std::string bytes;
  bool failed = false;
};

Outcome Read(MemoryEnv& env, size_t read_size) {
  Outcome outcome;
  int64_t consumed = 0;
  std::string buffer(read_size, '\0');
  try {
    const auto source = OpenBytes(env, "f", &consumed);
    while (outcome.bytes.size() < kMaxBytes) {
      const size_t n = source->Read(buffer.data(), buffer.size());
      if (n > buffer.size()) std::abort();
      if (n == 0) break;
      outcome.bytes.append(buffer, 0, n);
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kData) std::abort();
    outcome.failed = true;
  }
  if (consumed > static_cast<int64_t>(env.files["f"].size())) std::abort();
  return outcome;
}

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  static constexpr const char* kMagic[] = {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", ""};
  MemoryEnv env;
  env.files["f"] = kMagic[data[0] % 3];
  env.files["f"].append(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Outcome whole = Read(env, 1 << 16);
  env.max_read = 1 + data[1] % 32;
  const Outcome pieces = Read(env, 1 + data[1]);
  if (whole.bytes.size() >= kMaxBytes || pieces.bytes.size() >= kMaxBytes) return;
  if (whole.failed != pieces.failed) std::abort();
  // Where data are corrupt, how much comes out before that may depend on the size of reads.
  if (!whole.failed && whole.bytes != pieces.bytes) std::abort();
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(data, size);
  return 0;
}
