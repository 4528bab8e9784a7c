#include "data/open_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "data/ordered_reader.h"
#include "data/shuffle_buffer.h"
#include "data/stream_position.h"
#include "data/synthetic.h"
#include "data/text_producer.h"

namespace terrace {
namespace {

// How much input there is, as far as it is known beforehand; -1: not known.
struct InputSize {
  int64_t bytes = -1;
  int64_t examples = -1;
};

class ExampleStream : public DataStream {
 public:
  ExampleStream(std::unique_ptr<ChunkProducer> producer, InputSize size, int threads,
                int64_t max_examples, const StreamKind& kind, const std::vector<InputFile>& files,
                const StreamPosition& start, std::shared_ptr<std::atomic<bool>> cancelled = {})
      : cancelled_(std::move(cancelled)),
        size_(size),
        max_examples_(max_examples),
        shape_(producer->shape()),
        positions_(kind, files),
        delivered_(start.delivered),
        reader_(std::move(producer), threads, kind.shuffle.examples, start.block.before),
        buffer_(&reader_, kind.shuffle) {
    if (!buffer_.GoTo(start.block))
      throw Error(ErrorCode::kUsage,
                  fmt::format("{} has changed since the position was saved: it has fewer examples; "
                              "restore it as it was, or train from the start",
                              PartName(kind.part)));
    Publish(start.delivered);
  }

  ~ExampleStream() override {
    if (cancelled_ != nullptr) *cancelled_ = true;
  }

  const BatchShape& shape() const override { return shape_; }

  bool Next(int64_t size, Batch* batch) override {
    TERRACE_CHECK(size > 0);
    if (batch->groups.size() == shape_.group_slots.size())
      ClearBatch(batch);
    else
      *batch = MakeBatch(shape_);
    const int64_t before = delivered_.load(std::memory_order_relaxed);
    if (max_examples_ >= 0) size = std::min(size, max_examples_ - before);
    while (batch->examples < size && buffer_.Take(size - batch->examples, batch) > 0) {
    }
    Publish(before + batch->examples);
    return batch->examples > 0;
  }

  int64_t skipped_rows() const override { return skipped_rows_.load(std::memory_order_relaxed); }

  double progress() const override {
    const auto delivered = static_cast<double>(delivered_.load(std::memory_order_relaxed));
    if (max_examples_ == 0 || size_.bytes == 0 || size_.examples == 0) return 1;
    // Of the limits on bytes and on examples the one that is nearer counts.
    double share = -1;
    if (max_examples_ > 0) share = delivered / static_cast<double>(max_examples_);
    if (size_.examples > 0)
      share = std::max(share, delivered / static_cast<double>(size_.examples));
    if (size_.bytes > 0)
      share = std::max(share,
                       bytes_.load(std::memory_order_relaxed) / static_cast<double>(size_.bytes));
    return std::min(1.0, share);
  }

  int64_t buffer_bytes() const override { return reader_.chunk_bytes() + buffer_.order_bytes(); }

  int64_t total_examples() const override {
    if (size_.examples < 0) return -1;
    return max_examples_ < 0 ? size_.examples : std::min(size_.examples, max_examples_);
  }

  std::string position() const override {
    return positions_.Write(delivered_.load(std::memory_order_relaxed), buffer_.position());
  }

 private:
  void Publish(int64_t delivered) {
    delivered_.store(delivered, std::memory_order_relaxed);
    bytes_.store(buffer_.bytes_taken(), std::memory_order_relaxed);
    skipped_rows_.store(reader_.delivered().skipped_rows, std::memory_order_relaxed);
  }

  const std::shared_ptr<std::atomic<bool>> cancelled_;
  const InputSize size_;
  const int64_t max_examples_;
  const BatchShape shape_;
  const PositionWriter positions_;
  // Written by Next, read by whoever shows progress.
  std::atomic<int64_t> delivered_;
  std::atomic<double> bytes_{0};
  std::atomic<int64_t> skipped_rows_{0};
  OrderedReader reader_;
  ShuffleBuffer buffer_;
};

std::vector<std::string> ExpandPaths(Env& env, const std::vector<std::string>& patterns,
                                     DataPart part) {
  if (patterns.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("{} is empty; name the files to read, for example --set {}=ads.tsv",
                            PartName(part), PartName(part)));
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    const std::vector<std::string> found =
        pattern == "-" ? std::vector<std::string>{pattern} : env.Glob(pattern);
    if (found.empty())
      throw Error(ErrorCode::kUsage,
                  fmt::format("{}: no file matches \"{}\"; check the pattern and "
                              "the current directory",
                              PartName(part), pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

// Also finds out, before anything is read, that a file is not there.
std::vector<InputFile> FindFiles(Env& env, const std::vector<std::string>& paths) {
  std::vector<InputFile> files;
  for (const std::string& path : paths) files.push_back({path, env.FileSize(path)});
  return files;
}

int64_t TotalBytes(const std::vector<InputFile>& files) {
  int64_t total = 0;
  for (const InputFile& file : files) total = file.bytes < 0 || total < 0 ? -1 : total + file.bytes;
  return total;
}

}  // namespace

std::unique_ptr<DataStream> OpenData(Env& env, const DataConfig& config, const FeatureSpec& spec,
                                     const OpenDataOptions& options) {
  const bool train = options.part == DataPart::kTrain;
  const ShuffleOptions shuffle{train ? config.shuffle : 0, options.seed, options.epoch};
  const StreamKind kind{config.format, options.part, shuffle};
  const auto threads = static_cast<int>(config.threads);
  StreamPosition start;
  if (!options.position.empty()) start = ParsePosition(options.position);
  if (config.format == DataFormat::kSynthetic) {
    const SyntheticConfig& synthetic = config.synthetic;
    const InputSize size{-1, train ? synthetic.train_examples : synthetic.test_examples};
    if (!options.position.empty()) CheckPosition(start, kind, {});
    return std::make_unique<ExampleStream>(
        MakeSyntheticProducer(synthetic, spec, options.part, SyntheticKeys::kHashed,
                              start.block.chunk.offset),
        size, threads, options.max_examples, kind, std::vector<InputFile>{}, start);
  }
  const std::vector<std::string> paths =
      ExpandPaths(env, train ? config.train : config.test, options.part);
  if (options.epoch > 0 && std::find(paths.begin(), paths.end(), "-") != paths.end())
    throw Error(ErrorCode::kUsage, fmt::format("{} is standard input, which can be read only once; "
                                               "set train.epochs = 1, or name a file",
                                               PartName(options.part)));
  const std::vector<InputFile> files = FindFiles(env, paths);
  if (!options.position.empty()) CheckPosition(start, kind, files);
  return std::make_unique<ExampleStream>(
      MakeTextProducer(env, paths, config, spec,
                       {options.block_bytes, start.block.chunk, options.labels, options.cancelled}),
      InputSize{TotalBytes(files), -1}, threads, options.max_examples, kind, files, start,
      options.cancelled);
}

}  // namespace terrace
