// The two ways in which disk_bench sets RocksDB up.
#pragma once

#include <cstdint>

namespace rocksdb {
struct Options;
struct ReadOptions;
}  // namespace rocksdb

namespace terrace {

struct EngineOptions;

// How a batch is spread.
struct RocksDbTeam {
  int shards = 1;  // databases
  int get_threads = 1;
  int put_tasks_a_shard = 1;
  uint64_t load_file_bytes = 64 << 20;
};

RocksDbTeam SetUpTuned(const EngineOptions& engine, rocksdb::Options* options,
                       rocksdb::ReadOptions* read);
RocksDbTeam SetUpAsFbgemm(const EngineOptions& engine, rocksdb::Options* options,
                          rocksdb::ReadOptions* read);

}  // namespace terrace
