#include "cli/data_gen.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/workers.h"
#include "cli/data_gen_text.h"
#include "data/synthetic.h"
#include "model/metrics.h"

namespace terrace {
namespace {

// Beyond this the best AUC is computed from buckets.
constexpr int64_t kExactAucExamples = 20'000'000;
// Chunks that a thread makes between two turns of writing.
constexpr int kChunksPerThread = 4;

// A file that appears whole or not at all, or standard output.
class Output {
 public:
  Output(Env& env, const std::string& path) {
    if (path != "-") file_.emplace(env, path);
  }
  void Append(std::string_view data) {
    bytes_ += static_cast<int64_t>(data.size());
    if (file_) {
      file_->Append(data);
    } else if (std::fwrite(data.data(), 1, data.size(), stdout) != data.size()) {
      FailStandardOutput();
    }
  }
  void Commit() {
    if (file_) {
      file_->Commit();
    } else if (std::fflush(stdout) != 0) {
      FailStandardOutput();
    }
  }
  int64_t bytes() const { return bytes_; }

 private:
  [[noreturn]] static void FailStandardOutput() {
    throw Error(ErrorCode::kIo,
                fmt::format("standard output: cannot write: {}", std::strerror(errno)));
  }

  std::optional<AtomicFile> file_;
  int64_t bytes_ = 0;
};

// A chunk on its way from example numbers to compressed text.
struct Piece {
  std::unique_ptr<ChunkWork> work;
  Batch batch;
  std::string text;
  std::string compressed;

  std::string_view bytes(Compression compression) const {
    return compression == Compression::kNone ? text : compressed;
  }
};

void MakePiece(ChunkProducer& producer, const ExampleText& format, Compression compression,
               Piece* piece) {
  piece->batch = MakeBatch(producer.shape());
  producer.Produce(*piece->work, &piece->batch);
  piece->text.clear();
  format.Append(piece->batch, &piece->text);
  piece->compressed.clear();
  if (compression != Compression::kNone)
    AppendCompressed(compression, piece->text, &piece->compressed);
}

std::string ProgressText(const GenReport& report, int64_t total, double seconds) {
  const double speed = static_cast<double>(report.text_bytes) / seconds;
  const double left =
      seconds * static_cast<double>(total - report.examples) / static_cast<double>(report.examples);
  return fmt::format(
      "{} of {} rows, {} of text, {}/s, {} left", ShortCount(static_cast<double>(report.examples)),
      ShortCount(static_cast<double>(total)), ShortBytes(static_cast<double>(report.text_bytes)),
      ShortBytes(speed), ShortSeconds(left));
}

}  // namespace

DataFormat FormatOfPath(const std::string& path) {
  std::string_view name = path;
  for (const std::string_view ending : {".gz", ".zst"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  if (name.ends_with(".csv")) return DataFormat::kCsv;
  if (name.ends_with(".libsvm") || name.ends_with(".svm")) return DataFormat::kLibsvm;
  if (name.ends_with(".libffm") || name.ends_with(".ffm")) return DataFormat::kLibffm;
  return DataFormat::kCriteo;
}

GenReport GenerateFile(Env& env, const GenOptions& options, const std::atomic<bool>& stop) {
  const double start = NowSeconds();
  const ExampleText format(options.format, options.synthetic);
  DataConfig data;
  data.format = DataFormat::kSynthetic;
  data.synthetic = options.synthetic;
  data.synthetic.train_examples = data.synthetic.test_examples = options.examples;
  const std::unique_ptr<ChunkProducer> producer = MakeSyntheticProducer(
      data.synthetic, FeatureSpec::Resolve(data), options.part, SyntheticKeys::kValues);

  GenReport report;
  Output output(env, options.path);
  std::string header;
  AppendCompressed(options.compression, format.Header(), &header);
  if (!format.Header().empty()) output.Append(header);
  report.text_bytes = static_cast<int64_t>(format.Header().size());

  Workers workers("gen", options.threads);
  std::vector<Piece> pieces(static_cast<size_t>(options.threads) * kChunksPerThread);
  MetricsCollector metrics(kExactAucExamples);
  ProgressLine progress;
  for (;;) {
    size_t claimed = 0;
    while (claimed < pieces.size() && (pieces[claimed].work = producer->Claim())) ++claimed;
    if (claimed == 0) break;
    workers.Run(static_cast<int64_t>(claimed), [&](int64_t task, int) {
      MakePiece(*producer, format, options.compression, &pieces[static_cast<size_t>(task)]);
    });
    for (size_t i = 0; i < claimed; ++i) {
      const Piece& piece = pieces[i];
      metrics.Add(piece.batch.truth, piece.batch.labels, {}, {}, {}, 0);
      output.Append(piece.bytes(options.compression));
      report.text_bytes += static_cast<int64_t>(piece.text.size());
    }
    report.examples = metrics.examples();
    if (stop.load(std::memory_order_relaxed))
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted after {} of {} rows{}", report.examples,
                              options.examples, options.path == "-" ? "" : "; no file was left"));
    if (progress.Due()) progress.Show(ProgressText(report, options.examples, NowSeconds() - start));
  }
  output.Commit();
  const Metrics result = metrics.Compute();
  report.file_bytes = output.bytes();
  report.label_rate = result.label_rate;
  report.best_auc = result.auc;
  report.seconds = NowSeconds() - start;
  return report;
}

std::string DescribeGenerated(const GenOptions& options, const GenReport& report) {
  const double text_bytes = static_cast<double>(report.text_bytes);
  std::string out =
      fmt::format("wrote {}: {} rows, {}", options.path == "-" ? "standard output" : options.path,
                  report.examples, ShortBytes(static_cast<double>(report.file_bytes)));
  if (options.compression != Compression::kNone)
    out += fmt::format(" ({} of text)", ShortBytes(text_bytes));
  out += fmt::format(" in {}, {}/s of text\n", ShortSeconds(report.seconds),
                     ShortBytes(text_bytes / report.seconds));
  out += fmt::format("label rate  {:.4f}\n", report.label_rate);
  out += fmt::format("best AUC    {:.4f}  (of the probabilities that the labels were drawn from)\n",
                     report.best_auc);
  out += "\nTrain on it with\n";
  const std::string config = ExampleText(options.format, options.synthetic).ReadingConfig();
  for (size_t at = 0; at < config.size();) {
    const size_t end = config.find('\n', at) + 1;
    out += "  " + config.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace terrace
