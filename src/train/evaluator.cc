#include "train/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "base/workers.h"
#include "model/metrics.h"
#include "train/pipeline.h"
#include "train/resume.h"
#include "train/run_progress.h"
#include "train/step.h"

namespace terrace {
namespace {

// Of a budget, for the process, the net and the rows together; batches take the rest.
constexpr double kRowsShare = 0.75;

int Threads(const RunConfig& config) {
  return static_cast<int>(config.train.threads > 0 ? config.train.threads : AvailableCores());
}

// Before the rows are read, which may take long.
void CheckInputs(Env& env, const DataConfig& data) {
  if (data.format == DataFormat::kSynthetic) return;
  if (data.test.empty())
    throw Error(ErrorCode::kUsage,
                "the snapshot's config has no data.test: name the examples, e.g. --set "
                "data.test=test.tsv.gz");
  for (const std::string& pattern : data.test) {
    if (pattern == "-") continue;
    const std::vector<std::string> paths = env.Glob(pattern);
    if (paths.empty())
      throw Error(ErrorCode::kUsage,
                  pattern + ": no file matches; check the pattern and the current directory");
    for (const std::string& path : paths) (void)env.FileSize(path);  // throws if it is not there
  }
}

class Evaluator {
 public:
  // `labels`: of the data; false: all that only labels are for is left out.
  Evaluator(const Snapshot& snapshot, const RunConfig& config, const EvalOptions& options,
            bool labels)
      : snapshot_(snapshot),
        env_(snapshot.env()),
        config_(config),
        options_(options),
        labels_(labels),
        process_bytes_(RssBytes()),
        spec_(FeatureSpec::Resolve(config_.data)),
        workers_("train", Threads(config)),
        state_(config_, spec_, &CpuDevice()),
        step_(config_, &state_, &workers_) {
    CheckInputs(env_, config_.data);
    if (options_.show_progress) progress_.Show("opening the snapshot");
    LoadDenseStats(snapshot_.ReadFile(kFeaturesFile), &spec_);
    LoadModel(snapshot_, &state_, nullptr);
    start_ = LoadReader(snapshot_.ReadFile(kReaderFile));
    const auto from = [this](const std::string& table) { return snapshot_.TablePath(table); };
    if (FitsInMemory())
      state_.ReadRows(&env_, from);
    else
      state_.ReadDiskTier(config_.tiers, &env_, from);
  }

  using Sink =
      std::function<void(const Batch& batch, std::span<const float> probabilities, double loss)>;
  // Reads the test data once. False if it was stopped.
  bool Run(const Sink& sink, const std::atomic<bool>& stop) {
    PipelineOptions options;
    // A failure is told at once, whoever waits for standard input.
    options.cancelled = std::make_shared<std::atomic<bool>>(false);
    options.open = [this, cancelled = options.cancelled](OpenDataOptions part) {
      part.labels = labels_;
      part.cancelled = cancelled;
      return OpenData(env_, config_.data, spec_, part);
    };
    options.dedup_threads = DedupThreads(workers_.threads());
    options.needs = MemoryNeeds::Of(config_, state_, step_, process_bytes_);
    options.needs.rows = options_.memory_rows;
    options.start = start_;
    options.train = false;
    pipeline_ = std::make_unique<Pipeline>(config_, spec_, options, &state_, stop);
    bool complete = false;
    int64_t examples = 0;
    for (;;) {
      std::unique_ptr<WorkItem> item;
      {
        ScopedSeconds wait(&time_.wait_input);
        item = pipeline_->Next();
      }
      if (item == nullptr) break;
      if (item->kind == WorkItem::Kind::kEval) {
        ScopedSeconds busy(&time_.busy);
        const double loss = step_.Evaluate(item->batch, &item->plans, item->tick);
        sink(item->batch, step_.probabilities(), loss);
        examples += item->batch.examples;
        if (options_.show_progress && progress_.Due())
          progress_.Show(
              fmt::format("{} examples scored", ShortCount(static_cast<double>(examples))));
      } else {
        complete = item->complete;
      }
      pipeline_->Recycle(std::move(item));
    }
    progress_.Clear();
    return complete;
  }

  // After Run.
  void Report(RunReport* report) {
    report->skipped_rows = pipeline_->skipped_rows();
    report->process_bytes = process_bytes_;
    report->reader_bytes = pipeline_->reader_bytes();
    report->queue_bytes = pipeline_->queue_bytes();
    report->scratch_bytes =
        step_.scratch_bytes() + pipeline_->scratch_bytes() + pipeline_->tier_bytes();
    for (const auto& table : state_.tables) {
      report->arena_bytes += table->arena_bytes();
      report->index_bytes += table->index_bytes();
    }
    ReportStages(report);
    if (!state_.tiered.empty()) ReportTiers(&report->tiers);
    if (options_.show_progress) progress_.Show("reading every row for the model's digest");
    const ModelState::Summary summary = state_.Summarise(&workers_);
    progress_.Clear();
    report->model_digest = summary.digest;
    report->rows = summary.rows;
    report->rows_in_memory = state_.tiered.empty() ? summary.rows : 0;
    report->dense_params = state_.params.size();
    report->threads = workers_.threads();
    report->peak_rss = PeakRssBytes();
  }

 private:
  // Whether all rows do, within the budget or the machine. Where not, there is a budget from now
  // on.
  bool FitsInMemory() {
    int64_t& budget = config_.tiers.memory.budget;
    const bool limited = budget > 0;
    // The budget may be of another machine, the one that trained.
    const int64_t machine = MachineMemoryBytes() / 4 * 3;
    const int64_t most = limited ? std::min(budget, machine) : machine;
    double bytes =
        static_cast<double>(process_bytes_ + step_.scratch_bytes() + state_.dense_bytes());
    for (const auto& table : state_.tables) {
      const SnapshotTable* const saved = snapshot_.info().FindTable(table->schema().name);
      if (saved != nullptr)
        bytes += static_cast<double>(saved->rows_max) *
                 static_cast<double>(TieredTable::RowBytes(table->schema()));
    }
    const bool fits = options_.memory_rows == 0 &&
                      bytes <= (limited ? kRowsShare : 1) * static_cast<double>(most);
    if (!fits) budget = most;
    return fits;
  }

  void ReportStages(RunReport* report) const {
    report->stages = {{"read", pipeline_->read_time(), pipeline_->read_bytes()},
                      {"dedup", pipeline_->dedup_time(), 8 * pipeline_->keys()},
                      {"plan", pipeline_->plan_time(), 0}};
    if (!state_.tiered.empty()) report->stages.push_back({"pull", pipeline_->pull_time(), 0});
    report->stages.push_back({"evaluate", time_, 0});
  }

  void ReportTiers(TierReport* tiers) const {
    tiers->used = true;
    tiers->budget = config_.tiers.memory.budget;
    tiers->window = pipeline_->window();
    tiers->windows = pipeline_->window_stats();
    for (const auto& table : state_.tiered) {
      tiers->rows.Add(table->stats());
      tiers->metadata_bytes += table->metadata_bytes();
      tiers->disk.Add(table->disk().stats());
    }
    tiers->disk_memory_bytes = tiers->disk.memory_bytes();
  }

  const Snapshot& snapshot_;
  Env& env_;
  RunConfig config_;
  const EvalOptions& options_;
  const bool labels_;
  const int64_t process_bytes_;
  FeatureSpec spec_;
  Workers workers_;
  ModelState state_;
  StepRunner step_;
  ReaderState start_;
  std::unique_ptr<Pipeline> pipeline_;
  StageTime time_;
  ProgressLine progress_;
};

// Settings that are of the examples to be read, as the model has them: then they are no difference.
RunConfig WithDataOf(const RunConfig& saved, RunConfig now) {
  now.train.batch = saved.train.batch;
  now.data.on_bad_row = saved.data.on_bad_row;
  now.data.max_line_bytes = saved.data.max_line_bytes;
  now.data.delimiter = saved.data.delimiter;
  now.data.label = saved.data.label;
  now.data.weight = saved.data.weight;
  now.data.group = saved.data.group;
  const auto has_header = [](const RunConfig& config) {
    return config.data.format == DataFormat::kCsv || config.data.format == DataFormat::kTsv;
  };
  if (has_header(now) && has_header(saved)) now.data.format = saved.data.format;
  return now;
}

}  // namespace

RunConfig ReadEvalConfig(const Snapshot& snapshot, const std::vector<std::string>& sets) {
  const RunConfig saved = ReadSnapshotConfig(snapshot);
  ConfigFile file =
      ConfigFile::Parse(snapshot.ReadFile(kConfigFile), snapshot.path() + "/" + kConfigFile);
  for (const std::string& set : sets) file.Set(set);
  // Rows that do not fit in memory stay where they are.
  file.Set("tiers.disk.path=of-the-snapshot");
  RunConfig config = RunConfig::Read(file);
  const std::vector<std::string> notes =
      CheckResumable(snapshot, saved, WithDataOf(saved, config), false).notes;
  if (!notes.empty())
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: these settings are for training, the snapshot's model has its own; "
                    "leave them out:\n  {}",
                    snapshot.path(), fmt::join(notes, "\n  ")));
  config.snapshot = SnapshotConfig{};
  config.eval.early_stopping = 0;
  return config;
}

RunReport EvaluateSnapshot(const Snapshot& snapshot, const RunConfig& config,
                           const EvalOptions& options, const std::atomic<bool>& stop) {
  const double start = NowSeconds();
  RunReport report;
  RunningTrainMetrics running;
  int64_t epoch = 0;
  LoadProgress(snapshot.ReadFile(kProgressFile), &report, &running, &epoch);
  report.evaluations.clear();
  Evaluator evaluator(snapshot, config, options, true);
  MetricsCollector collector(config.eval.exact_limit);
  std::unique_ptr<AtomicFile> predictions;
  if (!options.predictions_path.empty())
    predictions = std::make_unique<AtomicFile>(snapshot.env(), options.predictions_path);
  const double eval_start = NowSeconds();
  const auto score = [&](const Batch& batch, std::span<const float> p, double loss) {
    collector.Add(p, batch.labels, batch.weights, batch.group_ids, batch.truth, loss);
    if (predictions == nullptr) return;
    fmt::memory_buffer lines;
    for (float one : p) fmt::format_to(std::back_inserter(lines), "{:.9g}\n", one);
    predictions->Append({lines.data(), lines.size()});
  };
  report.interrupted = !evaluator.Run(score, stop);
  if (report.interrupted) return report;
  if (collector.examples() == 0)
    throw Error(ErrorCode::kData, config.data.format == DataFormat::kSynthetic
                                      ? "there is no test data: set data.synthetic.test_examples"
                                      : "the test data has no examples; check data.test");
  if (predictions != nullptr) predictions->Commit();
  Evaluation evaluation;
  evaluation.step = report.batches;
  evaluation.epoch = epoch + 1;
  evaluation.metrics = collector.Compute();
  evaluation.seconds = NowSeconds() - eval_start;
  report.evaluations.push_back(evaluation);
  report.seconds = NowSeconds() - start;
  evaluator.Report(&report);
  return report;
}

PredictReport PredictSnapshot(const Snapshot& snapshot, const RunConfig& config,
                              const EvalOptions& options,
                              const std::function<void(std::string_view lines)>& write,
                              const std::atomic<bool>& stop) {
  if (config.data.format == DataFormat::kSynthetic)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: was trained on generated data (data.format = \"synthetic\"), of "
                            "which there are no files: `terrace eval` scores its test part; "
                            "`terrace data gen` writes such data to files to train and predict on",
                            snapshot.path()));
  RunConfig plain = config;
  // What only metrics and training ask for may be missing.
  plain.data.weight = plain.data.group = plain.data.timestamp = "";
  // Each batch goes its way when it is complete.
  plain.train.window = 1;
  if (plain.tiers.memory.policy == PolicyKind::kNextUse)
    plain.tiers.memory.policy = PolicyKind::kLru;
  PredictReport report;
  Evaluator evaluator(snapshot, plain, options, false);
  fmt::memory_buffer lines;
  const auto score = [&](const Batch& batch, std::span<const float> p, double) {
    lines.clear();
    for (size_t i = 0; i < p.size(); ++i) {
      if (batch.labels[i] == kNoExample) {
        ++report.without_example;
        fmt::format_to(std::back_inserter(lines), "nan\n");
      } else {
        ++report.examples;
        fmt::format_to(std::back_inserter(lines), "{:.9g}\n", p[i]);
      }
    }
    write({lines.data(), lines.size()});
  };
  if (!evaluator.Run(score, stop))
    throw Error(ErrorCode::kInterrupted,
                fmt::format("interrupted after {} examples", report.examples));
  return report;
}

}  // namespace terrace
