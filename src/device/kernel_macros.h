// TERRACE_HD marks a function that kernels call, on the host or on a device.
//
// It is always inlined: the same function is compiled at several instruction-set levels, and no
// out-of-line copy may exist that the linker could hand to code of a lower level.
#pragma once

#if defined(__CUDACC__)
#define TERRACE_HD __host__ __device__ __forceinline__
#else
#define TERRACE_HD [[gnu::always_inline]] inline
#endif

// Before a loop whose iterations touch different elements.
#if defined(__clang__)
#define TERRACE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TERRACE_INDEPENDENT _Pragma("GCC ivdep")
#endif
