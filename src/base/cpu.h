// Which instruction-set level the *_simd.cc files run at.
//
// Each of them is compiled for every level inside namespace isa_<level> and exports a table of
// functions; DispatchIsa picks one. All levels give the same bits for element-wise work.
#pragma once

#include <string_view>

namespace terrace {

enum class IsaLevel { kBaseline, kAvx2, kAvx512 };

// The best level of this CPU, or the lower one named by TERRACE_ISA in the environment
// ("baseline", "avx2", "avx512"). Decided once.
IsaLevel CurrentIsa();
std::string_view IsaName(IsaLevel level);

template <typename T>
const T& DispatchIsa(const T& baseline, [[maybe_unused]] const T& avx2,
                     [[maybe_unused]] const T& avx512) {
  switch (CurrentIsa()) {
    case IsaLevel::kAvx512:
      return avx512;
    case IsaLevel::kAvx2:
      return avx2;
    case IsaLevel::kBaseline:
      break;
  }
  return baseline;
}

}  // namespace terrace

// TERRACE_DECLARE_ISA_TABLE(Type, kName): declares isa_<level>::kName for every level.
// TERRACE_ISA_TABLE(kName): the one of this CPU.
#if defined(TERRACE_HAVE_X86_ISA)
#define TERRACE_DECLARE_ISA_TABLE(Type, name) \
  namespace isa_baseline {                    \
  extern const Type name;                     \
  }                                           \
  namespace isa_avx2 {                        \
  extern const Type name;                     \
  }                                           \
  namespace isa_avx512 {                      \
  extern const Type name;                     \
  }
#define TERRACE_ISA_TABLE(name) \
  ::terrace::DispatchIsa(isa_baseline::name, isa_avx2::name, isa_avx512::name)
#else
#define TERRACE_DECLARE_ISA_TABLE(Type, name) \
  namespace isa_baseline {                    \
  extern const Type name;                     \
  }
#define TERRACE_ISA_TABLE(name) (isa_baseline::name)
#endif
