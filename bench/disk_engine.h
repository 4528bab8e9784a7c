// A store of fixed-size rows by key, as disk_bench sees it: ours and the peers behind one
// interface.
//
// One thread calls; an engine may have threads of its own. Failures are terrace::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace terrace {

struct EngineOptions {
  std::string dir;
  uint64_t rows = 0;  // that will be loaded
  size_t row_bytes = 64;
  size_t memory_bytes = 0;  // caches, indexes and write buffers together
  int threads = 16;         // of an engine that reads a batch by blocking calls
};

class DiskEngine {
 public:
  virtual ~DiskEngine() = default;  // closes; what was put is found again

  // Distinct keys. found[i] becomes 1 or 0.
  virtual void Get(std::span<const uint64_t> keys, std::byte* rows, uint8_t* found) = 0;
  virtual void Put(std::span<const uint64_t> keys, const std::byte* rows) = 0;

  // Whether Load is to be given all keys in ascending order, because bulk loading wants it so.
  virtual bool loads_sorted() const { return false; }
  virtual void Load(std::span<const uint64_t> keys, const std::byte* rows) { Put(keys, rows); }
  virtual void FinishLoad() {}

  // Returns when nothing is left to do in the background, with everything in files.
  virtual void Settle() = 0;
  // More about the engine for the result line: `, "name": value` pairs, or nothing.
  virtual std::string Details() const { return {}; }
};

// Opens what is in options.dir, or creates it.
std::unique_ptr<DiskEngine> OpenOurs(const EngineOptions& options);
std::unique_ptr<DiskEngine> OpenRocksDb(const EngineOptions& options);
std::unique_ptr<DiskEngine> OpenRocksDbAsFbgemm(const EngineOptions& options);
std::unique_ptr<DiskEngine> OpenLmdb(const EngineOptions& options);

}  // namespace terrace
