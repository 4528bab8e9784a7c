#include "tier/disk_manifest.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "tier/disk_store.h"

namespace terrace {
namespace {

constexpr std::string_view kFirstLine = "terrace disk store";
constexpr int64_t kMaxPages = UINT32_MAX;             // of a file
constexpr int64_t kMaxStorePages = int64_t{1} << 40;  // so that bytes do not overflow

// Takes the text apart word by word; every surprise is an error with its line.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void Fail(const std::string& expected) const {
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: line {}: expected {}; the file is damaged or not a store's "
                            "manifest: restore it from a snapshot",
                            path_, line_, expected));
  }
  void Expect(std::string_view literal) {
    if (!text_.starts_with(literal)) Fail(fmt::format("\"{}\"", literal));
    text_.remove_prefix(literal.size());
  }
  bool Accept(std::string_view literal) {
    if (!text_.starts_with(literal)) return false;
    text_.remove_prefix(literal.size());
    return true;
  }
  void EndLine() {
    Expect("\n");
    ++line_;
  }
  int64_t Number(const char* what, int64_t low, int64_t high) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < low || value > high)
      Fail(fmt::format("{} from {} to {}", what, low, high));
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
  const std::string& path_;
  int line_ = 1;
};

constexpr std::string_view kChecksum = "checksum ";

// The text above the checksum's line.
std::string_view Checked(std::string_view text, const std::string& path) {
  const size_t line = kChecksum.size() + 17;
  if (text.size() < line || text.substr(text.size() - line, kChecksum.size()) != kChecksum)
    throw Error(ErrorCode::kCorruption,
                path + ": ends without a checksum: cut off, or not a store's manifest");
  const std::string_view body = text.substr(0, text.size() - line);
  const std::string expected = fmt::format("{}{:016x}\n", kChecksum, HashBytes(body, 0));
  if (text.substr(body.size()) != expected)
    throw Error(ErrorCode::kCorruption, path +
                                            ": its checksum is wrong: the file is damaged; "
                                            "restore it from a snapshot");
  return body;
}

ManifestPartition ParsePartition(Parser& parser, int partition, int64_t last_file,
                                 std::set<uint64_t>* files) {
  ManifestPartition parsed;
  const auto file = [&] {
    const uint64_t number = static_cast<uint64_t>(parser.Number("a file number", 1, last_file));
    if (!files->insert(number).second) parser.Fail("a file that no other line names");
    return number;
  };
  parser.Expect(fmt::format("partition {}", partition));
  if (parser.Accept(" base ")) {
    parsed.base.file = file();
    parser.Expect(":");
    parsed.base.pages = parser.Number("pages", 1, kMaxPages);
    parser.Expect(":");
    parsed.base.rows = parser.Number("rows", 1, kMaxStorePages);
  }
  while (parser.Accept(" log ")) {
    ManifestLog& log = parsed.logs.emplace_back();
    log.file = file();
    parser.Expect(":");
    log.pages = parser.Number("pages", 1, kMaxPages);
  }
  parser.EndLine();
  return parsed;
}

}  // namespace

int64_t DiskManifest::rows() const {
  int64_t rows = 0;
  for (const ManifestPartition& partition : partitions) rows += partition.base.rows;
  return rows;
}

std::string DiskManifest::ToText() const {
  std::string text = fmt::format(
      "{} {}\nrow_bytes {}\npage_bytes {}\npartitions {}\ncommit {}\nnext_file {}\n", kFirstLine,
      kVersion, layout.row_bytes, layout.page_bytes, partitions.size(), commit, next_file);
  for (size_t p = 0; p < partitions.size(); ++p) {
    text += fmt::format("partition {}", p);
    const ManifestBase& base = partitions[p].base;
    if (base.file != 0) text += fmt::format(" base {}:{}:{}", base.file, base.pages, base.rows);
    for (const ManifestLog& log : partitions[p].logs)
      text += fmt::format(" log {}:{}", log.file, log.pages);
    text += '\n';
  }
  return text + fmt::format("{}{:016x}\n", kChecksum, HashBytes(text, 0));
}

DiskManifest DiskManifest::Parse(std::string_view text, const std::string& path) {
  Parser first(text, path);
  first.Expect(kFirstLine);
  first.Expect(" ");
  const int64_t version = first.Number("a format version", 1, 1 << 20);
  if (version != kVersion)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: format version {}, this program reads {}: use a program of the "
                            "version that wrote it",
                            path, version, kVersion));

  Parser parser(Checked(text, path), path);
  DiskManifest manifest;
  parser.Expect(fmt::format("{} {}", kFirstLine, kVersion));
  parser.EndLine();
  const auto line = [&](const char* name, int64_t low, int64_t high) {
    parser.Expect(fmt::format("{} ", name));
    const int64_t value = parser.Number(name, low, high);
    parser.EndLine();
    return value;
  };
  const size_t row_bytes =
      static_cast<size_t>(line("row_bytes", DiskOptions::kMinRowBytes, DiskOptions::kMaxRowBytes));
  const size_t page_bytes = static_cast<size_t>(line("page_bytes", 512, 1 << 20));
  const int partitions = static_cast<int>(line("partitions", 1, DiskOptions::kMaxPartitions));
  if (!std::has_single_bit(page_bytes) || !std::has_single_bit(static_cast<size_t>(partitions)) ||
      page_bytes < PageLayout::kHeaderBytes + 8 + row_bytes)
    parser.Fail("powers of two for pages and partitions, and a page that holds a row");
  manifest.layout = PageLayout(row_bytes, page_bytes, partitions);
  constexpr int64_t kLast = int64_t{1} << 62;
  manifest.commit = static_cast<uint64_t>(line("commit", 0, kLast));
  const int64_t next_file = line("next_file", 1, kLast);
  manifest.next_file = static_cast<uint64_t>(next_file);
  std::set<uint64_t> files;
  int64_t pages = 0;
  for (int p = 0; p < partitions; ++p) {
    const ManifestPartition& parsed =
        manifest.partitions.emplace_back(ParsePartition(parser, p, next_file - 1, &files));
    if (manifest.layout.PagesFor(parsed.base.rows) != parsed.base.pages)
      parser.Fail("a base whose pages are full");
    pages += parsed.base.pages;
    for (const ManifestLog& log : parsed.logs) pages += log.pages;
    if (pages > kMaxStorePages) parser.Fail(fmt::format("at most {} pages", kMaxStorePages));
  }
  if (!parser.rest().empty()) parser.Fail("the end");
  return manifest;
}

std::string ManifestPath(const std::string& dir) { return dir + "/MANIFEST"; }
std::string BasePath(const std::string& dir, uint64_t file) {
  return fmt::format("{}/{:08}.base", dir, file);
}
std::string LogPath(const std::string& dir, uint64_t file) {
  return fmt::format("{}/{:08}.log", dir, file);
}

uint64_t FileNumber(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const std::string_view ending = name.substr(static_cast<size_t>(end - name.data()));
  return error == std::errc() && (ending == ".base" || ending == ".log") ? number : 0;
}

DiskManifest ReadManifest(Env& env, const std::string& dir) {
  const std::string path = ManifestPath(dir);
  return DiskManifest::Parse(ReadWholeFile(env, path), path);
}

void WriteManifest(Env& env, const std::string& dir, const DiskManifest& manifest, bool* renamed) {
  *renamed = false;
  AtomicFile file(env, ManifestPath(dir));
  file.Append(manifest.ToText());
  file.Commit();
  *renamed = true;
  env.SyncDirectory(dir);
}

}  // namespace terrace
