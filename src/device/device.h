// A device: where buffers live and kernels run. Now the CPU; another one adds a subclass
// with its own GEMM and its own table of kernels, and nothing outside src/device changes.
//
// A Stream is an order of work on a device. The CPU's stream runs each kernel at once on the
// calling thread, so one stream belongs to one thread. Streams of one device may be used side by
// side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/matrix.h"

namespace terrace {

struct DenseKernels;  // device/dense_ops.h
struct GemmArgs;      // device/gemm.h
class Stream;

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // 64-byte aligned, zeroed; large ones on huge pages, untouched until used. Throws Error(kIo) with
  // the size when memory runs out.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* data, size_t bytes) = 0;
  // What runs behind the functions of gemm.h and dense_ops.h.
  virtual void Gemm(Stream& stream, const GemmArgs& args) = 0;
  virtual const DenseKernels& dense_kernels() const = 0;
};

// The CPU of this process. Also fixes the BLAS library to one thread a call.
Device& CpuDevice();

class Stream {
 public:
  explicit Stream(Device* device) : device_(device) {}
  Device& device() const { return *device_; }

 private:
  Device* device_;
};

// An owned array on a device; zeroed when made. Moves, never copies.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device* device, int64_t size)
      : device_(device),
        size_(size),
        data_(size > 0 ? static_cast<T*>(device->Allocate(size * sizeof(T))) : nullptr) {}
  ~Buffer() { Reset(); }
  Buffer(Buffer&& other) noexcept { *this = static_cast<Buffer&&>(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    device_ = other.device_;
    size_ = other.size_;
    data_ = other.data_;
    other.size_ = 0;
    other.data_ = nullptr;
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[i]; }  // host-visible devices only
  const T& operator[](int64_t i) const { return data_[i]; }

  // Keeps nothing of the old contents; grows only.
  void EnsureSize(Device* device, int64_t size) {
    if (size > size_) *this = Buffer(device, size);
  }

 private:
  void Reset() {
    if (data_ != nullptr) device_->Free(data_, size_ * sizeof(T));
    data_ = nullptr;
    size_ = 0;
  }

  Device* device_ = nullptr;
  int64_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace terrace
