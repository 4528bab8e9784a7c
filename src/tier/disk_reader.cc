#include "tier/disk_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace terrace {
namespace {

// Pages between two wanted ones that are read along. A read takes a device as long as three pages
// of it or so, and most of the CPU's time. Where a quarter of all pages are wanted, two of them
// make a quarter fewer reads than one, and three win no time; where few are wanted it is all the
// same.
constexpr uint32_t kGapPages = 2;

// Cuts the requests into reads of neighbouring pages.
void PlanReads(const PageLayout& layout, size_t max_read, const PageRequests& requests,
               std::vector<PageRead>* reads, std::vector<size_t>* first_request) {
  reads->clear();
  first_request->clear();
  const uint32_t max_pages = static_cast<uint32_t>(max_read / layout.page_bytes);
  const Array<PageRequests::Request>& all = requests.requests;
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    const uint32_t first = all[begin].page;
    uint32_t last = first;
    for (end = begin + 1; end < all.size(); ++end) {
      if (all[end].file != all[begin].file || all[end].page < last) break;
      if (all[end].page > last + kGapPages + 1 || all[end].page - first >= max_pages) break;
      last = all[end].page;
    }
    reads->push_back({requests.files[all[begin].file].file, first * uint64_t{layout.page_bytes},
                      static_cast<uint32_t>((last - first + 1) * layout.page_bytes)});
    first_request->push_back(begin);
  }
  first_request->push_back(all.size());
}

[[noreturn]] void MissingRow(const PageRequests::File& file, uint32_t page) {
  throw Error(ErrorCode::kCorruption,
              fmt::format("{}: page {} has changed: a row that was written there is gone; open the "
                          "store again",
                          file.file->path(), page));
}

}  // namespace

void DiskReaders::ReadRows(const PageLayout& layout, BatchScratch* scratch, std::byte* rows,
                           uint8_t* found) {
  const PageRequests& requests = scratch->requests;
  if (requests.requests.empty()) return;
  PlanReads(layout, scratch->reader->max_read(), requests, &scratch->reads,
            &scratch->first_request);
  int64_t pages = 0;
  scratch->reader->Read(scratch->reads, [&](size_t index, const std::byte* bytes) {
    const size_t end = scratch->first_request[index + 1];
    const size_t begin = scratch->first_request[index];
    const uint32_t first = requests.requests[begin].page;
    const PageRequests::File& file = requests.files[requests.requests[begin].file];
    uint32_t checked = first - 1;  // no page of this read
    for (size_t r = begin; r < end; ++r) {
      const PageRequests::Request& request = requests.requests[r];
      const std::byte* page = bytes + (request.page - first) * layout.page_bytes;
      if (request.page != checked) {
        if (r + 1 < end && requests.requests[r + 1].page != request.page)
          PrefetchPage(bytes + (requests.requests[r + 1].page - first) * layout.page_bytes);
        CheckPage(page, layout, file.number, request.page, file.file->path());
        checked = request.page;
      }
      const std::byte* row = PageView(page, layout).Find(request.mix);
      if (row == nullptr && file.is_log) MissingRow(file, request.page);
      if (row == nullptr) continue;
      found[request.index] = 1;
      std::memcpy(rows + request.index * layout.row_bytes, row, layout.row_bytes);
    }
    pages += scratch->reads[index].size / static_cast<uint32_t>(layout.page_bytes);
  });
  page_reads_ += static_cast<int64_t>(scratch->reads.size());
  pages_read_ += pages;
}

std::unique_ptr<BatchScratch> DiskReaders::Take() {
  MutexLock lock(&mu_);
  while (free_.empty() && made_ == budget_.readers) free_changed_.Wait(&mu_);
  // A reader works best for the thread that made it.
  const auto mine = std::find_if(free_.begin(), free_.end(), [](const auto& scratch) {
    return scratch->maker == std::this_thread::get_id();
  });
  if (mine != free_.end() || made_ == budget_.readers) {
    if (mine != free_.end()) std::swap(*mine, free_.back());
    std::unique_ptr<BatchScratch> scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  auto scratch = std::make_unique<BatchScratch>();
  scratch->maker = std::this_thread::get_id();
  scratch->reader = env_.NewBatchReader(budget_.reader);
  engine_ = scratch->reader->name();
  ++made_;
  return scratch;
}

void DiskReaders::Give(std::unique_ptr<BatchScratch> scratch) {
  scratch->requests.files.clear();  // lets go of files that are no longer used
  scratch->requests.requests.clear();
  MutexLock lock(&mu_);
  free_.push_back(std::move(scratch));
  free_changed_.NotifyOne();
}

void DiskReaders::AddTo(DiskStats* stats) const {
  stats->page_reads = page_reads_;
  stats->pages_read = pages_read_;
  MutexLock lock(&mu_);
  stats->engine = engine_;
}

}  // namespace terrace
