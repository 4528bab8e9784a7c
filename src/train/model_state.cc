#include "train/model_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "tier/digest.h"
#include "train/table_schemas.h"

namespace terrace {
namespace {

constexpr int64_t kLeastStoreMemory = 5 << 20;
constexpr int64_t kPartitionMemory = 128 << 10;  // of the disk tier's
constexpr int64_t kReadMemory = 64 << 20;        // of one that all rows are read from

// A table's rows are in a directory of its name.
void CheckDirectoryName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  if (plain && !name.empty()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("[tables.\"{}\"]: with a disk tier a table's name is a directory's; use "
                          "letters, digits, _ and -",
                          name));
}

int64_t Count(size_t n) { return static_cast<int64_t>(n); }

// Of each table's store.
int64_t TierMemory(const TiersConfig& config, size_t tables) {
  const int64_t memory = DiskTierMemory(config);
  if (memory / Count(tables) < kLeastStoreMemory)
    throw Error(ErrorCode::kUsage,
                fmt::format("the disk tier has {} of memory for {} table{}, and each needs {} or "
                            "more: raise tiers.disk.memory, or tiers.memory.budget, of which it is "
                            "a fifth by default",
                            ShortBytes(static_cast<double>(memory)), tables, tables == 1 ? "" : "s",
                            ShortBytes(static_cast<double>(kLeastStoreMemory))));
  return memory / Count(tables);
}

// Opens a table's store and brings its rows there.
std::unique_ptr<DiskStore> OpenWithRows(const ModelState::OpenStore& open, const std::string& dir,
                                        DiskOptions options, const ModelState::SavedRows& saved) {
  if (saved.rewrite || saved.dir.empty()) {
    std::unique_ptr<DiskStore> store = open(dir, options);
    if (saved.rewrite) saved.rewrite(options, store.get());
    return store;
  }
  options.start_from = saved.dir;
  options.partitions = 0;  // as they were
  return open(dir, options);
}

// Rows that are due as far as training is.
std::function<RowTest()> DueTest(const TableLife& life, const RowLayout& layout) {
  return [&life, at = layout.stats_offset()]() -> RowTest {
    return [rule = life.Shared(), at](const std::byte* row) { return rule.Due(row + at); };
  };
}

std::function<RowTest()> UnseenTest(const TableLife& life, const RowLayout& layout) {
  return [&life, at = layout.stats_offset()]() -> RowTest {
    return [rule = life.Shared(), at](const std::byte* row) {
      return rule.Unseen(RowStats::Read(row + at));
    };
  };
}

}  // namespace

ModelState::ModelState(const RunConfig& config, const FeatureSpec& spec, Device* device) {
  const auto seed = static_cast<uint64_t>(config.seed);
  const std::vector<TableSchema> schemas = TableSchemas(config, spec);
  int64_t column = 0;
  for (const TableSchema& made : schemas) {
    const size_t g = tables.size();
    tables.push_back(std::make_unique<MemoryTier>(made));
    const TableSchema& schema = tables.back()->schema();
    const TableConfig& table = schema.config;
    lives.push_back(table.life.counts() ? std::make_unique<TableLife>(table.life) : nullptr);
    admissions.push_back(
        table.admission.by == AdmitBy::kAll
            ? nullptr
            : std::make_unique<Admission>(table.admission, RandomBits(schema.init_seed, 1)));
    group_column.push_back(column);
    mean_slots.emplace_back();
    for (int s : spec.group_slots[g]) {
      mean_slots[g].push_back(spec.slots[s].config.pooling == Pooling::kMean);
      column += table.dim;
    }
  }
  model = Model::Make(config.model, InputsOf(schemas, spec), device);
  params = Buffer<float>(device, model->param_count());
  dense_state =
      Buffer<float>(device, model->param_count() * DenseStatePerParam(config.optimizer.kind));
  model->InitParams(RandomBits(seed, HashBytes("dense", 0)), params.data());
}

void ModelState::OpenDiskTier(const TiersConfig& config, Env* env, const OpenStore& open,
                              const SavedRowsOf& from) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSchema& schema = tables[t]->schema();
    CheckDirectoryName(schema.name);
    DiskOptions options = StoreOptions(t, env, TierMemory(config, tables.size()));
    options.batch_keys = kMostChunkRows;
    // Rows in steady use are in memory: what comes here does not come again soon.
    options.buffer_bytes = options.memory_bytes / 32;
    if (config.disk.partitions > 0) options.partitions = static_cast<int>(config.disk.partitions);
    tiered.push_back(
        std::make_unique<TieredTable>(tables[t].get(),
                                      OpenWithRows(open, config.disk.path + "/" + schema.name,
                                                   options, from ? from(schema.name) : SavedRows()),
                                      config.memory.policy, UnseenRows(t)));
  }
}

void ModelState::ReadDiskTier(const TiersConfig& config, Env* env, const StorePath& from) {
  for (size_t t = 0; t < tables.size(); ++t) {
    DiskOptions options = StoreOptions(t, env, TierMemory(config, tables.size()));
    options.batch_keys = kMostChunkRows;
    options.partitions = 0;  // as it was written
    tiered.push_back(std::make_unique<TieredTable>(
        tables[t].get(), DiskStore::OpenReadOnly(from(tables[t]->schema().name), options),
        config.memory.policy, nullptr));
  }
}

void ModelState::ReadRows(Env* env, const StorePath& from) {
  for (size_t t = 0; t < tables.size(); ++t) {
    DiskOptions options = StoreOptions(t, env, kReadMemory);
    options.index_bytes = size_t{1} << 40;  // whatever the logs need, for a moment
    options.partitions = 0;
    LoadRows(t, DiskStore::OpenReadOnly(from(tables[t]->schema().name), options).get());
  }
}

void ModelState::OpenSaveStores(const std::string& dir, int64_t memory, Env* env,
                                const OpenStore& open, const SavedRowsOf& from) {
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableSchema& schema = tables[t]->schema();
    CheckDirectoryName(schema.name);
    DiskOptions options = StoreOptions(t, env, memory / Count(tables.size()));
    options.readers = 1;  // nobody reads them while the run goes on
    save_stores.push_back(OpenWithRows(open, dir + "/" + schema.name, options,
                                       from ? from(schema.name) : SavedRows()));
    if (from) LoadRows(t, save_stores.back().get());
  }
}

// Of a table's store that serves this process alone.
DiskOptions ModelState::StoreOptions(size_t t, Env* env, int64_t memory) const {
  const TableSchema& schema = tables[t]->schema();
  DiskOptions options;
  options.env = env;
  options.durability = Durability::kScratch;
  options.readers = kPullThreads;
  options.row_bytes = TieredTable::DiskRowBytes(schema);
  options.memory_bytes = static_cast<size_t>(memory);
  // As many as its write buffers allow, if that is less than the store would have by itself: small
  // partitions are merged in small steps.
  const auto fit = static_cast<uint64_t>(memory / kPartitionMemory);
  if (fit < 64) options.partitions = static_cast<int>(std::bit_floor(std::max<uint64_t>(fit, 1)));
  if (lives[t] != nullptr && lives[t]->expires()) options.due = DueTest(*lives[t], schema.layout);
  return options;
}

void ModelState::LoadRows(size_t table, DiskStore* store) {
  MemoryTier& memory = *tables[table];
  const RowLayout& layout = memory.schema().layout;
  const RowTest due = lives[table] != nullptr && lives[table]->expires()
                          ? DueTest(*lives[table], layout)()
                          : RowTest();
  const size_t row_bytes = store->row_bytes();
  std::vector<uint64_t> alive;
  std::vector<const std::byte*> from;
  std::vector<uint32_t> positions;
  store->Scan(0, store->partitions(), [&](std::span<const uint64_t> keys, const std::byte* rows) {
    alive.clear();
    from.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (due && due(rows + i * row_bytes)) continue;
      alive.push_back(keys[i]);
      from.push_back(rows + i * row_bytes);
    }
    positions.resize(alive.size());
    memory.FindOrCreate(alive, positions);
    for (size_t i = 0; i < alive.size(); ++i)
      std::memcpy(memory.base() + positions[i] * layout.stride, from[i],
                  static_cast<size_t>(layout.payload_bytes()));
  });
}

DiskStore* ModelState::store(size_t table) const {
  if (!tiered.empty()) return &tiered[table]->disk();
  return save_stores.empty() ? nullptr : save_stores[table].get();
}

std::function<RowTest()> ModelState::UnseenRows(size_t table) const {
  if (lives[table] == nullptr || !lives[table]->expires()) return nullptr;
  return UnseenTest(*lives[table], tables[table]->schema().layout);
}

ModelState::Summary ModelState::Summarise(Workers* workers) const {
  Summary summary;
  std::vector<Hash128> parts;
  for (size_t t = 0; t < tables.size(); ++t) {
    RowTest due;
    if (lives[t] != nullptr && lives[t]->expires())
      due = DueTest(*lives[t], tables[t]->schema().layout)();
    const RowsDigest rows =
        tiered.empty() ? DigestRows(*tables[t], due) : DigestRows(tiered[t].get(), due, workers);
    parts.push_back(rows.hash);
    summary.rows += rows.rows;
  }
  parts.push_back(HashBytes128(params.data(), params.size() * sizeof(float), 1));
  parts.push_back(HashBytes128(dense_state.data(), dense_state.size() * sizeof(float), 2));
  const Hash128 all = HashBytes128(parts.data(), parts.size() * sizeof(Hash128), 3);
  summary.digest = fmt::format("{:016x}{:016x}", all.high, all.low);
  return summary;
}

int64_t ModelState::rows() const {
  int64_t total = 0;
  for (const auto& table : tiered) total += table->stats().created;
  if (!tiered.empty()) return total;
  for (const auto& table : tables) total += table->rows();
  return total;
}

int64_t ModelState::dense_bytes() const {
  return static_cast<int64_t>(sizeof(float)) * (params.size() + dense_state.size());
}

}  // namespace terrace
