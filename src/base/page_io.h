// Files of pages and reads of many of them at once: what a store on an SSD needs from the system.
//
// A PageFile is read and written at offsets, past the page cache where the file system can
// (direct). Of a direct file each offset, size and address is a multiple of kPageAlign. Calls may
// come from several threads; those that write belong to one thread at a time. Functions do the
// whole of what is asked or throw Error(kIo) with the path, the call and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace terrace {

constexpr size_t kPageAlign = 4096;

class PageFile {
 public:
  virtual ~PageFile() = default;
  virtual void Read(uint64_t offset, void* buffer, size_t size) = 0;
  virtual void Write(uint64_t offset, const void* data, size_t size) = 0;
  // Makes what was written durable.
  virtual void Sync() = 0;
  virtual void Truncate(uint64_t size) = 0;
  virtual uint64_t Size() = 0;
  virtual const std::string& path() const = 0;
  virtual bool direct() const = 0;
  // For readers of the same Env.
  virtual int descriptor() const = 0;
};

// Brings a page that a device has written to memory into the first cache alone: it is looked at
// once, and must not push out what the others hold.
inline void PrefetchPage(const std::byte* page) {
  for (size_t line = 0; line < kPageAlign; line += 64) __builtin_prefetch(page + line, 0, 0);
}

struct PageRead {
  PageFile* file = nullptr;
  uint64_t offset = 0;
  uint32_t size = 0;  // 1..BatchReader::max_read()
};

// Reads many places of files at once, as deep as the device likes. For one thread at a time.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  virtual size_t max_read() const = 0;
  virtual const char* name() const = 0;  // "io_uring" or "threads"

  // Calls `done(i, bytes)` on this thread for each read, in any order; the bytes are valid during
  // the call. Throws the first failure, of a read or of `done`, after what was under way has ended.
  // A read past the end of the file is a failure.
  using Done = std::function<void(size_t index, const std::byte* bytes)>;
  virtual void Read(std::span<const PageRead> reads, const Done& done) = 0;
};

enum class IoEngine {
  kAuto,     // io_uring where the system permits it, else threads
  kUring,    // io_uring or an error
  kThreads,  // a pool of threads with pread
};

// Buffers of so many bytes take this many: whole huge pages, where that is not much more. A read of
// some pages takes a place in the device's queue for each piece of memory that it goes to.
constexpr size_t ReadBufferBytes(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20;
  return bytes < kHugePage / 2 ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

struct BatchReaderOptions {
  IoEngine engine = IoEngine::kAuto;
  int depth = 128;             // reads under way at once
  size_t max_read = 32 << 10;  // bytes

  // At most: for reads under way, and for as many that have arrived.
  size_t memory_bytes() const { return ReadBufferBytes(2 * static_cast<size_t>(depth) * max_read); }
};

}  // namespace terrace
