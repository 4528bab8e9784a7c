#include "bench/peers/disk_rocksdb_setup.h"

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <algorithm>

#include "bench/disk_engine.h"

namespace terrace {
namespace {

rocksdb::Options CommonOptions() {
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  options.max_open_files = -1;
  return options;
}

}  // namespace

// For rows of 64 bytes, read and written at random, all present. The budget is the block cache's:
// indexes and filters live in it, and write buffers are taken from it.
RocksDbTeam SetUpTuned(const EngineOptions& engine, rocksdb::Options* options_out,
                       rocksdb::ReadOptions*) {
  RocksDbTeam team;
  team.get_threads = engine.threads;
  team.put_tasks_a_shard = 2;
  rocksdb::Options& options = *options_out = CommonOptions();
  const size_t buffer = std::max<size_t>(engine.memory_bytes / 16, 4 << 20);
  constexpr int kBuffers = 4;
  options.write_buffer_size = buffer;
  options.max_write_buffer_number = kBuffers;
  options.memtable_whole_key_filtering = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.level_compaction_dynamic_level_bytes = true;
  options.max_bytes_for_level_base = 4 * buffer;
  options.target_file_size_base = buffer;
  options.compaction_readahead_size = 2 << 20;
  options.max_background_jobs = 2;
  // Every key that is asked for exists: filters of the last level would be read in vain.
  options.optimize_filters_for_hits = true;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(engine.memory_bytes - kBuffers * buffer, 6,
                                           /*strict_capacity_limit=*/false,
                                           /*high_pri_pool_ratio=*/0.5);
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.block_size = 4096;
  table.block_align = true;  // a block is one page of the device
  table.format_version = 5;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return team;
}

// As fbgemm_gpu's EmbeddingRocksDB sets RocksDB up (ssd_table_batched_embeddings.h), with the 8
// shards and threads of its benchmark. Its statistics are left out, as they cost time only; its
// write buffers are a quarter of the budget instead of 2 GB.
RocksDbTeam SetUpAsFbgemm(const EngineOptions& engine, rocksdb::Options* options_out,
                          rocksdb::ReadOptions* read) {
  constexpr int kShards = 8;
  constexpr int kBuffers = 4;
  RocksDbTeam team;
  team.shards = team.get_threads = kShards;
  team.load_file_bytes = ~uint64_t{0};  // universal compaction takes each file for a sorted run
  rocksdb::Options& options = *options_out = CommonOptions();
  options.write_buffer_size = engine.memory_bytes / 4 / kShards / kBuffers;
  options.max_write_buffer_number = kBuffers;
  options.min_write_buffer_number_to_merge = 2;
  options.target_file_size_base = uint64_t{2} << 30;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.compaction_options_universal.size_ratio = 10;
  options.compaction_options_universal.min_merge_width = 2;
  options.compaction_options_universal.max_size_amplification_percent = 400;
  options.level0_file_num_compaction_trigger = 8;
  options.level0_slowdown_writes_trigger = 32;
  options.level0_stop_writes_trigger = 64;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(sizeof(uint64_t)));
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = true;
  options.avoid_unnecessary_blocking_io = true;
  options.optimize_filters_for_hits = true;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.memtable_whole_key_filtering = true;
  options.max_background_jobs = kShards;
  options.env->SetBackgroundThreads(4, rocksdb::Env::HIGH);
  options.env->SetBackgroundThreads(1, rocksdb::Env::LOW);
  options.max_file_opening_threads = 1;  // each needs 50 bytes a key while it builds a hash index

  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kHashSearch;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.data_block_hash_table_util_ratio = 0.75;
  table.checksum = rocksdb::ChecksumType::kNoChecksum;
  table.format_version = 5;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(16));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  read->verify_checksums = false;
  read->async_io = true;
  return team;
}

}  // namespace terrace
