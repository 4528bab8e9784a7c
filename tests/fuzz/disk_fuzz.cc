// Any damage to a store's files: opening, reading, scanning and verifying it work or throw an
// Error, and what VerifyStore finds clean reads the same by key and by scan.
//
// The input is a list of edits of a small store's files. Its first byte says which checksums are
// made right again afterwards, so that most inputs get past them.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "data/memory_env.h"
#include "tier/disk_manifest.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr uint64_t kKeys = 120;
constexpr size_t kMaxFile = 64 << 10;

enum Repair : uint8_t {
  kManifest = 1,     // its checksum
  kPages = 2,        // the checksum of each page
  kTail = 4,         // the checksum of fences and filter
  kDescription = 8,  // the checksum of a base's last page
  kAgree = 16,       // the last page says what the manifest says
};

void Require(bool condition) {
  if (!condition) std::abort();
}

DiskOptions Options(Env* env) {
  DiskOptions options;
  options.memory_bytes = 8 << 20;
  options.background = false;
  options.env = env;
  return options;
}

// Two partitions with a base of some pages and a log with tombstones each.
std::map<std::string, std::string> MakeFiles() {
  MemoryEnv env;
  DiskOptions options = Options(&env);
  options.row_bytes = 24;
  options.page_bytes = 512;
  options.partitions = 2;
  const auto store = DiskStore::Open("s", options);
  const auto put = [&](uint64_t first, uint64_t end) {
    for (uint64_t key = first; key < end; ++key) {
      const uint64_t row[3] = {key, first, end};
      store->Put({&key, 1}, reinterpret_cast<const std::byte*>(row));
    }
  };
  put(0, 80);
  store->Merge();
  put(60, kKeys);
  for (uint64_t key = 70; key < 90; ++key) store->Delete({&key, 1});
  store->Commit();
  return env.files;
}

template <typename T>
T Load(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

void Store(std::string* bytes, size_t at, uint64_t value) {
  if (at + sizeof(value) <= bytes->size()) std::memcpy(bytes->data() + at, &value, sizeof(value));
}

class Edits {
 public:
  Edits(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool done() const { return at_ >= size_; }
  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }

  // Which file, what, where, how much, and the bytes.
  void Apply(std::map<std::string, std::string>* files) {
    auto file = files->begin();
    std::advance(file, Byte() % files->size());
    std::string& bytes = file->second;
    const uint8_t what = Byte();
    const size_t offset = static_cast<size_t>(Byte()) << 8 | Byte();
    const size_t at = bytes.empty() ? 0 : offset % bytes.size();
    const size_t count = std::min<size_t>(Byte() % 64, bytes.size() - at);
    if (what % 8 == 0) {
      bytes.erase(at, count);
    } else if (what % 8 == 1) {
      bytes.resize(at);
    } else if (what % 8 == 2) {
      bytes.insert(at, Take(count));
      bytes.resize(std::min(bytes.size(), kMaxFile));
    } else {
      bytes.replace(at, count, Take(count));
    }
  }

 private:
  std::string Take(size_t count) {
    std::string taken;
    for (size_t i = 0; i < count; ++i) taken.push_back(static_cast<char>(Byte()));
    return taken;
  }

  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

void RepairManifest(std::string* text) {
  const size_t line = text->rfind("checksum ");
  if (line == std::string::npos) return;
  text->resize(line);
  *text += fmt::format("checksum {:016x}\n", HashBytes(*text, 0));
}

void RepairPages(std::string* file, const PageLayout& layout, uint64_t number, uint64_t pages) {
  for (uint64_t p = 0; p < pages && (p + 1) * layout.page_bytes <= file->size(); ++p) {
    const size_t at = p * layout.page_bytes;
    Store(file, at, HashBytes(file->data() + at + 8, layout.page_bytes - 8, Mix64(number) + p));
  }
}

void RepairBase(std::string* file, const DiskManifest& manifest, const ManifestBase& base,
                uint8_t repair) {
  const size_t page = manifest.layout.page_bytes;
  if (file->size() < page) return;
  const size_t last = file->size() - page;
  const size_t pages = static_cast<size_t>(base.pages);
  if (repair & kAgree) {
    const uint64_t fields[] = {
        manifest.layout.row_bytes,       page, manifest.partitions.size(), base.file, pages,
        static_cast<uint64_t>(base.rows)};
    for (size_t i = 0; i < std::size(fields); ++i) Store(file, last + 24 + 8 * i, fields[i]);
  }
  const uint64_t words = Load<uint64_t>(*file, last + 72);
  if ((repair & kTail) && pages <= last / page && words <= last / 4 &&
      pages * (page + 8) + 4 * words <= last)
    Store(file, last + 80,
          HashBytes(file->data() + pages * page, 8 * pages + 4 * words, base.file));
  if (repair & kDescription)
    Store(file, last, HashBytes(file->data() + last + 8, page - 8, Mix64(base.file) + ~0ULL));
}

void RepairFiles(MemoryEnv* env, uint8_t repair) {
  if (repair & kManifest) RepairManifest(&env->files["s/MANIFEST"]);
  DiskManifest manifest;
  try {
    manifest = ReadManifest(*env, "s");
  } catch (const Error&) {
    return;
  }
  for (const ManifestPartition& partition : manifest.partitions) {
    const auto pages = [&](const std::string& path, uint64_t number, int64_t count) {
      if ((repair & kPages) && env->Exists(path))
        RepairPages(&env->files[path], manifest.layout, number, static_cast<uint64_t>(count));
    };
    const std::string base = BasePath("s", partition.base.file);
    pages(base, partition.base.file, partition.base.pages);
    if (env->Exists(base)) RepairBase(&env->files[base], manifest, partition.base, repair);
    for (const ManifestLog& log : partition.logs)
      pages(LogPath("s", log.file), log.file, log.pages);
  }
}

// Calls f; false if it threw an Error, which is one of those that files may cause.
template <typename F>
bool Works(F f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    Require(e.code() == ErrorCode::kCorruption || e.code() == ErrorCode::kIo ||
            e.code() == ErrorCode::kUsage);
    Require(std::string(e.what()).size() < 1000);
    return false;
  }
}

void Run(const uint8_t* data, size_t size) {
  static const auto* const kFiles = new std::map<std::string, std::string>(MakeFiles());
  MemoryEnv env;
  env.files = *kFiles;
  Edits edits(data, size);
  const uint8_t repair = edits.Byte();
  while (!edits.done()) edits.Apply(&env.files);
  RepairFiles(&env, repair);

  VerifyReport report;
  const bool clean = Works([&] { report = VerifyStore(env, "s", {}); }) && report.problems.empty();
  std::unique_ptr<DiskStore> store;
  if (!Works([&] { store = DiskStore::OpenReadOnly("s", Options(&env)); })) return;
  const size_t row_bytes = store->row_bytes();
  Require(store->stats().total.rows_min() <= store->stats().total.rows_max());

  std::vector<uint64_t> keys;
  std::vector<std::byte> rows;
  const bool scanned = Works([&] {
    store->Scan(0, store->partitions(), [&](std::span<const uint64_t> k, const std::byte* r) {
      keys.insert(keys.end(), k.begin(), k.end());
      rows.insert(rows.end(), r, r + k.size() * row_bytes);
    });
  });
  Require(scanned || !clean);
  if (!scanned)
    for (uint64_t key = 0; key < kKeys; ++key) keys.push_back(key);
  std::vector<std::byte> got(keys.size() * row_bytes);
  std::vector<uint8_t> found(keys.size());
  const bool read = Works([&] { store->Get(keys, got.data(), found.data()); });
  if (!clean) return;
  Require(read && got == rows);
  for (const uint8_t f : found) Require(f == 1);
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(data, size);
  return 0;
}
