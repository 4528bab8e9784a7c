#include "base/cpu.h"

#include <cstdlib>

#include "base/error.h"

namespace terrace {
namespace {

IsaLevel BestIsa() {
#if defined(TERRACE_HAVE_X86_ISA)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return IsaLevel::kAvx512;
  if (avx2) return IsaLevel::kAvx2;
#endif
  return IsaLevel::kBaseline;
}

IsaLevel ChooseIsa() {
  const IsaLevel best = BestIsa();
  const char* wanted = std::getenv("TERRACE_ISA");
  if (wanted == nullptr || *wanted == 0) return best;
  for (IsaLevel level : {IsaLevel::kBaseline, IsaLevel::kAvx2, IsaLevel::kAvx512}) {
    if (IsaName(level) != wanted) continue;
    if (level > best)
      throw Error(ErrorCode::kUsage, std::string("TERRACE_ISA=") + wanted + ": this CPU has only " +
                                         std::string(IsaName(best)));
    return level;
  }
  throw Error(ErrorCode::kUsage,
              std::string("TERRACE_ISA=") + wanted + ": expected baseline, avx2 or avx512");
}

}  // namespace

IsaLevel CurrentIsa() {
  static const IsaLevel level = ChooseIsa();
  return level;
}

std::string_view IsaName(IsaLevel level) {
  switch (level) {
    case IsaLevel::kBaseline:
      return "baseline";
    case IsaLevel::kAvx2:
      return "avx2";
    case IsaLevel::kAvx512:
      return "avx512";
  }
  return "?";
}

}  // namespace terrace
