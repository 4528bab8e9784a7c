// Typed configuration, declared once.
//
// A config struct has `void Visit(ConfigVisitor& v)` that names each of its fields with a default
// (the field's initial value), a legal range and one line of documentation. The same Visit parses
// TOML, rejects unknown keys with the nearest valid name, and prints every value with its comment.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace terrace {

struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
struct DoubleRange {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};

class ConfigVisitor {
 public:
  virtual ~ConfigVisitor() = default;

  virtual void Bool(const char* name, bool* value, const char* doc) = 0;
  virtual void Int(const char* name, int64_t* value, IntRange range, const char* doc) = 0;
  virtual void Double(const char* name, double* value, DoubleRange range, const char* doc) = 0;
  virtual void String(const char* name, std::string* value, const char* doc) = 0;
  // "64KiB", "1.5 GB", or a number of bytes.
  virtual void Bytes(const char* name, int64_t* value, const char* doc) = 0;
  // Lists; a single value is taken as a list of one.
  virtual void Strings(const char* name, std::vector<std::string>* value, const char* doc) = 0;
  virtual void Ints(const char* name, std::vector<int64_t>* value, IntRange range,
                    const char* doc) = 0;
  virtual void Doubles(const char* name, std::vector<double>* value, const char* doc) = 0;

  // One of `names`; the enum's values are 0, 1, ... in that order.
  template <typename E>
  void Enum(const char* name, E* value, const std::vector<const char*>& names, const char* doc) {
    int index = static_cast<int>(*value);
    Choice(name, &index, names, doc);
    *value = static_cast<E>(index);
  }
  // A sub-table [name]. T has Visit.
  template <typename T>
  void Table(const char* name, T* value, const char* doc) {
    SubTable(name, doc, [value](ConfigVisitor& v) { value->Visit(v); });
  }
  // Named tables [name.KEY]. T has Visit.
  template <typename T>
  void Map(const char* name, std::map<std::string, T>* value, const char* doc) {
    std::vector<std::string> keys;
    for (const auto& [key, unused] : *value) keys.push_back(key);
    NamedTables(name, keys, doc,
                [value](const std::string& key, ConfigVisitor& v) { (*value)[key].Visit(v); });
  }
  // A list whose elements are tables, or strings that stand for {name = "..."}. T has Visit and a
  // member `std::string name`.
  template <typename T>
  void List(const char* name, std::vector<T>* value, const char* doc) {
    std::vector<T> old;
    old.swap(*value);
    Elements(name, old.size(), doc, [&](size_t i, const std::string* shorthand, ConfigVisitor* v) {
      if (value->size() <= i) value->push_back(i < old.size() ? old[i] : T{});
      if (shorthand != nullptr) (*value)[i].name = *shorthand;
      if (v != nullptr) (*value)[i].Visit(*v);
    });
  }

 protected:
  using ElementFn = std::function<void(size_t, const std::string* shorthand, ConfigVisitor*)>;
  virtual void Choice(const char* name, int* index, const std::vector<const char*>& names,
                      const char* doc) = 0;
  virtual void SubTable(const char* name, const char* doc,
                        const std::function<void(ConfigVisitor&)>& fields) = 0;
  virtual void NamedTables(
      const char* name, const std::vector<std::string>& present, const char* doc,
      const std::function<void(const std::string&, ConfigVisitor&)>& fields) = 0;
  virtual void Elements(const char* name, size_t present, const char* doc,
                        const ElementFn& element) = 0;
};

// A parsed TOML document, with what --set laid over it.
class ConfigFile {
 public:
  // Throws Error(kUsage) with file and line.
  static ConfigFile Load(const std::string& path);
  static ConfigFile Parse(std::string_view text, const std::string& name);
  ~ConfigFile();
  ConfigFile(ConfigFile&&) noexcept;
  ConfigFile& operator=(ConfigFile&&) noexcept;

  // "train.batch=1024". The value is read as TOML, or as a string if it is not TOML.
  void Set(const std::string& assignment);

  // Fills a config through `visit`; throws on the first unknown key or bad value. Lists and maps
  // that the file names replace their defaults.
  void Read(const std::function<void(ConfigVisitor&)>& visit) const;

  const std::string& name() const { return name_; }

  struct Document;

 private:
  ConfigFile();
  std::string name_;
  std::unique_ptr<Document> document_;
};

// The config as commented TOML that ConfigFile::Parse reads back to the same values.
std::string PrintConfig(const std::function<void(ConfigVisitor&)>& visit);

// Every key with its full name and its value as TOML; of a list each element, by its name.
using ConfigValues = std::map<std::string, std::string>;
ConfigValues ListConfig(const std::function<void(ConfigVisitor&)>& visit);

// Of `names` the one nearest to `word` by edit distance, or "" if none is near.
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

// "1.5 GiB" <-> bytes. Parse returns false on anything else.
bool ParseBytes(std::string_view text, int64_t* bytes);

}  // namespace terrace
