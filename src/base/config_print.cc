// PrintConfig: the same Visit functions that parse a config, writing it as commented TOML.
#include <fmt/format.h>

#include <cmath>

#include "base/config.h"

namespace terrace {
namespace {

std::string Quote(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string Number(double x) {
  std::string s = fmt::format("{}", x);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

template <typename T, typename F>
std::string ListText(const std::vector<T>& items, F print) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + print(items[i]);
  return out + "]";
}

// Collects `key = value` pairs: of a table as lines with comments, of a list element inline.
class PrintVisitor : public ConfigVisitor {
 public:
  PrintVisitor(std::string path, bool inline_table)
      : path_(std::move(path)), inline_(inline_table) {}

  // The table's own values first, as TOML demands, then its sub-tables.
  std::string Text() const { return lines_ + tables_; }
  ConfigValues TakeValues() { return std::move(values_); }

  void Bool(const char* name, bool* value, const char* doc) override {
    Line(name, *value ? "true" : "false", doc);
  }
  void Int(const char* name, int64_t* value, IntRange, const char* doc) override {
    Line(name, fmt::format("{}", *value), doc);
  }
  void Double(const char* name, double* value, DoubleRange, const char* doc) override {
    Line(name, Number(*value), doc);
  }
  void String(const char* name, std::string* value, const char* doc) override {
    Line(name, Quote(*value), doc);
  }
  void Bytes(const char* name, int64_t* value, const char* doc) override {
    Line(name, fmt::format("{}", *value), doc);
  }
  void Strings(const char* name, std::vector<std::string>* value, const char* doc) override {
    Line(name, ListText(*value, Quote), doc);
  }
  void Ints(const char* name, std::vector<int64_t>* value, IntRange, const char* doc) override {
    Line(name, ListText(*value, [](int64_t x) { return fmt::format("{}", x); }), doc);
  }
  void Doubles(const char* name, std::vector<double>* value, const char* doc) override {
    Line(name, ListText(*value, Number), doc);
  }

 protected:
  void Choice(const char* name, int* index, const std::vector<const char*>& names,
              const char* doc) override {
    std::string all;
    for (const char* n : names) all += (all.empty() ? "" : " | ") + std::string(n);
    Line(name, Quote(names[*index]), fmt::format("{} ({})", doc, all).c_str());
  }

  void SubTable(const char* name, const char* doc,
                const std::function<void(ConfigVisitor&)>& fields) override {
    PrintVisitor nested(path_ + name + ".", false);
    fields(nested);
    values_.merge(nested.values_);
    tables_ += fmt::format("\n# {}\n[{}{}]\n{}", doc, path_, name, nested.Text());
  }

  void NamedTables(const char* name, const std::vector<std::string>& present, const char* doc,
                   const std::function<void(const std::string&, ConfigVisitor&)>& fields) override {
    for (const std::string& key : present) {
      const std::string quoted =
          key.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
                      std::string::npos &&
                  !key.empty()
              ? key
              : Quote(key);
      PrintVisitor nested(path_ + name + "." + quoted + ".", false);
      fields(key, nested);
      values_.merge(nested.values_);
      tables_ += fmt::format("\n# {}\n[{}{}.{}]\n{}", doc, path_, name, quoted, nested.Text());
    }
  }

  void Elements(const char* name, size_t present, const char* doc,
                const ElementFn& element) override {
    std::string out = "[";
    for (size_t i = 0; i < present; ++i) {
      PrintVisitor nested("", true);
      element(i, nullptr, &nested);
      values_[path_ + name + "." + nested.element_] = nested.lines_;
      out += fmt::format("\n  {{{}}},", nested.lines_);
    }
    Line(name, out + (present > 0 ? "\n]" : "]"), doc);
    values_.erase(path_ + name);  // its elements are there
  }

 private:
  void Line(const char* name, const std::string& value, const char* doc) {
    values_[path_ + name] = value;
    if (element_.empty()) element_ = value;
    if (inline_)
      lines_ += fmt::format("{}{} = {}", lines_.empty() ? "" : ", ", name, value);
    else if (value.size() > 40)
      lines_ += fmt::format("# {}\n{} = {}\n", doc, name, value);
    else
      lines_ += fmt::format("{:<36} # {}\n", fmt::format("{} = {}", name, value), doc);
  }

  const std::string path_;
  const bool inline_;
  std::string lines_;
  std::string tables_;
  std::string element_;  // the first value: a list element's name
  ConfigValues values_;
};

}  // namespace

std::string PrintConfig(const std::function<void(ConfigVisitor&)>& visit) {
  PrintVisitor visitor("", false);
  visit(visitor);
  return visitor.Text();
}

ConfigValues ListConfig(const std::function<void(ConfigVisitor&)>& visit) {
  PrintVisitor visitor("", false);
  visit(visitor);
  return visitor.TakeValues();
}

}  // namespace terrace
