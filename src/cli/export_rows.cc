#include "cli/export_rows.h"

#include <fmt/format.h>

#include <iterator>

#include "base/error.h"
#include "cli/npy_file.h"

namespace terrace {
namespace {

// One block of rows.
struct Block {
  std::span<const uint64_t> keys;
  std::span<const float> numbers;  // [rows, format.numbers]
  std::span<const RowStats> stats;
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void Add(const Block& block) = 0;
  virtual std::vector<std::string> Commit(int64_t rows) = 0;  // returns the files
};

class TsvSink : public RowSink {
 public:
  TsvSink(Env& env, const std::string& path, const RowLayout& layout, bool state)
      : path_(path), layout_(layout), state_(state), file_(env, path) {
    std::string header = "key";
    for (int i = 0; i < layout.dim; ++i) header += fmt::format("\tw{}", i);
    if (layout.linear > 0) header += "\tlinear";
    for (int i = 0; state && i < layout.state; ++i) header += fmt::format("\tstate{}", i);
    if (state && layout.counts) header += "\tshow\tclick\tseen";
    file_.Append(header + "\n");
  }

  void Add(const Block& block) override {
    text_.clear();
    const auto width = static_cast<size_t>(layout_.format.numbers);
    const auto columns = static_cast<size_t>(state_ ? layout_.format.numbers : layout_.weights);
    const auto out = std::back_inserter(text_);
    for (size_t i = 0; i < block.keys.size(); ++i) {
      fmt::format_to(out, "{}", block.keys[i]);
      for (const float number : block.numbers.subspan(i * width, columns))
        fmt::format_to(out, "\t{}", number);
      if (state_ && layout_.counts) {
        const RowStats& stats = block.stats[i];
        fmt::format_to(out, "\t{}\t{}\t{}", stats.show, stats.click, stats.seen);
      }
      text_ += '\n';
    }
    file_.Append(text_);
  }

  std::vector<std::string> Commit(int64_t) override {
    file_.Commit();
    return {path_};
  }

 private:
  const std::string path_;
  const RowLayout layout_;
  const bool state_;
  AtomicFile file_;
  std::string text_;
};

class NpySink : public RowSink {
 public:
  NpySink(Env& env, const std::string& path, const RowLayout& layout, bool state)
      : layout_(layout) {
    const std::string stem = path.substr(0, path.size() - 4);
    weights_ = Make(env, path, "'<f4'", layout.weights);
    if (state && layout.state > 0) state_ = Make(env, stem + ".state.npy", "'<f4'", layout.state);
    if (state && layout.counts)
      stats_ =
          Make(env, stem + ".stats.npy", "[('show', '<f4'), ('click', '<f4'), ('seen', '<u4')]", 0);
    keys_ = Make(env, stem + ".keys.npy", "'<u8'", 0);
  }

  void Add(const Block& block) override {
    const auto width = static_cast<size_t>(layout_.format.numbers);
    const auto weights = static_cast<size_t>(layout_.weights);
    for (size_t i = 0; i < block.keys.size(); ++i) {
      const float* const row = &block.numbers[i * width];
      weights_->Append(row, weights * sizeof(float));
      if (state_) state_->Append(row + weights, (width - weights) * sizeof(float));
    }
    if (stats_) stats_->Append(block.stats.data(), block.stats.size_bytes());
    keys_->Append(block.keys.data(), block.keys.size_bytes());
  }

  std::vector<std::string> Commit(int64_t rows) override {
    weights_->Commit(rows);
    if (state_) state_->Commit(rows);
    if (stats_) stats_->Commit(rows);
    keys_->Commit(rows);
    return files_;
  }

 private:
  std::unique_ptr<NpyFile> Make(Env& env, const std::string& path, const std::string& type,
                                int64_t columns) {
    files_.push_back(path);
    return std::make_unique<NpyFile>(env, path, type, columns);
  }

  const RowLayout layout_;
  std::vector<std::string> files_;
  std::unique_ptr<NpyFile> weights_, state_, stats_, keys_;
};

std::unique_ptr<RowSink> MakeSink(Env& env, const ExportOptions& options, const RowLayout& layout) {
  if (options.to.ends_with(".tsv"))
    return std::make_unique<TsvSink>(env, options.to, layout, options.state);
  if (options.to.ends_with(".npy"))
    return std::make_unique<NpySink>(env, options.to, layout, options.state);
  throw Error(ErrorCode::kUsage,
              fmt::format("--to {}: rows are written as text or for numpy: name a file that ends "
                          "with .tsv or .npy",
                          options.to));
}

}  // namespace

ExportReport ExportRows(const SnapshotView& view, const ExportOptions& options) {
  const std::unique_ptr<DiskStore> store = view.OpenTable(options.table);
  RowDecoder decoder(view.Schema(options.table), store->row_bytes());
  const auto sink = MakeSink(view.snapshot().env(), options, decoder.layout());
  ExportReport report;
  std::vector<RowStats> stats;
  store->Scan(0, store->partitions(), [&](std::span<const uint64_t> keys, const std::byte* rows) {
    stats.clear();
    for (size_t i = 0; i < keys.size(); ++i)
      stats.push_back(decoder.Stats(rows + i * store->row_bytes()));
    sink->Add({keys, decoder.Decode(rows, keys.size()), stats});
    report.rows += static_cast<int64_t>(keys.size());
    if (options.progress) options.progress(report.rows);
  });
  report.files = sink->Commit(report.rows);
  return report;
}

}  // namespace terrace
