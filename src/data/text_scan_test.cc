#include "data/text_scan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

namespace terrace {
namespace {

std::vector<const TextScanKernels*> AllLevels() {
  std::vector<const TextScanKernels*> levels = {&isa_baseline::kTextScanKernels};
#if defined(TERRACE_HAVE_X86_ISA)
  if (CurrentIsa() >= IsaLevel::kAvx2) levels.push_back(&isa_avx2::kTextScanKernels);
  if (CurrentIsa() >= IsaLevel::kAvx512) levels.push_back(&isa_avx512::kTextScanKernels);
#endif
  return levels;
}

void ExpectSameAsByteByByte(const std::string& text, char delimiter) {
  std::vector<uint32_t> separators;
  std::vector<uint32_t> line_ends;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_ends.push_back(static_cast<uint32_t>(separators.size()));
    if (text[i] == '\n' || text[i] == delimiter) separators.push_back(static_cast<uint32_t>(i));
  }
  for (const TextScanKernels* kernels : AllLevels()) {
    std::vector<uint32_t> found(text.size() + kScanSlack);
    std::vector<uint32_t> ends(text.size() + kScanSlack);
    const SeparatorCount count =
        kernels->find_separators(text.data(), text.size(), delimiter, found.data(), ends.data());
    found.resize(count.separators);
    ends.resize(count.lines);
    RC_ASSERT(found == separators);
    RC_ASSERT(ends == line_ends);
    RC_ASSERT(kernels->count_bytes(text.data(), text.size(), '\n') == line_ends.size());
  }
}

TEST(TextScan, FindsWhatALoopOverBytesFinds) {
  EXPECT_TRUE(rc::check([] {
    // Few different bytes, so that runs of separators of every length occur.
    const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ',', '\n', '\xff'));
    ExpectSameAsByteByByte(text, ',');
  }));
  for (size_t size : {63, 64, 65, 127, 128, 129, 4096}) {
    ExpectSameAsByteByByte(std::string(size, ','), ',');
    ExpectSameAsByteByByte(std::string(size, '\n'), ',');
    ExpectSameAsByteByByte(std::string(size, 'x'), ',');
  }
}

}  // namespace
}  // namespace terrace
