// A row-major matrix that somebody else owns.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/kernel_macros.h"

namespace terrace {

template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from a row to the next

  TERRACE_HD T* row(int64_t i) const { return data + i * stride; }
  TERRACE_HD MatrixView Columns(int64_t begin, int64_t count) const {
    return {data + begin, rows, count, stride};
  }
  TERRACE_HD operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, stride};
  }
};
using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace terrace
