// Synthetic examples as lines of text.
//
// | format | label | value of a slot | dense column |
// |---|---|---|---|
// | criteo | 0 or 1 | its rank | a count: round(e^(z + 3) - 1), so that `log` gives about z + 3 |
// | csv, tsv | under a header | ranks joined by "|" | z, four decimals |
// | libsvm | | index slot * features + rank + 1, value 1 | indices after those, value z |
// | libffm | | field slot, index rank, value 1 | fields after those, index 0, value z |
#pragma once

#include <string>

#include "data/batch.h"
#include "data/data_config.h"

namespace terrace {

// Constant after construction; any thread may append.
class ExampleText {
 public:
  // Throws Error(kUsage) for a shape that the format cannot hold.
  ExampleText(DataFormat format, const SyntheticConfig& config);

  // The line before all others, or nothing.
  std::string Header() const;
  // Appends the lines of a batch whose one key group holds ranks.
  void Append(const Batch& batch, std::string* out) const;
  // The [data] section of a config that reads these files.
  std::string ReadingConfig() const;

 private:
  char* WriteCriteo(const Batch& batch, int64_t example, char* p) const;
  char* WriteDelimited(const Batch& batch, int64_t example, char* p) const;
  char* WriteSparse(const Batch& batch, int64_t example, char* p) const;

  const DataFormat format_;
  const int64_t slots_;
  const int64_t dense_;
  const uint64_t features_;
  const bool many_values_;
};

}  // namespace terrace
