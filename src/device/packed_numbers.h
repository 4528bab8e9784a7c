// Numbers of a row as kernels read them: one type a codec, made from the start of a part.
//
// Load gives kWidth numbers as floats, from the i-th on. What a number becomes does not depend on
// the width. Bytes() is what the part takes.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "device/codec.h"
#include "device/kernel_macros.h"

namespace terrace {

// These go by reference only: how they are passed by value differs between instruction sets.
template <typename T, int kWidth>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kWidth * sizeof(T))));
};
template <typename T, int kWidth>
using Vec = typename VectorOf<T, kWidth>::Type;

inline constexpr int32_t kNanBits = 0x7fc00000;

// Codes as integers of 32 bits. The compiler takes a vector of 8 bytes apart; here it must not.
template <typename Code, int kWidth>
TERRACE_HD void LoadCodes(const char* from, Vec<int32_t, kWidth>& codes) {
  Vec<Code, kWidth> narrow;
#if defined(__AVX2__)
  if constexpr (kWidth == 8 || kWidth == 4) {
    constexpr bool kSigned = Code(-1) < 0;
    __m128i bytes = _mm_setzero_si128();
    __builtin_memcpy(&bytes, from, sizeof(narrow));
    if constexpr (kWidth == 8)
      codes = (Vec<int32_t, kWidth>)(sizeof(Code) == 1 ? _mm256_cvtepi8_epi32(bytes)
                                     : kSigned         ? _mm256_cvtepi16_epi32(bytes)
                                                       : _mm256_cvtepu16_epi32(bytes));
    else
      codes = (Vec<int32_t, kWidth>)(sizeof(Code) == 1 ? _mm_cvtepi8_epi32(bytes)
                                     : kSigned         ? _mm_cvtepi16_epi32(bytes)
                                                       : _mm_cvtepu16_epi32(bytes));
    return;
  }
#endif
  using Ints = Vec<int32_t, kWidth>;
  __builtin_memcpy(&narrow, from, sizeof(narrow));
  codes = __builtin_convertvector(narrow, Ints);
}

struct Fp32Numbers {
  static constexpr RowCodec kCodec = RowCodec::kFp32;
  const float* from;

  TERRACE_HD explicit Fp32Numbers(const void* part, int = 0)
      : from(static_cast<const float*>(part)) {}
  template <int kWidth>
  TERRACE_HD void Load(int i, Vec<float, kWidth>& x) const {
    __builtin_memcpy(&x, from + i, sizeof(x));
  }
  // The first number behind the vector.
  TERRACE_HD float Linear(int dim) const { return from[dim]; }
  TERRACE_HD static int64_t Bytes(int dim, int linear) { return int64_t{4} * (dim + linear); }
};

// Code is int8_t or int16_t; its lowest value is NaN.
template <typename Code>
struct IntNumbers {
  static constexpr RowCodec kCodec = sizeof(Code) == 1 ? RowCodec::kInt8 : RowCodec::kInt16;
  static constexpr int kTop = sizeof(Code) == 1 ? 127 : 32767;
  static constexpr int kNan = -kTop - 1;
  const char* codes;
  float scale;

  TERRACE_HD IntNumbers(const void* part, int coded) : codes(static_cast<const char*>(part)) {
    __builtin_memcpy(&scale, codes + CodesBytes(kCodec, coded), sizeof(scale));
  }
  template <int kWidth>
  TERRACE_HD void Load(int i, Vec<float, kWidth>& x) const {
    Vec<int32_t, kWidth> wide;
    LoadCodes<Code, kWidth>(codes + i * static_cast<int>(sizeof(Code)), wide);
    x = __builtin_convertvector(wide, Vec<float, kWidth>) * scale;
    x = wide == kNan ? Vec<float, kWidth>{} + __builtin_bit_cast(float, kNanBits) : x;
  }
  TERRACE_HD float Linear(int dim) const {
    float x;
    __builtin_memcpy(&x, codes + CodesBytes(kCodec, dim) + sizeof(float), sizeof(x));
    return x;
  }
  TERRACE_HD static int64_t Bytes(int dim, int linear) {
    return CodesBytes(kCodec, dim) + int64_t{4} * (1 + linear);
  }
};

// Both codecs of 16 bits: Widen makes the bits of a float of a code.
template <typename Derived, RowCodec kCodecOf>
struct HalfNumbers {
  static constexpr RowCodec kCodec = kCodecOf;
  const char* codes;

  TERRACE_HD explicit HalfNumbers(const void* part, int = 0)
      : codes(static_cast<const char*>(part)) {}
  template <int kWidth>
  TERRACE_HD void Load(int i, Vec<float, kWidth>& x) const {
    Vec<int32_t, kWidth> wide, bits;
    LoadCodes<uint16_t, kWidth>(codes + 2 * i, wide);
    Derived::template Widen<kWidth>(wide, bits);
    __builtin_memcpy(&x, &bits, sizeof(x));
  }
  TERRACE_HD float Linear(int dim) const {
    Vec<float, 1> x;
    Load<1>(dim, x);
    return x[0];
  }
  TERRACE_HD static int64_t Bytes(int dim, int linear) { return CodesBytes(kCodec, dim + linear); }
};

struct Bf16Numbers : HalfNumbers<Bf16Numbers, RowCodec::kBf16> {
  using HalfNumbers::HalfNumbers;
  template <int kWidth>
  TERRACE_HD static void Widen(const Vec<int32_t, kWidth>& code, Vec<int32_t, kWidth>& bits) {
    bits = code << 16;
  }
};

struct Fp16Numbers : HalfNumbers<Fp16Numbers, RowCodec::kFp16> {
  using HalfNumbers::HalfNumbers;
  template <int kWidth>
  TERRACE_HD static void Widen(const Vec<int32_t, kWidth>& code, Vec<int32_t, kWidth>& bits) {
    using Ints = Vec<int32_t, kWidth>;
    const Ints size = code & 0x7fff;
    // Below 2^-14 a code counts steps of 2^-24; as an integer, because products with numbers that
    // are denormal in fp32 are slow.
    const Vec<float, kWidth> steps = __builtin_convertvector(size, Vec<float, kWidth>) * 0x1p-24f;
    Ints small;
    __builtin_memcpy(&small, &steps, sizeof(small));
    const Ints normal = (size << 13) + (112 << 23);
    bits = size < 0x400 ? small : normal;
    bits = size > 0x7bff ? kNanBits | Ints{} : bits;
    bits |= (code & 0x8000) << 16;
  }
};

}  // namespace terrace
