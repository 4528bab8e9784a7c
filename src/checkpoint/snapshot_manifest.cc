#include "checkpoint/snapshot_manifest.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <ctime>
#include <set>

#include "base/error.h"

namespace terrace {
namespace {

constexpr std::string_view kFirstLine = "terrace snapshot";
constexpr std::string_view kChecksum = "checksum ";
constexpr std::string_view kChanging = "changing";
constexpr size_t kMaxName = 200;                   // with what is put before it, a file's name
constexpr int64_t kMaxCount = int64_t{1} << 60;    // examples, rows, bytes
constexpr int64_t kMaxNumbers = int64_t{1} << 48;  // of a dense block
constexpr size_t kMaxRank = 8;
constexpr int64_t kMaxRowBytes = 1 << 20;

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The name that EscapeName gave this one for, or nothing.
std::string Unescape(std::string_view text) {
  std::string name;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      name += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return {};
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return {};
    name += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return name;
}

// Takes the text apart word by word; every surprise is an error with its line.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  [[noreturn]] void Fail(const std::string& expected) const {
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}: line {}: expected {}; the file is damaged: use another snapshot "
                            "(terrace snapshot list)",
                            path_, line_, expected));
  }
  void Expect(std::string_view literal) {
    if (!Accept(literal)) Fail(fmt::format("\"{}\"", literal));
  }
  bool Accept(std::string_view literal) {
    if (!text_.starts_with(literal)) return false;
    text_.remove_prefix(literal.size());
    return true;
  }
  void EndLine() {
    if (!Accept("\n")) Fail("the end of the line");
    ++line_;
  }
  int64_t Number(const char* what, int64_t low, int64_t high) {
    const size_t digits = std::min(text_.find_first_not_of("0123456789"), text_.size());
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + digits, value);
    if (error != std::errc() || value < low || value > high || (digits > 1 && text_[0] == '0'))
      Fail(fmt::format("{} from {} to {}", what, low, high));
    text_.remove_prefix(digits);
    return value;
  }
  // Up to a space or the end of the line.
  std::string_view Word() {
    const size_t size = std::min(text_.find_first_of(" \n"), text_.size());
    const std::string_view word = text_.substr(0, size);
    text_.remove_prefix(size);
    return word;
  }
  std::string Name(const char* what, std::set<std::string>* names) {
    const std::string_view word = Word();
    const std::string name = word.size() <= kMaxName ? Unescape(word) : "";
    if (name.empty() || EscapeName(name) != word) Fail(fmt::format("the name of {}", what));
    if (!names->insert(name).second) Fail(fmt::format("{} that no line above names", what));
    return name;
  }
  Hash128 Hash() {
    const std::string_view word = Word();
    Hash128 hash;
    const auto read = [&](size_t at, uint64_t* half) {
      const char* const first = word.data() + at;
      const auto [end, error] = std::from_chars(first, first + 16, *half, 16);
      return error == std::errc() && end == first + 16;
    };
    if (word.size() != 32 || !read(0, &hash.high) || !read(16, &hash.low) || HashText(hash) != word)
      Fail("a hash of 32 hexadecimal digits");
    return hash;
  }
  // The rest of the line, which is for people.
  std::string Text() {
    const size_t size = std::min(text_.find('\n'), text_.size());
    const std::string_view line = text_.substr(0, size);
    for (const char c : line)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) Fail("text without control characters");
    text_.remove_prefix(size);
    return std::string(line);
  }
  bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
  const std::string& path_;
  int line_ = 1;
};

std::string OneLine(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return text;
}

bool IsTime(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

// The text above the checksum's line.
std::string_view Checked(std::string_view text, const std::string& path) {
  const size_t line = kChecksum.size() + 17;
  if (text.size() < line || text.substr(text.size() - line, kChecksum.size()) != kChecksum)
    throw Error(ErrorCode::kCorruption,
                path +
                    ": ends without a checksum: it was cut off; use another snapshot "
                    "(terrace snapshot list)");
  const std::string_view body = text.substr(0, text.size() - line);
  if (text.substr(body.size()) != fmt::format("{}{:016x}\n", kChecksum, HashBytes(body, 0)))
    throw Error(ErrorCode::kCorruption,
                path +
                    ": its checksum is wrong: the file is damaged; use another snapshot "
                    "(terrace snapshot list)");
  return body;
}

void CheckVersion(std::string_view text, const std::string& path) {
  if (text.starts_with("terrace disk store "))
    throw Error(ErrorCode::kUsage, path + ": is the manifest of a disk store, not of a snapshot");
  Parser first(text, path);
  first.Expect(kFirstLine);
  first.Expect(" ");
  const int64_t version = first.Number("a format version", 1, 1 << 20);
  if (version > SnapshotInfo::kFormat)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: written by a newer version of the program: format {}, this one "
                            "reads up to {}; use that version",
                            path, version, SnapshotInfo::kFormat));
}

SnapshotTable ParseTable(Parser& parser, std::set<std::string>* names) {
  SnapshotTable table;
  table.name = parser.Name("a table", names);
  parser.Expect(" row_bytes ");
  table.row_bytes = parser.Number("row_bytes", 1, kMaxRowBytes);
  parser.Expect(" rows ");
  table.rows_min = parser.Number("rows", 0, kMaxCount);
  parser.Expect(" to ");
  table.rows_max = parser.Number("rows", table.rows_min, kMaxCount);
  parser.Expect(" store ");
  table.settled = !parser.Accept(kChanging);
  if (table.settled) table.store_hash = parser.Hash();
  parser.Expect(" schema ");
  table.schema = parser.Text();
  parser.EndLine();
  return table;
}

SnapshotDense ParseDense(Parser& parser, std::set<std::string>* names) {
  SnapshotDense block;
  block.name = parser.Name("a dense block", names);
  int64_t left = kMaxNumbers;
  for (const char* before = " "; block.shape.size() < kMaxRank; before = "x") {
    if (before[0] == ' ')
      parser.Expect(before);
    else if (!parser.Accept(before))
      break;
    block.shape.push_back(parser.Number("a dimension", 1, left));
    left /= block.shape.back();
  }
  parser.EndLine();
  return block;
}

SnapshotFile ParseFile(Parser& parser, std::set<std::string>* names) {
  SnapshotFile file;
  file.name = parser.Word();
  if (!IsSnapshotFile(file.name)) parser.Fail("the name of a file");
  if (!names->insert(file.name).second) parser.Fail("a file that no line above names");
  parser.Expect(" ");
  file.bytes = parser.Number("bytes", 0, kMaxCount);
  parser.Expect(" ");
  file.hash = parser.Hash();
  parser.EndLine();
  return file;
}

}  // namespace

bool IsSnapshotFile(std::string_view name) {
  if (name.empty() || name.size() > kMaxName || name[0] == '.') return false;
  for (const char c : name)
    if (!IsPlain(c) && c != '%') return false;
  return name != "MANIFEST" && name != "LOCK" && name != "tables";
}

std::string EscapeName(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    if (IsPlain(c) && !(c == '.' && escaped.empty()))
      escaped += c;
    else
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (escaped.empty() || escaped.size() > kMaxName)
    throw Error(ErrorCode::kUsage,
                fmt::format("a snapshot cannot hold something named \"{}\": a name has 1 to {} "
                            "characters; rename it",
                            name.substr(0, 40), kMaxName));
  return escaped;
}

std::string UtcNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc;
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string HashText(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

const SnapshotTable* SnapshotInfo::FindTable(std::string_view name) const {
  for (const SnapshotTable& table : tables)
    if (table.name == name) return &table;
  return nullptr;
}

const SnapshotFile* SnapshotInfo::FindFile(std::string_view name) const {
  for (const SnapshotFile& file : files)
    if (file.name == name) return &file;
  return nullptr;
}

std::string SnapshotInfo::ToText() const {
  std::string text =
      fmt::format("{} {}\nbatch {}\nepoch {}\nexamples {}\ncreated {}\nprogram {}\n", kFirstLine,
                  format, batch, epoch, examples, created, OneLine(program));
  for (const std::string& line : lineage) text += fmt::format("lineage {}\n", OneLine(line));
  for (const SnapshotTable& table : tables)
    text += fmt::format("table {} row_bytes {} rows {} to {} store {} schema {}\n",
                        EscapeName(table.name), table.row_bytes, table.rows_min, table.rows_max,
                        table.settled ? HashText(table.store_hash) : std::string(kChanging),
                        OneLine(table.schema));
  for (const SnapshotDense& block : dense)
    text += fmt::format("dense {} {}\n", EscapeName(block.name),
                        block.shape.empty() ? "1" : fmt::format("{}", fmt::join(block.shape, "x")));
  for (const SnapshotFile& file : files)
    text += fmt::format("file {} {} {}\n", file.name, file.bytes, HashText(file.hash));
  return text + fmt::format("{}{:016x}\n", kChecksum, HashBytes(text, 0));
}

SnapshotInfo SnapshotInfo::Parse(std::string_view text, const std::string& path) {
  CheckVersion(text, path);
  Parser parser(Checked(text, path), path);
  SnapshotInfo info;
  parser.Expect(fmt::format("{} ", kFirstLine));
  info.format = static_cast<int>(parser.Number("a format version", 1, kFormat));
  parser.EndLine();
  const auto number = [&](const char* name, int64_t high) {
    parser.Expect(fmt::format("{} ", name));
    const int64_t value = parser.Number(name, 0, high);
    parser.EndLine();
    return value;
  };
  info.batch = number("batch", kMaxBatch);
  info.epoch = number("epoch", kMaxCount);
  info.examples = number("examples", kMaxCount);
  parser.Expect("created ");
  info.created = parser.Text();
  if (!IsTime(info.created)) parser.Fail("a time such as 2026-01-31T23:59:59Z");
  parser.EndLine();
  parser.Expect("program ");
  info.program = parser.Text();
  parser.EndLine();
  while (parser.Accept("lineage ")) {
    info.lineage.push_back(parser.Text());
    parser.EndLine();
  }
  std::set<std::string> tables, blocks, files;
  while (parser.Accept("table ")) info.tables.push_back(ParseTable(parser, &tables));
  while (parser.Accept("dense ")) info.dense.push_back(ParseDense(parser, &blocks));
  while (parser.Accept("file ")) info.files.push_back(ParseFile(parser, &files));
  if (!parser.done()) parser.Fail("lineage, table, dense and file lines in this order, or the end");
  return info;
}

}  // namespace terrace
