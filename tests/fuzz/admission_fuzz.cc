// Any change of a saved admission: Load takes it or throws, and then nothing has changed; what it
// took can be saved, loaded and used.
//
// The first byte picks the config, the second how many bytes of the saved state are kept; then each
// three bytes change one of these (two of position, one that is put there by xor), up to a zero
// change, behind which the rest is appended.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "table/admission.h"

namespace terrace {
namespace {

AdmissionConfig ConfigOf(uint8_t kind) {
  AdmissionConfig config;
  config.by = static_cast<AdmitBy>(kind % 4);
  if (config.by == AdmitBy::kAll) return config;
  if (config.by == AdmitBy::kCount) config.count = kind & 4 ? 3 : 40;
  if (config.by == AdmitBy::kProbability) config.probability = 0.3;
  if (config.by == AdmitBy::kScore) config.score = 2;
  config.keys = kind & 8 ? 500 : 0;
  config.forget = kind & 16 ? 2 : 0;
  return config;
}

// A batch of keys, some of which come again in the next ones.
void Step(Admission* admission, uint64_t batch, uint32_t tick) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 60; ++i) keys.push_back(Mix64(batch * 40 + i));
  const std::vector<uint32_t> shows(keys.size(), 2), clicks(keys.size(), 1);
  std::vector<uint8_t> admitted(keys.size());
  admission->Step(keys, shows, clicks, tick, admitted);
}

void Run(const uint8_t* data, size_t size) {
  if (size < 2) return;
  const AdmissionConfig config = ConfigOf(data[0]);
  Admission saved(config, 1);
  for (uint32_t batch = 0; batch < 4; ++batch) Step(&saved, batch, batch);
  std::string bytes = saved.Save();
  if (data[1] != 255) bytes.resize(bytes.size() * data[1] / 255);
  size_t at = 2;
  for (; at + 3 <= size && data[at + 2] != 0; at += 3)
    if (const size_t place = data[at] + 256u * data[at + 1]; place < bytes.size())
      bytes[place] = static_cast<char>(bytes[place] ^ data[at + 2]);
  if (at + 3 < size) bytes.append(reinterpret_cast<const char*>(data) + at + 3, size - at - 3);

  Admission admission(config, 1);
  const std::string before = admission.Save();
  try {
    admission.Load(bytes);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kCorruption && e.code() != ErrorCode::kUsage) std::abort();
    if (admission.Save() != before) std::abort();
    return;
  }
  const std::string again = admission.Save();
  Admission other(config, 1);
  other.Load(again);
  if (other.Save() != again) std::abort();
  Step(&admission, 3, std::numeric_limits<uint32_t>::max());
  Step(&other, 3, std::numeric_limits<uint32_t>::max());
  if (admission.Save() != other.Save()) std::abort();
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(data, size);
  return 0;
}
