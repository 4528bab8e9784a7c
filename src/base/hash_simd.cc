// XXH3 of long inputs, with vectors as wide as the CPU has them; the result is the same for all.
// The library's own copy is built for the oldest CPUs.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // false, in its own headers (bug 105593)
#endif
#define XXH_INLINE_ALL  // every function is static: nothing is shared with other levels
#include <xxhash.h>

#include "base/hash_kernels.h"

namespace terrace::TERRACE_ISA {

const HashKernels kHashKernels = {
    [](const void* data, size_t size, uint64_t seed) -> uint64_t {
      return XXH3_64bits_withSeed(data, size, seed);
    },
};

}  // namespace terrace::TERRACE_ISA
