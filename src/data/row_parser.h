// From lines of text to examples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/bad_row.h"
#include "data/batch.h"
#include "data/block_reader.h"
#include "data/data_config.h"
#include "data/features.h"

namespace terrace {

// Constant after construction: several threads may parse at once.
class RowParser {
 public:
  virtual ~RowParser() = default;
  // Appends the examples of the block's lines to an empty chunk. Empty lines are passed over. A bad
  // row goes to `bad_rows` and leaves nothing in the chunk. Where labels are not wanted, both leave
  // an example with the label kNoExample.
  virtual void Parse(const TextBlock& block, BadRowPolicy* bad_rows, Batch* chunk) const = 0;
};

// For criteo, csv and tsv. `columns` are the names in the order of the file, which `file` names in
// messages. Throws Error(kData) if a column that the features need is not there. `labels`: as
// OpenDataOptions has it.
std::unique_ptr<RowParser> MakeDelimitedParser(const DataConfig& config, const FeatureSpec& spec,
                                               const std::vector<std::string>& columns,
                                               const std::string& file, bool labels = true);
// For libsvm and libffm.
std::unique_ptr<RowParser> MakeSparseParser(const DataConfig& config, const FeatureSpec& spec,
                                            bool labels = true);

// The character between columns; csv also has quotes.
char Delimiter(const DataConfig& config);

// What the first checks of any line find: true if it may be parsed further.
bool CheckLine(std::string_view line, int64_t max_line_bytes, BadRow* bad);

}  // namespace terrace
