#include "base/config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <set>

#include "base/env.h"
#include "base/error.h"

namespace terrace {

struct ConfigFile::Document {
  toml::table root;
  std::set<std::string> overrides;  // dotted paths laid over by --set
};

namespace {

std::string Describe(const toml::node& node) {
  std::string text;
  if (const auto* s = node.as_string()) return fmt::format("\"{}\"", s->get());
  if (const auto* i = node.as_integer()) return fmt::format("{}", i->get());
  if (const auto* d = node.as_floating_point()) return fmt::format("{}", d->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  return "a date or time";
}

// Reads one table of the document. Nested tables get a visitor of their own.
class ParseVisitor : public ConfigVisitor {
 public:
  ParseVisitor(const ConfigFile::Document& document, const std::string& file,
               const toml::table* table, std::string prefix)
      : document_(document), file_(file), table_(table), prefix_(std::move(prefix)) {}

  // Throws if the table has a key that no field named.
  void RejectUnknownKeys() const {
    for (const auto& [key, node] : *table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      const std::string nearest = NearestName(name, known_);
      std::string names;
      for (const std::string& k : known_) names += (names.empty() ? "" : ", ") + k;
      throw Error(ErrorCode::kUsage,
                  Where(node, name) + fmt::format("unknown key `{}`", prefix_ + name) +
                      (nearest.empty() ? fmt::format("; expected one of: {}", names)
                                       : fmt::format("; did you mean `{}`?", prefix_ + nearest)));
    }
  }

  void Bool(const char* name, bool* value, const char*) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    if (!node->is_boolean()) Fail(*node, name, "true or false");
    *value = node->as_boolean()->get();
  }

  void Int(const char* name, int64_t* value, IntRange range, const char*) override {
    if (const toml::node* node = Get(name)) *value = AsInt(*node, name, range);
  }

  void Double(const char* name, double* value, DoubleRange range, const char*) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    const double x = AsDouble(*node, name);
    if (!(x >= range.min && x <= range.max))
      Fail(*node, name, fmt::format("a number from {} to {}", range.min, range.max));
    *value = x;
  }

  void String(const char* name, std::string* value, const char*) override {
    if (const toml::node* node = Get(name)) *value = AsString(*node, name);
  }

  void Bytes(const char* name, int64_t* value, const char*) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    const char* expected = "a size such as \"512MiB\" or a number of bytes";
    if (const auto* i = node->as_integer()) {
      *value = i->get();
    } else if (!node->is_string() || !ParseBytes(node->as_string()->get(), value)) {
      Fail(*node, name, expected);
    }
    if (*value < 0) Fail(*node, name, expected);
  }

  void Strings(const char* name, std::vector<std::string>* value, const char*) override {
    ForEach(name, value, [&](const toml::node& n) { return AsString(n, name); });
  }
  void Ints(const char* name, std::vector<int64_t>* value, IntRange range, const char*) override {
    ForEach(name, value, [&](const toml::node& n) { return AsInt(n, name, range); });
  }
  void Doubles(const char* name, std::vector<double>* value, const char*) override {
    ForEach(name, value, [&](const toml::node& n) { return AsDouble(n, name); });
  }

 protected:
  void Choice(const char* name, int* index, const std::vector<const char*>& names,
              const char*) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    std::string all;
    for (size_t i = 0; i < names.size(); ++i) {
      if (node->is_string() && node->as_string()->get() == names[i]) {
        *index = static_cast<int>(i);
        return;
      }
      all += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", names[i]);
    }
    Fail(*node, name, "one of " + all);
  }

  void SubTable(const char* name, const char*,
                const std::function<void(ConfigVisitor&)>& fields) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    if (!node->is_table()) Fail(*node, name, fmt::format("a table [{}{}]", prefix_, name));
    ParseVisitor nested(document_, file_, node->as_table(), prefix_ + name + ".");
    fields(nested);
    nested.RejectUnknownKeys();
  }

  void NamedTables(const char* name, const std::vector<std::string>&, const char*,
                   const std::function<void(const std::string&, ConfigVisitor&)>& fields) override {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    if (!node->is_table()) Fail(*node, name, fmt::format("tables [{}{}.NAME]", prefix_, name));
    for (const auto& [key, child] : *node->as_table()) {
      const std::string child_name(key.str());
      const std::string path = prefix_ + name + "." + child_name;
      if (!child.is_table())
        Fail(child, (name + ("." + child_name)).c_str(), fmt::format("a table [{}]", path));
      ParseVisitor nested(document_, file_, child.as_table(), path + ".");
      fields(child_name, nested);
      nested.RejectUnknownKeys();
    }
  }

  void Elements(const char* name, size_t present, const char*, const ElementFn& element) override {
    const toml::node* node = Get(name);
    if (node == nullptr) {
      for (size_t i = 0; i < present; ++i) element(i, nullptr, nullptr);
      return;
    }
    const char* expected = "a list of names or {name = ...} tables";
    if (!node->is_array()) Fail(*node, name, expected);
    size_t i = 0;
    for (const toml::node& child : *node->as_array()) {
      if (const auto* s = child.as_string()) {
        const std::string shorthand = s->get();
        element(i, &shorthand, nullptr);
      } else if (const toml::table* t = child.as_table()) {
        ParseVisitor nested(document_, file_, t, fmt::format("{}{}[{}].", prefix_, name, i));
        element(i, nullptr, &nested);
        nested.RejectUnknownKeys();
      } else {
        Fail(child, name, expected);
      }
      ++i;
    }
  }

 private:
  const toml::node* Get(const char* name) {
    known_.push_back(name);
    return table_->get(name);
  }

  // "file:line: ", or "--set a.b: " for a value that came from the command line.
  std::string Where(const toml::node& node, const std::string& name) const {
    for (const std::string& path : document_.overrides) {
      const std::string full = prefix_ + name;
      if (path == full || path.starts_with(full + ".")) return fmt::format("--set {}: ", path);
    }
    return fmt::format("{}:{}: ", file_, node.source().begin.line);
  }

  [[noreturn]] void Fail(const toml::node& node, const char* name,
                         const std::string& expected) const {
    throw Error(ErrorCode::kUsage,
                Where(node, name) + fmt::format("`{}{}` is {}, expected {}", prefix_, name,
                                                Describe(node), expected));
  }

  int64_t AsInt(const toml::node& node, const char* name, IntRange range) const {
    std::string expected = "a whole number";
    if (range.min != IntRange{}.min && range.max != IntRange{}.max)
      expected = fmt::format("a whole number from {} to {}", range.min, range.max);
    else if (range.min != IntRange{}.min)
      expected = fmt::format("a whole number, at least {}", range.min);
    int64_t x = 0;
    if (const auto* i = node.as_integer()) {
      x = i->get();
    } else if (const auto* d = node.as_floating_point();
               d != nullptr && d->get() == std::floor(d->get()) && std::abs(d->get()) < 9e18) {
      x = static_cast<int64_t>(d->get());  // 1e6
    } else {
      Fail(node, name, expected);
    }
    if (x < range.min || x > range.max) Fail(node, name, expected);
    return x;
  }

  double AsDouble(const toml::node& node, const char* name) const {
    if (const auto* i = node.as_integer()) return static_cast<double>(i->get());
    if (const auto* d = node.as_floating_point(); d != nullptr && std::isfinite(d->get()))
      return d->get();
    Fail(node, name, "a finite number");
  }

  std::string AsString(const toml::node& node, const char* name) const {
    if (const auto* s = node.as_string()) return s->get();
    Fail(node, name, "a string");
  }

  template <typename T, typename F>
  void ForEach(const char* name, std::vector<T>* value, F convert) {
    const toml::node* node = Get(name);
    if (node == nullptr) return;
    value->clear();
    if (const toml::array* array = node->as_array()) {
      for (const toml::node& child : *array) value->push_back(convert(child));
    } else {
      value->push_back(convert(*node));
    }
  }

  const ConfigFile::Document& document_;
  const std::string& file_;
  const toml::table* table_;
  const std::string prefix_;
  std::vector<std::string> known_;
};

// The value of --set: TOML where it reads as TOML, a plain string where it does not.
toml::table ParseOverride(const std::string& path, const std::string& value) {
  try {
    return toml::parse(fmt::format("{} = {}", path, value));
  } catch (const toml::parse_error&) {
  }
  std::string escaped;
  for (char c : value) {
    if (c == '"' || c == '\\') escaped += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      escaped += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      escaped += c;
  }
  try {
    return toml::parse(fmt::format("{} = \"{}\"", path, escaped));
  } catch (const toml::parse_error& e) {
    throw Error(ErrorCode::kUsage, fmt::format("--set {}={}: {}; expected --set key.name=value",
                                               path, value, e.description()));
  }
}

void Overlay(toml::table& onto, toml::table&& from) {
  for (auto&& [key, node] : from) {
    toml::node* old = onto.get(key.str());
    if (old != nullptr && old->is_table() && node.is_table())
      Overlay(*old->as_table(), std::move(*node.as_table()));
    else
      onto.insert_or_assign(key.str(), std::move(node));
  }
}

}  // namespace

ConfigFile::ConfigFile() : document_(std::make_unique<Document>()) {}
ConfigFile::~ConfigFile() = default;
ConfigFile::ConfigFile(ConfigFile&&) noexcept = default;
ConfigFile& ConfigFile::operator=(ConfigFile&&) noexcept = default;

ConfigFile ConfigFile::Load(const std::string& path) {
  std::string text;
  try {
    text = ReadWholeFile(PosixEnv(), path);
  } catch (const Error& e) {
    throw Error(ErrorCode::kUsage, e.what());
  }
  return Parse(text, path);
}

ConfigFile ConfigFile::Parse(std::string_view text, const std::string& name) {
  ConfigFile file;
  file.name_ = name;
  try {
    file.document_->root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    throw Error(ErrorCode::kUsage, fmt::format("{}:{}: {}", name, e.source().begin.line,
                                               std::string(e.description())));
  }
  return file;
}

void ConfigFile::Set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(
        ErrorCode::kUsage,
        fmt::format("--set {}: expected key.name=value, e.g. --set train.batch=1024", assignment));
  const std::string path = assignment.substr(0, equals);
  Overlay(document_->root, ParseOverride(path, assignment.substr(equals + 1)));
  document_->overrides.insert(path);
}

void ConfigFile::Read(const std::function<void(ConfigVisitor&)>& visit) const {
  ParseVisitor visitor(*document_, name_, &document_->root, "");
  visit(visitor);
  visitor.RejectUnknownKeys();
}

std::string NearestName(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names) {
    // Edit distance, one row at a time.
    std::vector<size_t> row(name.size() + 1);
    for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= name.size(); ++j) {
        const size_t substitute = diagonal + (word[i - 1] != name[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row[name.size()] < best_distance) {
      best_distance = row[name.size()];
      best = name;
    }
  }
  return best;
}

bool ParseBytes(std::string_view text, int64_t* bytes) {
  size_t i = 0;
  while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) || text[i] == '.'))
    ++i;
  if (i == 0) return false;
  double number = 0;
  try {
    size_t used = 0;
    number = std::stod(std::string(text.substr(0, i)), &used);
    if (used != i) return false;
  } catch (const std::exception&) {
    return false;
  }
  while (i < text.size() && text[i] == ' ') ++i;
  std::string unit(text.substr(i));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  static constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},       {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
      {"tb", 1e12},  {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40},
      {"k", 0x1p10}, {"m", 0x1p20},   {"g", 0x1p30},   {"t", 0x1p40}};
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double value = number * factor;
    if (value >= 9e18) return false;
    *bytes = static_cast<int64_t>(value);
    return true;
  }
  return false;
}

}  // namespace terrace
