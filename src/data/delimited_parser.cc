#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "data/chunk_writer.h"
#include "data/column_plan.h"
#include "data/csv_cells.h"
#include "data/number.h"
#include "data/row_parser.h"
#include "data/text_scan.h"

namespace terrace {
namespace {

// Text whose separators are found at once: small enough for the nearest cache with its index.
constexpr size_t kSegmentBytes = size_t{1} << 15;

// TextKey, where the compiler sees the hash function.
inline uint64_t InlineTextKey(uint64_t seed, const char* text, size_t size) {
  return XXH3_64bits_withSeed(text, size, seed);
}

// The cells of one row: cell j is text[bounds[j] + 1, bounds[j + 1]). In 32-bit arithmetic, where
// the first bound of a text is 2^32 - 1.
struct Cells {
  const char* text;
  const uint32_t* bounds;

  const char* begin(uint32_t j) const { return text + static_cast<uint32_t>(bounds[j] + 1); }
  size_t size(uint32_t j) const { return static_cast<uint32_t>(bounds[j + 1] - bounds[j] - 1); }
  std::string_view operator[](uint32_t j) const { return {begin(j), size(j)}; }
};

class DelimitedParser : public RowParser {
 public:
  DelimitedParser(const DataConfig& config, const FeatureSpec& spec,
                  const std::vector<std::string>& columns, const std::string& file, bool labels)
      : plan_(config, spec, columns, file, labels),
        labels_(labels),
        delimiter_(Delimiter(config)),
        quotes_(config.format == DataFormat::kCsv),
        max_line_bytes_(config.max_line_bytes) {}

  void Parse(const TextBlock& block, BadRowPolicy* bad_rows, Batch* chunk) const override;

 private:
  struct Scratch {
    std::vector<uint32_t> separators;
    std::vector<uint32_t> line_ends;
    CsvCells csv;
  };

  // `text` is whole lines, the first of them `first_line`. Returns the number of lines.
  int64_t ParseSegment(std::string_view text, const TextBlock& block, int64_t first_line,
                       BadRowPolicy* bad_rows, Scratch* scratch, ChunkWriter* writer) const;
  bool ParseQuotedLine(std::string_view line, CsvCells* cells, ChunkWriter* writer,
                       BadRow* bad) const;
  bool ParseRow(const Cells& cells, size_t columns, ChunkWriter* writer, BadRow* bad) const;
  bool ParseLabel(const Cells& cells, float* label, BadRow* bad) const;
  bool ParseDense(const Cells& cells, float* dense, BadRow* bad) const;
  bool ParseOthers(const Cells& cells, ChunkWriter* writer, BadRow* bad) const;
  bool ParseKeys(const Cells& cells, ChunkWriter* writer, BadRow* bad) const;
  bool AddValues(const SlotCell& slot, std::string_view text, ChunkWriter::Keys* keys,
                 BadRow* bad) const;
  bool AddValue(const SlotCell& slot, std::string_view value, ChunkWriter::Keys* keys,
                BadRow* bad) const;
  bool Refuse(uint32_t column, std::string_view found, std::string expected, BadRow* bad) const;

  const ColumnPlan plan_;
  const bool labels_;
  const char delimiter_;
  const bool quotes_;
  const int64_t max_line_bytes_;
};

void DelimitedParser::Parse(const TextBlock& block, BadRowPolicy* bad_rows, Batch* chunk) const {
  ChunkWriter writer(plan_.spec.shape, block.lines, chunk);
  Scratch scratch;
  std::string_view rest = block.text();
  int64_t line = block.first_line;
  while (!rest.empty()) {
    const size_t last = rest.find('\n', std::min(kSegmentBytes, rest.size()) - 1);
    line += ParseSegment(rest.substr(0, last + 1), block, line, bad_rows, &scratch, &writer);
    rest.remove_prefix(last + 1);
  }
  writer.Finish();
}

int64_t DelimitedParser::ParseSegment(std::string_view text, const TextBlock& block,
                                      int64_t first_line, BadRowPolicy* bad_rows, Scratch* scratch,
                                      ChunkWriter* writer) const {
  std::vector<uint32_t>& bounds = scratch->separators;
  std::vector<uint32_t>& line_ends = scratch->line_ends;
  if (line_ends.size() < text.size() + kScanSlack) {
    bounds.resize(1 + text.size() + kScanSlack);
    line_ends.resize(text.size() + kScanSlack);
  }
  bounds[0] = std::numeric_limits<uint32_t>::max();
  const SeparatorCount found = TERRACE_ISA_TABLE(kTextScanKernels)
                                   .find_separators(text.data(), text.size(), delimiter_,
                                                    bounds.data() + 1, line_ends.data());
  const bool any_nul = std::memchr(text.data(), 0, text.size()) != nullptr;
  const bool any_quote = quotes_ && std::memchr(text.data(), '"', text.size()) != nullptr;

  BadRow bad;
  uint32_t first = 0;  // index of the bound before the line's first cell
  for (size_t i = 0; i < found.lines; ++i) {
    const uint32_t last = line_ends[i] + 1;
    const uint32_t line_end = bounds[last];
    const char* const begin = text.data() + static_cast<uint32_t>(bounds[first] + 1);
    const std::string_view line =
        WithoutCr({begin, static_cast<size_t>(text.data() + line_end - begin)});
    if (!line.empty()) {
      bool good;
      if ((any_nul || static_cast<int64_t>(line.size()) > max_line_bytes_) &&
          !CheckLine(line, max_line_bytes_, &bad)) {
        good = false;
      } else if (any_quote && line.find('"') != std::string_view::npos) {
        good = ParseQuotedLine(line, &scratch->csv, writer, &bad);
      } else {
        bounds[last] = static_cast<uint32_t>(line.data() + line.size() - text.data());
        good = ParseRow({text.data(), bounds.data() + first}, last - first, writer, &bad);
        bounds[last] = line_end;
      }
      if (good) [[likely]] {
        writer->Commit();
      } else {
        bad_rows->Handle(*block.file, first_line + static_cast<int64_t>(i), bad);
        bad = BadRow();
        if (!labels_) writer->CommitNone();
      }
    } else if (!labels_) {
      writer->CommitNone();
    }
    first = last;
  }
  return static_cast<int64_t>(found.lines);
}

bool DelimitedParser::ParseQuotedLine(std::string_view line, CsvCells* cells, ChunkWriter* writer,
                                      BadRow* bad) const {
  if (cells->Split(line, delimiter_, bad))
    return ParseRow({cells->text(), cells->bounds()}, cells->size(), writer, bad);
  const auto column = static_cast<size_t>(bad->column);
  if (column < plan_.names.size()) bad->column_name = plan_.names[column];
  return false;
}

bool DelimitedParser::ParseRow(const Cells& cells, size_t columns, ChunkWriter* writer,
                               BadRow* bad) const {
  if (columns != plan_.names.size()) [[unlikely]] {
    bad->found_what = std::to_string(columns) + (columns == 1 ? " column" : " columns");
    bad->expected = std::to_string(plan_.names.size());
    return false;
  }
  return ParseLabel(cells, &writer->label(), bad) && ParseDense(cells, writer->dense(), bad) &&
         ParseOthers(cells, writer, bad) && ParseKeys(cells, writer, bad);
}

bool DelimitedParser::ParseLabel(const Cells& cells, float* label, BadRow* bad) const {
  if (!labels_) {
    *label = 0;
    return true;
  }
  const auto column = static_cast<uint32_t>(plan_.label);
  const std::string_view text = cells[column];
  if (text.size() == 1 && (text[0] == '0' || text[0] == '1')) {
    *label = static_cast<float>(text[0] - '0');
    return true;
  }
  double value;
  if (!ParseDouble(text, &value) || value < 0 || value > 1)
    return Refuse(column, text, "a label in [0, 1]", bad);
  *label = static_cast<float>(value);
  return true;
}

bool DelimitedParser::ParseDense(const Cells& cells, float* dense, BadRow* bad) const {
  for (const DenseCell& cell : plan_.dense) {
    const char* const text = cells.begin(cell.column);
    const size_t size = cells.size(cell.column);
    uint32_t number;
    double value;
    if (ParseUpTo8Digits(text, size, &number)) {
      if (number < cell.small.size()) {
        *dense++ = cell.small[number];
        continue;
      }
      value = number;
    } else if (size == 0) {
      *dense++ = cell.missing;
      continue;
    } else if (!ParseDouble({text, size}, &value)) {
      return Refuse(cell.column, {text, size}, ExpectedNumber({text, size}), bad);
    }
    *dense = cell.transform.Transform(value);
    if (!std::isfinite(*dense++))
      return Refuse(cell.column, {text, size}, "a number that a float can hold", bad);
  }
  return true;
}

bool DelimitedParser::ParseOthers(const Cells& cells, ChunkWriter* writer, BadRow* bad) const {
  if (plan_.weight >= 0) {
    const auto column = static_cast<uint32_t>(plan_.weight);
    double weight;
    if (!ParseDouble(cells[column], &weight) || weight < 0 ||
        weight > std::numeric_limits<float>::max())
      return Refuse(column, cells[column], "a finite weight >= 0", bad);
    writer->weight() = static_cast<float>(weight);
  }
  if (plan_.timestamp >= 0) {
    const auto column = static_cast<uint32_t>(plan_.timestamp);
    if (!ParseInt64(cells[column], &writer->timestamp()))
      return Refuse(column, cells[column], "a 64-bit integer", bad);
  }
  if (plan_.group >= 0)
    writer->group_id() = TextKey(plan_.group_seed, cells[static_cast<uint32_t>(plan_.group)]);
  return true;
}

bool DelimitedParser::ParseKeys(const Cells& cells, ChunkWriter* writer, BadRow* bad) const {
  for (size_t g = 0; g < plan_.groups.size(); ++g) {
    const std::vector<SlotCell>& slots = plan_.groups[g];
    ChunkWriter::Keys& keys = writer->Begin(g);
    for (size_t i = 0; i < slots.size();) {
      const SlotCell* const slot = &slots[i];
      if (slot->plain_run > 0) {
        keys.AddOneEach(slot->plain_run, [&](size_t j) {
          const uint32_t column = slot[j].column;
          return InlineTextKey(slot[j].seed, cells.begin(column), cells.size(column));
        });
        i += slot->plain_run;
        continue;
      }
      if (!AddValues(*slot, cells[slot->column], &keys, bad)) return false;
      keys.EndBag();
      ++i;
    }
  }
  return true;
}

bool DelimitedParser::AddValues(const SlotCell& slot, std::string_view text,
                                ChunkWriter::Keys* keys, BadRow* bad) const {
  bool any = false;
  if (slot.separator == 0) {
    any = !text.empty();
    if (any && !AddValue(slot, text, keys, bad)) return false;
  } else {
    keys->EnsureRoom(text.size() / 2 + 1);
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(slot.separator, at), text.size());
      if (end > at) {
        if (!AddValue(slot, text.substr(at, end - at), keys, bad)) return false;
        any = true;
      }
      at = end + 1;
    }
  }
  if (!any && slot.config->missing == MissingKey::kKey) keys->Add(InlineTextKey(slot.seed, "", 0));
  return true;
}

bool DelimitedParser::AddValue(const SlotCell& slot, std::string_view value,
                               ChunkWriter::Keys* keys, BadRow* bad) const {
  if (slot.config->bucket == Bucketing::kNone) {
    keys->Add(InlineTextKey(slot.seed, value.data(), value.size()));
    return true;
  }
  double number;
  if (!ParseDouble(value, &number)) return Refuse(slot.column, value, ExpectedNumber(value), bad);
  const int64_t bucket = slot.config->bucket == Bucketing::kLog
                             ? LogBucket(number)
                             : BoundaryBucket(slot.config->boundaries, number);
  keys->Add(IntegerKey(slot.seed, static_cast<uint64_t>(bucket)));
  return true;
}

bool DelimitedParser::Refuse(uint32_t column, std::string_view found, std::string expected,
                             BadRow* bad) const {
  bad->column = column;
  bad->column_name = plan_.names[column];
  bad->found = found;
  bad->expected = std::move(expected);
  return false;
}

}  // namespace

std::unique_ptr<RowParser> MakeDelimitedParser(const DataConfig& config, const FeatureSpec& spec,
                                               const std::vector<std::string>& columns,
                                               const std::string& file, bool labels) {
  return std::make_unique<DelimitedParser>(config, spec, columns, file, labels);
}

}  // namespace terrace
