// Opening and closing a disk store.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/process.h"
#include "base/workers.h"
#include "tier/disk_store_impl.h"

namespace terrace {
namespace {

// A merge keeps the rows of a partition's logs in memory; what does not fit is read again. Logs
// share most of the store's memory, so there are more partitions where there is more of it.
constexpr size_t kLeastPartitions = 64;
constexpr size_t kPartitionMemory = 8 << 20;
constexpr int kFilesPerPartition = 12;  // at most, about: a base, logs, and those of a merge

void CheckOptions(const std::string& dir, const DiskOptions& options, const PageLayout* stored) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, dir + ": " + what);
  };
  if (stored != nullptr) {
    if (options.row_bytes != 0 && options.row_bytes != stored->row_bytes)
      fail(
          fmt::format("the store has rows of {} bytes, {} were asked for: the model's rows have "
                      "changed, use another directory",
                      stored->row_bytes, options.row_bytes));
    if (options.partitions != 0 && options.partitions != stored->partitions())
      fail(
          fmt::format("the store has {} partitions, {} were asked for: the number is fixed when a "
                      "store is created",
                      stored->partitions(), options.partitions));
    return;
  }
  if (options.row_bytes < DiskOptions::kMinRowBytes ||
      options.row_bytes > DiskOptions::kMaxRowBytes)
    fail(fmt::format("rows of {} bytes; a disk tier takes {} to {}", options.row_bytes,
                     DiskOptions::kMinRowBytes, DiskOptions::kMaxRowBytes));
  const int partitions = options.partitions;
  if (partitions != 0 && (partitions < 0 || partitions > DiskOptions::kMaxPartitions ||
                          !std::has_single_bit(static_cast<unsigned>(partitions))))
    fail(fmt::format("{} partitions; a power of two up to {} is needed", partitions,
                     DiskOptions::kMaxPartitions));
  const size_t page = options.page_bytes;
  if (page != 0 && (page < 512 || page > (1 << 20) || !std::has_single_bit(page) ||
                    page < PageLayout::kHeaderBytes + 8 + options.row_bytes))
    fail(
        fmt::format("pages of {} bytes; a power of two from 512 to 1 MiB that holds a row of {} is "
                    "needed",
                    page, options.row_bytes));
}

int DefaultPartitions(size_t memory_bytes) {
  return static_cast<int>(std::bit_floor(std::clamp<size_t>(
      memory_bytes / kPartitionMemory, kLeastPartitions, DiskOptions::kMaxPartitions)));
}

DiskManifest NewManifest(const std::string& dir, const DiskOptions& options) {
  CheckOptions(dir, options, nullptr);
  const int partitions =
      options.partitions == 0 ? DefaultPartitions(options.memory_bytes) : options.partitions;
  DiskManifest manifest;
  manifest.layout = PageLayout(options.row_bytes, options.page_bytes, partitions);
  manifest.partitions.resize(static_cast<size_t>(partitions));
  const DiskBudget budget(options, manifest.layout);  // too small: before anything is written
  return manifest;
}

DiskManifest ReadStored(const std::string& dir, const DiskOptions& options) {
  if (!options.env->Exists(ManifestPath(dir)))
    throw Error(ErrorCode::kUsage, dir + ": holds no store (there is no MANIFEST)");
  DiskManifest manifest = ReadManifest(*options.env, dir);
  CheckOptions(dir, options, &manifest.layout);
  const DiskBudget budget(options, manifest.layout);
  return manifest;
}

std::unique_ptr<DiskStore> OpenScratch(const std::string& dir, const DiskOptions& options,
                                       std::unique_ptr<FileLock> lock) {
  Env& env = *options.env;
  const std::string& from = options.start_from;
  const DiskManifest manifest =
      from.empty() ? NewManifest(dir, options) : ReadStored(from, options);
  RemoveLeftovers(env, dir, {});
  try {
    if (!from.empty()) LinkFiles(env, from, manifest, dir);
  } catch (const Error&) {
    RemoveStore(env, dir, manifest);
    throw;
  }
  return std::make_unique<DiskStoreImpl>(dir, options, manifest, std::move(lock), false);
}

}  // namespace

DiskStoreImpl::DiskStoreImpl(const std::string& dir, const DiskOptions& options,
                             const DiskManifest& manifest, std::unique_ptr<FileLock> lock,
                             bool read_only)
    : options_(options),
      read_only_(read_only),
      lock_(std::move(lock)),
      budget_(options, manifest.layout),
      context_{*options.env,
               dir,
               manifest.layout,
               options.direct && manifest.layout.page_bytes % kPageAlign == 0,
               budget_.FilterBits(manifest.rows()) > 0,
               budget_.buffer_rows,
               budget_.io_bytes},
      files_(*options.env),
      readers_(*options.env, budget_),
      manifest_(manifest),
      commits_(manifest.commit) {
  WantOpenFiles(int64_t{kFilesPerPartition} * partitions() + 256);
  context_.next_file = manifest.next_file;
  if (options.durability == Durability::kCommit) files_.SetCommitted(FilesOf(dir, manifest));
  for (int p = 0; p < context_.layout.partitions(); ++p)
    partitions_.push_back(std::make_unique<DiskPartition>(&context_, p));
  try {
    LoadPartitions(manifest);
  } catch (const std::exception&) {
    merger_.reset();
    RemoveScratch();
    throw;
  }
}

void DiskStoreImpl::LoadPartitions(const DiskManifest& manifest) {
  // More than cores: while some read, others build.
  Workers workers("disk-open", std::clamp(2 * AvailableCores(), 2, 8));
  const auto of = [&](int64_t p) -> const ManifestPartition& {
    return manifest.partitions[static_cast<size_t>(p)];
  };
  workers.Run(partitions(),
              [&](int64_t p, int) { partition(static_cast<int>(p)).LoadBase(of(p)); });
  if (!read_only_)
    merger_.emplace(&context_, &partitions_, budget_, options_,
                    [this](const std::vector<std::string>& paths) { files_.Retire(paths); });
  std::vector<DiskPartition::LoadScratch> scratch(static_cast<size_t>(workers.threads()));
  workers.Run(partitions(), [&](int64_t p, int worker) {
    // Logs that were written with more memory are merged as they come.
    if (merger_) merger_->WaitForRoom();
    partition(static_cast<int>(p)).LoadLogs(of(p), &scratch[static_cast<size_t>(worker)]);
  });
  const int64_t limit =
      budget_.IndexLimit(context_.fence_bytes, context_.filter_bytes, partitions());
  if (read_only_ && context_.index_bytes > limit)
    budget_.FailIndex(context_.dir, context_.index_bytes, limit);
  if (merger_) merger_->WaitForRoom();
}

DiskStoreImpl::~DiskStoreImpl() {
  merger_.reset();
  RemoveScratch();
}

void DiskStoreImpl::RemoveScratch() {
  if (read_only_ || options_.durability == Durability::kCommit) return;
  partitions_.clear();
  try {
    RemoveLeftovers(context_.env, context_.dir, {});
  } catch (const Error&) {  // the next one to open the directory does it
  }
}

std::unique_ptr<DiskStore> DiskStore::Open(const std::string& dir, const DiskOptions& options) {
  Env& env = *options.env;
  if (!options.start_from.empty() && options.durability != Durability::kScratch)
    throw Error(ErrorCode::kUsage, dir + ": start_from is for scratch stores");
  if (!env.Exists(ManifestPath(dir))) MakeDurableDirectory(env, dir);
  std::unique_ptr<FileLock> lock = env.Lock(dir + "/LOCK");
  const bool exists = env.Exists(ManifestPath(dir));
  if (exists && options.durability == Durability::kScratch)
    throw Error(ErrorCode::kUsage,
                dir +
                    ": holds a store with commits, which a scratch store would overwrite: use "
                    "another directory, or remove this one");
  if (options.durability == Durability::kScratch) return OpenScratch(dir, options, std::move(lock));
  const DiskManifest manifest = exists ? ReadStored(dir, options) : NewManifest(dir, options);
  RemoveLeftovers(env, dir, FilesOf(dir, manifest));
  bool renamed = false;
  if (!exists) WriteManifest(env, dir, manifest, &renamed);
  return std::make_unique<DiskStoreImpl>(dir, options, manifest, std::move(lock), false);
}

std::unique_ptr<DiskStore> DiskStore::OpenReadOnly(const std::string& dir,
                                                   const DiskOptions& options) {
  return std::make_unique<DiskStoreImpl>(dir, options, ReadStored(dir, options), nullptr, true);
}

}  // namespace terrace
