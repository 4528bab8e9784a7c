#include "data/text_producer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/bad_row.h"
#include "data/block_reader.h"
#include "data/csv_cells.h"
#include "data/row_parser.h"

namespace terrace {
namespace {

struct TextWork : ChunkWork {
  std::unique_ptr<TextBlock> block;
  std::shared_ptr<const RowParser> parser;
};

class TextProducer : public ChunkProducer {
 public:
  TextProducer(Env& env, const std::vector<std::string>& paths, const DataConfig& config,
               const FeatureSpec& spec, const TextOptions& options)
      : config_(config),
        spec_(spec),
        labels_(options.labels),
        has_header_(config.format == DataFormat::kCsv || config.format == DataFormat::kTsv),
        blocks_(env, paths,
                {options.block_bytes, static_cast<size_t>(config.max_line_bytes), !options.labels,
                 options.cancelled}),
        start_(options.start) {
    if (config.format == DataFormat::kCriteo)
      parser_ = MakeDelimitedParser(config_, spec_, CriteoColumns(), "criteo", labels_);
    else if (!has_header_)
      parser_ = MakeSparseParser(config_, spec_, labels_);
  }

  const BatchShape& shape() const override { return spec_.shape; }

  std::unique_ptr<ChunkWork> Claim() override {
    if (!started_) Start();
    auto work = std::make_unique<TextWork>();
    work->block = blocks_.Next();
    if (work->block == nullptr) return nullptr;
    work->begin = work->block->place;
    if (work->block->starts_file) StartFile(work->block.get());
    work->parser = parser_;
    return work;
  }

  int64_t bytes_claimed() const override { return blocks_.bytes_read(); }

  void Produce(ChunkWork& work, Batch* chunk) override {
    const auto& text = static_cast<const TextWork&>(work);
    BadRowPolicy bad_rows(config_.on_bad_row);
    text.parser->Parse(*text.block, &bad_rows, chunk);
    work.skipped_rows = bad_rows.skipped_rows();
  }

 private:
  void Start() {
    started_ = true;
    const std::unique_ptr<TextBlock> first = blocks_.GoTo(start_);
    if (has_header_ && first != nullptr) ReadHeader(first.get());
  }

  void StartFile(TextBlock* block) {
    if (has_header_) ReadHeader(block);
    if (!labels_ && config_.format == DataFormat::kCriteo) CountColumns(*block);
  }

  // Columns are looked up in each file by name; files with the same header share a parser.
  void ReadHeader(TextBlock* block) {
    UseColumns(SplitHeader(block->TakeLine(), *block->file), *block->file);
  }

  // Files that are to be scored have a column for labels or not: their first line tells.
  void CountColumns(const TextBlock& block) {
    const std::string_view text = block.text();
    const std::string_view line = text.substr(0, text.find('\n'));
    std::vector<std::string> columns = CriteoColumns();
    const auto found = std::count(line.begin(), line.end(), Delimiter(config_)) + 1;
    if (found + 1 == static_cast<std::ptrdiff_t>(columns.size())) columns.erase(columns.begin());
    UseColumns(std::move(columns), *block.file);
  }

  void UseColumns(std::vector<std::string> columns, const std::string& file) {
    if (parser_ != nullptr && columns == columns_) return;
    parser_ = MakeDelimitedParser(config_, spec_, columns, file, labels_);
    columns_ = std::move(columns);
  }

  std::vector<std::string> SplitHeader(std::string_view line, const std::string& file) const {
    BadRow bad;
    if (!CheckLine(line, config_.max_line_bytes, &bad))
      throw Error(ErrorCode::kData,
                  file + ":1: the header has " + bad.found_what + ", expected " + bad.expected);
    std::vector<std::string> columns;
    if (config_.format == DataFormat::kCsv) {
      CsvCells cells;
      if (!cells.Split(line, Delimiter(config_), &bad))
        throw Error(ErrorCode::kData, file + ":1: the header has " + QuoteForMessage(bad.found) +
                                          ", expected " + bad.expected);
      for (size_t i = 0; i < cells.size(); ++i) columns.emplace_back(cells[i]);
      return columns;
    }
    for (size_t at = 0;;) {
      const size_t end = std::min(line.find(Delimiter(config_), at), line.size());
      columns.emplace_back(line.substr(at, end - at));
      if (end == line.size()) return columns;
      at = end + 1;
    }
  }

  const DataConfig config_;
  const FeatureSpec spec_;
  const bool labels_;
  const bool has_header_;
  // Used by Claim, whose calls are serialised.
  BlockReader blocks_;
  std::vector<std::string> columns_;
  std::shared_ptr<const RowParser> parser_;
  const ChunkPlace start_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<ChunkProducer> MakeTextProducer(Env& env, const std::vector<std::string>& paths,
                                                const DataConfig& config, const FeatureSpec& spec,
                                                const TextOptions& options) {
  return std::make_unique<TextProducer>(env, paths, config, spec, options);
}

}  // namespace terrace
