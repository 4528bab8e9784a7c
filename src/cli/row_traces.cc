#include "cli/row_traces.h"

#include <cstring>
#include <unordered_map>

#include "base/hash.h"
#include "tier/disk_page.h"

namespace terrace {
namespace {

constexpr size_t kBlock = 1 << 20;

}  // namespace

TraceReport FindTraces(Env& env, const std::string& dir, std::span<const uint64_t> keys,
                       const std::function<void(int64_t bytes)>& progress) {
  std::unordered_map<uint64_t, size_t> numbers;
  std::vector<bool> maybe(1 << 16);  // by the low bits of a mix
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint64_t mix = MixOfKey(keys[i]);
    numbers.emplace(mix, i);
    maybe[mix & 0xffff] = true;
  }
  TraceReport report;
  std::string block;
  for (const std::string& name : env.List(dir)) {
    const std::unique_ptr<SequentialFile> file = env.OpenForRead(dir + "/" + name);
    ++report.files;
    size_t kept = 0;      // bytes of the block before, which a mix may begin in
    uint64_t offset = 0;  // of the block
    for (;;) {
      block.resize(kept + kBlock);
      const size_t got = file->Read(block.data() + kept, kBlock);
      if (got == 0) break;
      const size_t size = kept + got;
      for (size_t at = 0; at + sizeof(uint64_t) <= size; ++at) {
        uint64_t word;
        std::memcpy(&word, &block[at], sizeof(word));
        if (!maybe[word & 0xffff]) continue;
        if (const auto found = numbers.find(word); found != numbers.end())
          report.traces.push_back({found->second, name, offset + at});
      }
      const size_t tail = std::min(size, sizeof(uint64_t) - 1);
      std::memmove(block.data(), block.data() + size - tail, tail);
      offset += size - tail;
      kept = tail;
      report.bytes += static_cast<int64_t>(got);
      progress(report.bytes);
    }
  }
  return report;
}

}  // namespace terrace
