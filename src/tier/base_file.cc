#include "tier/base_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace terrace {
namespace {

constexpr uint64_t kMagic = 0x6573616265636172;  // "racebase"
constexpr uint64_t kVersion = 1;

// The last page of a base: these numbers behind a checksum of the whole page.
struct Description {
  uint64_t magic, version, row_bytes, page_bytes, partitions, number, pages, rows, filter_words,
      tail_checksum;  // of fences and filter
};

int64_t WholePages(int64_t bytes, const PageLayout& layout) {
  const int64_t page = static_cast<int64_t>(layout.page_bytes);
  return (bytes + page - 1) / page;
}

int64_t TailBytes(int64_t pages, int64_t filter_words) {
  return pages * static_cast<int64_t>(sizeof(uint64_t)) +
         filter_words * static_cast<int64_t>(sizeof(uint32_t));
}

uint64_t DescriptionChecksum(const std::byte* page, const PageLayout& layout, uint64_t number) {
  return HashBytes(page + 8, layout.page_bytes - 8, Mix64(number) + ~0ULL);
}

Description Describe(const PageLayout& layout, const BaseHeader& header, uint64_t tail_checksum) {
  return {kMagic,
          kVersion,
          layout.row_bytes,
          layout.page_bytes,
          static_cast<uint64_t>(layout.partitions()),
          header.number,
          static_cast<uint64_t>(header.pages),
          static_cast<uint64_t>(header.rows),
          static_cast<uint64_t>(header.filter_words),
          tail_checksum};
}

Description ReadDescription(PageFile& file, const PageLayout& layout, const BaseHeader& header) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: its last page is damaged: {}; `terrace verify` lists all damage, "
                            "restore the file from a snapshot",
                            file.path(), what));
  };
  const uint64_t size = file.Size();
  if (size % layout.page_bytes != 0 || size < 3 * layout.page_bytes)
    fail(fmt::format("the file has {} bytes, which is not a base of {}-byte pages", size,
                     layout.page_bytes));
  AlignedBuffer buffer(layout.page_bytes);
  file.Read(size - layout.page_bytes, buffer.data(), layout.page_bytes);
  uint64_t checksum;
  std::memcpy(&checksum, buffer.data(), sizeof(checksum));
  const uint64_t expected = DescriptionChecksum(buffer.data(), layout, header.number);
  if (checksum != expected)
    fail(fmt::format("its checksum is {:016x}, its contents have {:016x}", checksum, expected));
  Description found;
  std::memcpy(&found, buffer.data() + 8, sizeof(found));
  BaseHeader expected_header = header;
  expected_header.filter_words = static_cast<int64_t>(found.filter_words);
  const Description wanted = Describe(layout, expected_header, found.tail_checksum);
  if (std::memcmp(&found, &wanted, sizeof(found)) != 0)
    fail(
        fmt::format("it describes base {} with {} pages and {} rows of {} bytes, the manifest "
                    "base {} with {} pages and {} rows of {} bytes",
                    found.number, found.pages, found.rows, found.row_bytes, header.number,
                    header.pages, header.rows, layout.row_bytes));
  if (found.filter_words % 8 != 0 || found.filter_words > size / sizeof(uint32_t) ||
      static_cast<uint64_t>(header.pages) > size / layout.page_bytes ||
      size / layout.page_bytes !=
          static_cast<uint64_t>(
              header.pages + 1 +
              WholePages(TailBytes(header.pages, static_cast<int64_t>(found.filter_words)),
                         layout)))
    fail(fmt::format("{} pages and a filter of {} words do not make a file of {} bytes",
                     header.pages, found.filter_words, size));
  return found;
}

// The last fence that is not above `key`, or 0. Gallops from the hint, then halves: in a sorted
// batch it is near.
template <typename T>
int64_t LastUpTo(std::span<const T> fences, T key, int64_t hint) {
  const int64_t pages = static_cast<int64_t>(fences.size());
  int64_t low = key < fences[static_cast<size_t>(hint)] ? 0 : hint, step = 1;
  while (low + step < pages && fences[static_cast<size_t>(low + step)] <= key) {
    low += step;
    step *= 2;
  }
  const auto begin = fences.begin() + low;
  const auto end = fences.begin() + std::min(low + step, pages);
  const auto above = std::upper_bound(begin, end, key);
  return std::max<int64_t>(above - fences.begin() - 1, 0);
}

}  // namespace

std::shared_ptr<BaseFile> BaseFile::Open(Env& env, const std::string& path, bool direct,
                                         const PageLayout& layout, const BaseHeader& header,
                                         bool with_filter, Array<uint64_t>* fences_out) {
  std::shared_ptr<BaseFile> base(new BaseFile);
  base->header_ = header;
  base->file_ = env.OpenPages(path, PageMode::kRead, direct);
  base->synced_ = true;
  const Description found = ReadDescription(*base->file_, layout, header);
  const int64_t words = static_cast<int64_t>(found.filter_words);
  const size_t tail = static_cast<size_t>(TailBytes(header.pages, words));
  AlignedBuffer buffer(static_cast<size_t>(WholePages(static_cast<int64_t>(tail), layout)) *
                       layout.page_bytes);
  base->file_->Read(
      static_cast<uint64_t>(header.pages) * layout.page_bytes, buffer.data(),
      static_cast<size_t>(WholePages(static_cast<int64_t>(tail), layout)) * layout.page_bytes);
  if (HashBytes(buffer.data(), tail, header.number) != found.tail_checksum)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: fences and filter, from page {}, are damaged: their checksum is "
                            "wrong; restore the file from a snapshot",
                            path, header.pages));
  Array<uint64_t> fences(static_cast<size_t>(header.pages));
  std::memcpy(fences.data(), buffer.data(), fences.size() * sizeof(uint64_t));
  if (!std::is_sorted(fences.begin(), fences.end()))
    throw Error(ErrorCode::kCorruption, path + ": its fences are not in order");
  base->header_.filter_words = words;
  if (with_filter && words > 0) {
    Array<uint32_t> filter(static_cast<size_t>(words));
    std::memcpy(filter.data(), buffer.data() + fences.size() * sizeof(uint64_t),
                filter.size() * sizeof(uint32_t));
    base->filter_ = KeyFilter(std::move(filter));
  }
  base->file_bytes_ = static_cast<int64_t>(base->file_->Size());
  if (fences_out != nullptr) *fences_out = fences;
  base->SetFences(std::move(fences), layout);
  return base;
}

void BaseFile::SetFences(Array<uint64_t> fences, const PageLayout& layout) {
  partition_bits_ = layout.partition_bits;
  first_mix_ = fences[0];
  half_fences_.resize(fences.size());
  for (size_t i = 0; i < fences.size(); ++i) half_fences_[i] = HalfOf(fences[i]);
  const auto same = std::adjacent_find(half_fences_.begin(), half_fences_.end(),
                                       [](uint32_t a, uint32_t b) { return a >= b; });
  if (same == half_fences_.end()) return;
  half_fences_ = {};
  fences_ = std::move(fences);
}

BaseFile::Pages BaseFile::PagesOf(uint64_t mix, int64_t hint) const {
  if (half_fences_.empty()) {
    const int64_t page = LastUpTo(std::span<const uint64_t>(fences_), mix, hint);
    return {page, page};
  }
  const std::span<const uint32_t> fences(half_fences_);
  const int64_t page = LastUpTo(fences, HalfOf(mix), hint);
  const bool either = page > 0 && fences[static_cast<size_t>(page)] == HalfOf(mix);
  return {page - either, page};
}

void BaseFile::Sync() {
  if (synced_) return;
  file_->Sync();
  synced_ = true;
}

std::shared_ptr<BaseFile> BaseWriter::Finish() {
  pages_.Flush();
  if (pages_.entries() == 0) return nullptr;

  std::shared_ptr<BaseFile> base(new BaseFile);
  const std::span<const uint32_t> words = filter_.words();
  base->header_ = {pages_.number(), pages_.pages(), pages_.entries(),
                   static_cast<int64_t>(words.size())};
  const size_t fence_bytes = pages_.fences().size() * sizeof(uint64_t);
  const size_t tail = fence_bytes + words.size_bytes();
  const size_t tail_pages =
      static_cast<size_t>(WholePages(static_cast<int64_t>(tail), layout_)) * layout_.page_bytes;
  AlignedBuffer buffer(tail_pages + layout_.page_bytes);
  std::memset(buffer.data(), 0, buffer.size());
  std::memcpy(buffer.data(), pages_.fences().data(), fence_bytes);
  if (!words.empty()) std::memcpy(buffer.data() + fence_bytes, words.data(), words.size_bytes());

  const Description description =
      Describe(layout_, base->header_, HashBytes(buffer.data(), tail, pages_.number()));
  std::byte* const last = buffer.data() + tail_pages;
  std::memcpy(last + 8, &description, sizeof(description));
  const uint64_t checksum = DescriptionChecksum(last, layout_, pages_.number());
  std::memcpy(last, &checksum, sizeof(checksum));
  pages_.Append(buffer.data(), tail_pages + layout_.page_bytes);

  base->file_bytes_ = pages_.pages() * static_cast<int64_t>(layout_.page_bytes) +
                      static_cast<int64_t>(tail_pages + layout_.page_bytes);
  base->SetFences(std::move(pages_.fences()), layout_);
  base->filter_ = std::move(filter_);
  base->file_ = pages_.Keep();
  return base;
}

}  // namespace terrace
