#include "tier/disk_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace terrace {
namespace {

constexpr size_t kAhead = 16;  // keys whose lines are fetched before their turn

// False is certain.
bool MayBeIn(const BaseFile* base, uint64_t mix) {
  return base != nullptr && mix >= base->first_mix() && base->filter().MayContain(mix);
}

}  // namespace

DiskPartition::DiskPartition(DiskContext* context, int number)
    : context_(*context),
      layout_(context->layout),
      number_(number),
      buffer_(context->layout.row_bytes) {
  MutexLock lock(&mu_);
  CountUse();
}

DiskPartition::~DiskPartition() = default;

void DiskPartition::CountUse() {
  const int64_t index = static_cast<int64_t>(index_.bytes());
  const int64_t pages = next_page() + (base_ == nullptr ? 0 : base_->pages());
  context_.index_bytes += index - std::exchange(counted_index_, index);
  context_.pages += pages - std::exchange(counted_pages_, pages);
}

bool DiskPartition::InBase(uint64_t mix) const { return MayBeIn(base_.get(), mix); }

void DiskPartition::Prefetch(uint64_t mix) const {
  index_.Prefetch(mix);
  if (base_ != nullptr) base_->filter().Prefetch(mix);
}

void DiskPartition::SetBase(std::shared_ptr<BaseFile> base) {
  const auto count = [this](int64_t sign) REQUIRES(mu_) {
    if (base_ == nullptr) return;
    context_.fence_bytes += sign * base_->fence_bytes();
    context_.filter_bytes += sign * static_cast<int64_t>(base_->filter().bytes());
  };
  count(-1);
  base_ = std::move(base);
  count(1);
}

uint32_t DiskPartition::next_page() const {
  if (logs_.empty()) return 0;
  return logs_.back().first + static_cast<uint32_t>(logs_.back().log->pages);
}

void DiskPartition::LoadBase(const ManifestPartition& manifest) {
  if (manifest.base.file == 0) return;
  MutexLock lock(&mu_);
  BaseHeader header;
  header.number = manifest.base.file;
  header.pages = manifest.base.pages;
  header.rows = manifest.base.rows;
  SetBase(BaseFile::Open(context_.env, BasePath(context_.dir, manifest.base.file), context_.direct,
                         layout_, header, context_.use_filters));
}

void DiskPartition::LoadLogs(const ManifestPartition& manifest, LoadScratch* scratch) {
  MutexLock lock(&mu_);
  scratch->items.clear();
  for (const ManifestLog& log : manifest.logs) ReadLog(log, &scratch->items);
  BuildIndex(scratch);
  CountUse();
}

void DiskPartition::ReadLog(const ManifestLog& entry, Array<KeyItem>* items) {
  auto log = std::make_shared<LogFile>();
  log->number = entry.file;
  log->file =
      context_.env.OpenPages(LogPath(context_.dir, entry.file), PageMode::kRead, context_.direct);
  const uint64_t size = log->file->Size();
  if (size / layout_.page_bytes < static_cast<uint64_t>(entry.pages))
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: has {} bytes, the manifest names {} pages of {}: restore the file "
                            "from a snapshot",
                            log->file->path(), size, entry.pages, layout_.page_bytes));
  const uint32_t first = next_page();
  if (entry.pages + first > LogPlace::kMaxNumber)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: partition {} has more than {} log pages", log->file->path(),
                            number_, LogPlace::kMaxNumber));
  items->reserve(items->size() + static_cast<size_t>(entry.pages) * layout_.rows_per_page);
  PageStream stream(log->file.get(), log->number, entry.pages, layout_, {});
  for (uint32_t number = first; const std::byte* bytes = stream.Next(); ++number) {
    const PageView page(bytes, layout_);
    for (size_t i = 0; i < page.entries(); ++i) {
      const bool tombstone = page.is_tombstone(i);
      if (layout_.PartitionOf(page.mix(i)) != number_)
        throw Error(
            ErrorCode::kCorruption,
            fmt::format("{}: page {} holds a key of partition {}, not {}", log->file->path(),
                        number - first, layout_.PartitionOf(page.mix(i)), number_));
      items->push_back({LogIndex::HashOf(page.mix(i)), LogPlace::Page(number, tombstone).bits});
    }
    log->entries += static_cast<int64_t>(page.entries());
  }
  log->pages = log->synced_pages = entry.pages;
  logs_.push_back({std::move(log), first});
}

void DiskPartition::BuildIndex(LoadScratch* scratch) {
  Array<KeyItem>& items = scratch->items;
  SortItemsFully(&items, &scratch->sorting);
  items.resize(KeepLast(items));
  index_.Assign(items);
  for (size_t i = 0; i < items.size(); ++i) {
    if (base_ != nullptr && i + kAhead < items.size())
      base_->filter().Prefetch(LogIndex::MixOf(items[i + kAhead].mix));
    CountKey(LogIndex::MixOf(items[i].mix), {}, LogPlace{items[i].index}.tombstone());
  }
}

void DiskPartition::Lookup(std::span<const KeyItem> items, std::byte* rows, uint8_t* found,
                           PageRequests* out) {
  MutexLock lock(&mu_);
  const uint32_t first_file = static_cast<uint32_t>(out->files.size());
  if (base_ != nullptr) out->files.push_back({base_, base_->file(), base_->number(), false});
  const uint32_t first_log = static_cast<uint32_t>(out->files.size());
  for (const OpenLog& log : logs_)
    out->files.push_back({log.log, log.log->file.get(), log.log->number, true});

  std::vector<PageRequests::Request> in_logs;
  int64_t page = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i + kAhead < items.size()) Prefetch(items[i + kAhead].mix);
    const auto [mix, index] = items[i];
    const LogPlace place = index_.Find(mix);
    found[index] = 0;
    if (!place.none() && place.tombstone()) continue;
    if (!place.none() && place.buffered()) {
      std::memcpy(rows + index * layout_.row_bytes, buffer_.row(place.number()), layout_.row_bytes);
      buffer_.NoteRead(place.number());
      found[index] = 1;
    } else if (!place.none()) {
      size_t log = logs_.size() - 1;
      while (place.number() < logs_[log].first) --log;
      in_logs.push_back(
          {mix, index, first_log + static_cast<uint32_t>(log), place.number() - logs_[log].first});
    } else if (base_ != nullptr) {
      if (!InBase(mix)) {
        ++out->filtered;
        continue;
      }
      const BaseFile::Pages pages = base_->PagesOf(mix, page);
      for (page = pages.first; page <= pages.last; ++page)
        out->requests.push_back({mix, index, first_file, static_cast<uint32_t>(page)});
      page = pages.last;
    }
  }
  std::sort(in_logs.begin(), in_logs.end(), [](const auto& a, const auto& b) {
    return a.file != b.file ? a.file < b.file : a.page < b.page;
  });
  out->requests.insert(out->requests.end(), in_logs.begin(), in_logs.end());
}

DiskPartition::Version DiskPartition::Flush(bool seal) {
  MutexLock lock(&mu_);
  FlushBuffer(true);
  if (seal) appending_ = false;
  Version version;
  version.base = base_;
  if (base_ != nullptr) version.manifest.base = {base_->number(), base_->pages(), base_->rows()};
  for (const OpenLog& open : logs_) {
    if (open.log->pages == 0) continue;  // its first write failed
    version.manifest.logs.push_back({open.log->number, open.log->pages});
    if (open.log->synced_pages < open.log->pages)
      version.unsynced.push_back({open.log, open.log->pages, open.log->entries});
  }
  return version;
}

void DiskPartition::MarkSynced(const Version& version) {
  MutexLock lock(&mu_);
  for (const RowSources::Log& log : version.unsynced)
    log.log->synced_pages = std::max(log.log->synced_pages, log.pages);
}

RowSources DiskPartition::Sources() {
  MutexLock lock(&mu_);
  RowSources sources;
  sources.base = base_;
  for (const OpenLog& open : logs_)
    sources.logs.push_back({open.log, open.log->pages, open.log->entries});
  sources.buffer = buffer_;
  return sources;
}

DiskPartition::Frozen DiskPartition::Freeze() {
  MutexLock lock(&mu_);
  FlushBuffer(true);
  appending_ = false;
  Frozen frozen;
  frozen.sources.base = base_;
  for (const OpenLog& open : logs_)
    frozen.sources.logs.push_back({open.log, open.log->pages, open.log->entries});
  frozen.end = next_page();
  frozen.keys = static_cast<int64_t>(index_.size());
  return frozen;
}

std::vector<std::string> DiskPartition::DropFrozenLogs(const Frozen& frozen) {
  std::vector<std::string> unused;
  for (const RowSources::Log& log : frozen.sources.logs) unused.push_back(log.log->file->path());
  logs_.erase(logs_.begin(), logs_.begin() + static_cast<ptrdiff_t>(unused.size()));
  return unused;
}

std::vector<std::string> DiskPartition::InstallBase(const Frozen& frozen,
                                                    std::shared_ptr<BaseFile> base) {
  MutexLock lock(&mu_);
  int64_t tombstones = 0;
  index_.Update([&](uint64_t, LogPlace place) -> LogPlace {
    if (!place.buffered() && place.number() < frozen.end) return {};
    tombstones += place.tombstone();
    return place.buffered() ? place
                            : LogPlace::Page(place.number() - frozen.end, place.tombstone());
  });
  tombstones_ = tombstones;
  std::vector<std::string> unused = DropFrozenLogs(frozen);
  for (OpenLog& open : logs_) open.first -= frozen.end;
  if (base_ != nullptr) unused.push_back(base_->file()->path());
  SetBase(std::move(base));
  int64_t new_keys = 0;
  index_.ForEach([&new_keys, base_now = base_.get()](uint64_t mix, LogPlace) {
    new_keys += MayBeIn(base_now, mix) ? 0 : 1;
  });
  new_keys_ = new_keys;
  CountUse();
  return unused;
}

std::vector<std::string> DiskPartition::InstallLog(const Frozen& frozen,
                                                   std::shared_ptr<LogFile> log,
                                                   std::span<const uint64_t> fences) {
  MutexLock lock(&mu_);
  const uint32_t pages = static_cast<uint32_t>(log->pages);
  index_.Update([&](uint64_t mix, LogPlace place) -> LogPlace {
    if (place.buffered()) return place;
    if (place.number() >= frozen.end)
      return LogPlace::Page(place.number() - frozen.end + pages, place.tombstone());
    const auto after = std::upper_bound(fences.begin() + 1, fences.end(), mix);
    return LogPlace::Page(static_cast<uint32_t>(after - fences.begin()) - 1, place.tombstone());
  });
  std::vector<std::string> unused = DropFrozenLogs(frozen);
  for (OpenLog& open : logs_) open.first = open.first - frozen.end + pages;
  if (pages > 0) logs_.insert(logs_.begin(), OpenLog{std::move(log), 0});
  CountUse();
  return unused;
}

bool DiskPartition::direct() const {
  MutexLock lock(&mu_);
  bool direct = base_ == nullptr || base_->file()->direct();
  for (const OpenLog& open : logs_) direct = direct && open.log->file->direct();
  return direct;
}

PartitionStats DiskPartition::stats() const {
  MutexLock lock(&mu_);
  PartitionStats stats;
  if (base_ != nullptr) {
    stats.base_rows = base_->rows();
    stats.base_pages = base_->pages();
    stats.file_bytes = base_->file_bytes();
  }
  for (const OpenLog& open : logs_) {
    stats.log_pages += open.log->pages;
    stats.log_rows += open.log->entries;
  }
  stats.file_bytes += stats.log_pages * static_cast<int64_t>(layout_.page_bytes);
  stats.logs = static_cast<int64_t>(logs_.size());
  stats.log_rows += static_cast<int64_t>(buffer_.size());
  stats.log_keys = static_cast<int64_t>(index_.size());
  stats.tombstones = tombstones_;
  stats.new_keys = new_keys_;
  return stats;
}

}  // namespace terrace
