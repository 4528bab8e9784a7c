// VerifyStore: reads every page that a store's manifest names, and believes nothing.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tier/base_file.h"
#include "tier/disk_buffer.h"
#include "tier/disk_manifest.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr size_t kReadBytes = 1 << 20;

class Verifier {
 public:
  using Progress = std::function<void(int64_t, int64_t)>;

  Verifier(Env& env, const std::string& dir, const DiskManifest& manifest, Progress progress)
      : env_(env),
        dir_(dir),
        layout_(manifest.layout),
        progress_(std::move(progress)),
        buffer_(std::max(kReadBytes, layout_.page_bytes)) {
    for (const ManifestPartition& partition : manifest.partitions) {
      total_pages_ += partition.base.pages;
      for (const ManifestLog& log : partition.logs) total_pages_ += log.pages;
    }
  }

  void CheckPartition(int partition, const ManifestPartition& manifest) {
    partition_ = partition;
    if (manifest.base.file != 0)
      Guard(BasePath(dir_, manifest.base.file),
            [&](const auto& path) { CheckBase(path, manifest.base); });
    for (const ManifestLog& log : manifest.logs)
      Guard(LogPath(dir_, log.file), [&](const auto& path) {
        const auto file = env_.OpenPages(path, PageMode::kRead, direct());
        ForEachPage(*file, log.file, log.pages,
                    [&](int64_t page, const PageView& view) { CheckOrder(path, page, view); });
      });
  }

  VerifyReport report;

 private:
  bool direct() const { return layout_.page_bytes % kPageAlign == 0; }

  void Problem(const std::string& path, const std::string& what) {
    report.problems.push_back(path + ": " + what);
  }
  void PageProblemAt(const std::string& path, int64_t page, const std::string& what) {
    Problem(path, fmt::format("page {}: {}", page, what));
  }

  // One file that cannot be read is a problem of its own, not the end.
  template <typename F>
  void Guard(const std::string& path, F f) {
    ++report.files;
    try {
      f(path);
    } catch (const Error& e) {
      const std::string what = e.what();
      report.problems.push_back(what.starts_with(path) ? what : path + ": " + what);
    }
  }

  // Calls f(page, view) for each page whose checksum is right.
  template <typename F>
  void ForEachPage(PageFile& file, uint64_t number, int64_t pages, F f) {
    const int64_t at_once = static_cast<int64_t>(buffer_.size() / layout_.page_bytes);
    for (int64_t begin = 0; begin < pages; begin += at_once) {
      const int64_t count = std::min(at_once, pages - begin);
      const size_t bytes = static_cast<size_t>(count) * layout_.page_bytes;
      file.Read(static_cast<uint64_t>(begin) * layout_.page_bytes, buffer_.data(), bytes);
      for (int64_t i = 0; i < count; ++i) {
        const std::byte* page = buffer_.data() + static_cast<size_t>(i) * layout_.page_bytes;
        const std::string problem =
            PageProblem(page, layout_, number, static_cast<uint64_t>(begin + i));
        const PageView view(page, layout_);
        if (!problem.empty()) {
          PageProblemAt(file.path(), begin + i, problem);
        } else {
          report.rows += static_cast<int64_t>(view.rows());
          f(begin + i, view);
        }
      }
      report.pages += count;
      report.bytes += static_cast<int64_t>(bytes);
      if (progress_)
        progress_(report.bytes, total_pages_ * static_cast<int64_t>(layout_.page_bytes));
    }
  }

  // Rows and tombstones are each in order and of this partition.
  void CheckOrder(const std::string& path, int64_t page, const PageView& view) {
    for (size_t i = 0; i < view.entries(); ++i) {
      const bool first = i == 0 || i == view.rows();
      if (!first && view.mix(i) <= view.mix(i - 1))
        return PageProblemAt(path, page, fmt::format("entry {} is not in order", i));
      if (layout_.PartitionOf(view.mix(i)) != partition_)
        return PageProblemAt(path, page,
                             fmt::format("entry {} is of partition {}, not {}", i,
                                         layout_.PartitionOf(view.mix(i)), partition_));
    }
  }

  void CheckBase(const std::string& path, const ManifestBase& manifest) {
    const auto file = env_.OpenPages(path, PageMode::kRead, direct());
    Array<uint64_t> fences;
    std::shared_ptr<BaseFile> base;  // null: its fences cannot be read, its pages perhaps
    try {
      base = BaseFile::Open(env_, path, direct(), layout_,
                            {manifest.file, manifest.pages, manifest.rows, 0}, true, &fences);
    } catch (const Error& e) {
      report.problems.push_back(e.what());
    }
    int64_t rows = 0;
    uint64_t last = 0;
    const size_t problems = report.problems.size();
    ForEachPage(*file, manifest.file, manifest.pages, [&](int64_t page, const PageView& view) {
      CheckOrder(path, page, view);
      if (view.entries() == 0) return PageProblemAt(path, page, "it is empty");
      if (view.tombstones() > 0) PageProblemAt(path, page, "a base has tombstones");
      if (base != nullptr && view.mix(0) != fences[static_cast<size_t>(page)])
        PageProblemAt(path, page, "its first row is not what its fence says");
      if (page > 0 && view.mix(0) <= last)
        PageProblemAt(path, page, "it begins before the page before it ends");
      last = view.mix(view.entries() - 1);
      rows += static_cast<int64_t>(view.rows());
      for (size_t i = 0; base != nullptr && i < view.rows(); ++i)
        if (!base->filter().MayContain(view.mix(i)))
          return PageProblemAt(path, page, fmt::format("row {} is not in the filter", i));
    });
    if (rows != manifest.rows && report.problems.size() == problems)
      Problem(path, fmt::format("has {} rows, the manifest says {}", rows, manifest.rows));
  }

  Env& env_;
  const std::string& dir_;
  const PageLayout layout_;
  const Progress progress_;
  AlignedBuffer buffer_;
  int64_t total_pages_ = 0;
  int partition_ = 0;
};

}  // namespace

VerifyReport VerifyStore(Env& env, const std::string& dir,
                         const std::function<void(int64_t, int64_t)>& progress) {
  const DiskManifest manifest = ReadManifest(env, dir);
  Verifier verifier(env, dir, manifest, progress);
  for (size_t p = 0; p < manifest.partitions.size(); ++p)
    verifier.CheckPartition(static_cast<int>(p), manifest.partitions[p]);
  return std::move(verifier.report);
}

}  // namespace terrace
