#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "base/workers.h"
#include "train/bottleneck.h"
#include "train/pipeline.h"
#include "train/resume.h"
#include "train/run_origin.h"
#include "train/run_progress.h"
#include "train/snapshot_taker.h"
#include "train/step.h"

namespace terrace {
namespace {

constexpr size_t kMostTimePoints = 1000;

// With a disk tier there is always a budget.
RunConfig WithBudget(RunConfig config) {
  int64_t& budget = config.tiers.memory.budget;
  if (!config.tiers.disk.path.empty() && budget == 0) budget = MachineMemoryBytes() / 4 * 3;
  return config;
}

// The train stage: owns the model and takes items from the pipeline until there are no more.
class TrainStage {
 public:
  TrainStage(Env& env, const RunConfig& config, const RunOptions& options,
             const std::atomic<bool>& stop)
      : env_(env),
        config_(WithBudget(config)),
        options_(options),
        stop_(stop),
        spec_(FeatureSpec::Resolve(config.data)),
        workers_("train", static_cast<int>(config.train.threads > 0 ? config.train.threads
                                                                    : AvailableCores())),
        origin_(env, config_, options) {}

  RunReport Run() {
    report_.process_bytes = RssBytes();
    if (origin_.resumes())
      origin_.LoadFeatures(&spec_);
    else
      MeasureDenseColumns(env_, config_.data, &spec_);
    state_ = std::make_unique<ModelState>(config_, spec_, &CpuDevice());
    ReaderState start;
    if (origin_.resumes()) {
      start = origin_.Restore(state_.get(), &report_, &running_, &epoch_);
      carried_expired_ = report_.life.expired;
      carried_saturated_ = report_.saturated;
    }
    origin_.OpenStores(state_.get(), &report_);
    step_ = std::make_unique<StepRunner>(config_, state_.get(), &workers_);
    PipelineOptions options;
    options.open = [this](const OpenDataOptions& part) {
      return OpenData(env_, config_.data, spec_, part);
    };
    options.dedup_threads = DedupThreads(workers_.threads());
    options.needs = MemoryNeeds::Of(config_, *state_, *step_, report_.process_bytes);
    options.needs.rows = options_.memory_rows;
    if (origin_.takes_snapshots()) {
      taker_ = std::make_unique<SnapshotTaker>(env_, config_, state_.get(), origin_.lineage(),
                                               options_.show_progress);
      options.saver = taker_->saver();
      options.needs.fixed_bytes += taker_->bytes();
      if (!state_->save_stores.empty())
        options.needs.fixed_bytes += SaveMemory(config_.snapshot, config_.tiers);
    }
    options.start = start;
    // A run that stopped early has ended, however many epochs there are.
    if (report_.stopped_early) options.start.epoch = config_.train.epochs;
    pipeline_ = std::make_unique<Pipeline>(config_, spec_, options, state_.get(), stop_);
    for (;;) {
      std::unique_ptr<WorkItem> item;
      {
        ScopedSeconds wait(&time_.wait_input);
        item = pipeline_->Next();
      }
      if (item == nullptr) break;
      {
        ScopedSeconds busy(&time_.busy);
        Take(item.get());
      }
      pipeline_->Recycle(std::move(item));
    }
    if (taker_ != nullptr) FinishSnapshots();
    progress_.Clear();
    report_.seconds = NowSeconds() - start_;
    Finish();
    return report_;
  }

 private:
  void TakeSnapshot(SnapshotPoint* point) {
    report_.saturated = carried_saturated_ + step_->saturated();
    report_.life.expired = carried_expired_ + step_->restarted();
    std::vector<SnapshotTaker::File> files;
    files.push_back({kConfigFile, ConfigText(config_)});
    files.push_back({kFeaturesFile, SaveDenseStats(spec_)});
    files.push_back({kReaderFile, SaveReader(point->reader)});
    files.push_back({kProgressFile, SaveProgress(report_, running_, epoch_)});
    taker_->Begin(point, report_.examples, std::move(files));
  }

  void FinishSnapshots() {
    if (options_.show_progress) progress_.Show("writing the last snapshot");
    taker_->Finish();
    report_.snapshots = taker_->report();
  }

  void Take(WorkItem* item) {
    switch (item->kind) {
      case WorkItem::Kind::kTrain:
        return TakeTrain(*item);
      case WorkItem::Kind::kEval:
        return TakeEval(item);
      case WorkItem::Kind::kEvalEnd:
        return EndEvaluation(*item);
      case WorkItem::Kind::kSnapshot:
        return TakeSnapshot(item->snapshot.get());
    }
  }

  void TakeTrain(const WorkItem& item) {
    if (item.epoch != epoch_) {
      running_.Clear();
      epoch_ = item.epoch;
    }
    if (train_started_ == 0) train_started_ = NowSeconds();
    if (taker_ != nullptr) taker_->BeforeTraining(item.plans);
    const double loss = step_->Train(item.batch, item.plans, item.step, item.tick);
    if (taker_ != nullptr) taker_->AfterTraining(item.step);
    running_.Add(item.batch, step_->probabilities(), loss);
    report_.examples += item.batch.examples;
    report_.batches = item.step;
    report_.epochs = item.epoch + 1;
    AddToTimeline();
    if (options_.show_progress && progress_.Due()) ShowProgress(item);
    if (options_.after_batch) options_.after_batch(item.step);
  }

  void TakeEval(WorkItem* taken) {
    const WorkItem& item = *taken;
    if (!collector_) {
      collector_ = std::make_unique<MetricsCollector>(config_.eval.exact_limit);
      const bool may_be_last = item.last_eval || config_.eval.early_stopping > 0;
      if (may_be_last && !options_.predictions_path.empty())
        predictions_ = std::make_unique<AtomicFile>(env_, options_.predictions_path);
      eval_started_ = NowSeconds();
    }
    const double loss = step_->Evaluate(item.batch, &taken->plans, item.tick);
    const std::span<const float> p = step_->probabilities();
    collector_->Add(p, item.batch.labels, item.batch.weights, item.batch.group_ids,
                    item.batch.truth, loss);
    if (predictions_ != nullptr) {
      fmt::memory_buffer lines;
      for (float score : p) fmt::format_to(std::back_inserter(lines), "{:.9g}\n", score);
      predictions_->Append({lines.data(), lines.size()});
    }
    if (options_.show_progress && progress_.Due())
      progress_.Show(fmt::format("epoch {}/{}  evaluating: {} examples", item.epoch + 1,
                                 config_.train.epochs,
                                 ShortCount(static_cast<double>(collector_->examples()))));
  }

  void EndEvaluation(const WorkItem& item) {
    bool go_on = true;
    if (collector_ == nullptr && item.complete)
      throw Error(ErrorCode::kData, "the test data has no examples; check data.test");
    if (collector_ != nullptr && item.complete) {
      Evaluation evaluation;
      evaluation.step = item.step;
      evaluation.epoch = item.epoch + 1;
      evaluation.metrics = collector_->Compute();
      evaluation.seconds = NowSeconds() - eval_started_;
      eval_seconds_ += evaluation.seconds;
      report_.evaluations.push_back(evaluation);
      go_on = Improving();
      if (options_.show_progress) ShowEvaluation(evaluation);
      if (predictions_ != nullptr && (item.last_eval || !go_on)) predictions_->Commit();
    }
    collector_.reset();
    predictions_.reset();
    if (config_.eval.early_stopping > 0) pipeline_->Continue(go_on);
    if (!go_on && !item.last_eval) report_.stopped_early = true;
  }

  // False when the last `early_stopping` evaluations brought no better AUC.
  bool Improving() const {
    if (config_.eval.early_stopping == 0) return true;
    double best = -1;
    int64_t since_best = 0;
    for (const Evaluation& e : report_.evaluations) {
      if (e.metrics.auc > best + config_.eval.min_improvement) {
        best = e.metrics.auc;
        since_best = 0;
      } else {
        ++since_best;
      }
    }
    return since_best < config_.eval.early_stopping;
  }

  TieredStats TierStats() const {
    TieredStats stats;
    for (const auto& table : state_->tiered) stats.Add(table->stats());
    return stats;
  }

  void AddToTimeline() {
    const double now = NowSeconds() - start_;
    std::vector<TimePoint>& line = report_.timeline;
    if (line.empty()) last_batch_ = now;
    longest_batch_ = std::max(longest_batch_, now - last_batch_);
    last_batch_ = now;
    if (!line.empty() && now < line.back().seconds + timeline_step_) return;
    line.push_back({now, report_.examples, longest_batch_, RssBytes(), TierStats()});
    for (const auto& table : state_->tables)
      line.back().rows_in_memory += table->created() - table->removed();
    for (const auto& table : state_->tiered)
      line.back().disk_bytes += table->disk().stats().total.file_bytes;
    longest_batch_ = 0;
    if (line.size() < kMostTimePoints) return;
    // Every second point goes, and they come half as often from now on.
    for (size_t i = 0; i < line.size() / 2; ++i) {
      line[i] = line[2 * i + 1];
      line[i].longest_batch = std::max(line[i].longest_batch, line[2 * i].longest_batch);
    }
    line.resize(line.size() / 2);
    timeline_step_ *= 2;
  }

  double TrainSeconds() const {
    return train_started_ == 0 ? 0 : NowSeconds() - train_started_ - eval_seconds_;
  }

  void ShowProgress(const WorkItem& item) {
    const double seconds = TrainSeconds();
    std::string line = fmt::format("epoch {}/{}", item.epoch + 1, config_.train.epochs);
    if (item.progress >= 0) line += fmt::format("  {:3.0f} %", 100 * item.progress);
    line +=
        fmt::format("  {} examples  {}/s", ShortCount(static_cast<double>(report_.examples)),
                    ShortCount(static_cast<double>(report_.examples - report_.resumed_examples) /
                               std::max(seconds, 1e-9)));
    if (!state_->tiered.empty()) line += TierProgress();  // before what a narrow terminal cuts
    if (item.progress > 0.001)
      line += fmt::format("  ETA {}", ShortSeconds(seconds * (1 - item.progress) / item.progress));
    line += fmt::format("  loss {:.4f}  AUC {:.4f}", running_.loss(), running_.auc());
    progress_.Show(line);
  }

  // Where the rows of the last batches were found.
  std::string TierProgress() {
    const TieredStats now = TierStats();
    const int64_t memory = now.hits - shown_.hits;
    const int64_t disk = now.from_disk - shown_.from_disk;
    const int64_t fresh = now.created - shown_.created;
    shown_ = now;
    const auto share = [&](int64_t part) {
      return 100.0 * static_cast<double>(part) /
             static_cast<double>(std::max<int64_t>(memory + disk + fresh, 1));
    };
    return fmt::format("  mem {:.1f} %  disk {:.1f} %  new {:.1f} %", share(memory), share(disk),
                       share(fresh));
  }

  void ShowEvaluation(const Evaluation& e) {
    progress_.Clear();
    fmt::print(stderr,
               "epoch {:>2}  batch {:>7}  train loss {:.4f}  test AUC {:.4f}  log loss {:.4f}\n",
               e.epoch, e.step, running_.loss(), e.metrics.auc, e.metrics.logloss);
  }

  void Finish() {
    report_.interrupted = stop_.load(std::memory_order_relaxed);
    report_.train_seconds =
        train_started_ == 0 ? 0 : report_.seconds - (train_started_ - start_) - eval_seconds_;
    report_.train_loss = running_.loss();
    report_.train_auc = running_.auc();
    report_.skipped_rows = pipeline_->skipped_rows();
    report_.row_lookups = pipeline_->lookups();
    report_.life.expired = carried_expired_;
    for (const auto& table : state_->tables) {
      report_.rows_in_memory += table->rows();
      report_.rows_created += table->created();
      report_.life.expired += table->removed();
      report_.arena_bytes += table->arena_bytes();
      report_.index_bytes += table->index_bytes();
    }
    if (!state_->tiered.empty()) ReportTiers();
    ReportLife();
    ReportStages();
    NameBottleneck(&report_);
    if (options_.show_progress && !state_->tiered.empty())
      progress_.Show("reading every row for the model's digest");
    const ModelState::Summary summary = state_->Summarise(&workers_);
    report_.model_digest = summary.digest;
    report_.rows = summary.rows;
    progress_.Clear();
    report_.reader_bytes = pipeline_->reader_bytes();
    report_.queue_bytes = pipeline_->queue_bytes();
    report_.scratch_bytes =
        step_->scratch_bytes() + pipeline_->scratch_bytes() + pipeline_->tier_bytes();
    if (taker_ != nullptr) report_.scratch_bytes += taker_->saver()->bytes();
    for (const auto& store : state_->save_stores)
      report_.scratch_bytes += store->stats().memory_bytes();
    report_.saturated = carried_saturated_ + step_->saturated();
    report_.dense_params = state_->params.size();
    report_.peak_rss = PeakRssBytes();
    report_.threads = workers_.threads();
  }

  void ReportStages() {
    int64_t row_bytes = 0;  // of the widest table
    for (const auto& table : state_->tables)
      row_bytes = std::max(row_bytes, table->schema().layout.payload_bytes());
    const int64_t trained = 2 * report_.row_lookups * row_bytes;  // read and written, at most
    report_.stages = {{"read", pipeline_->read_time(), pipeline_->read_bytes()},
                      {"dedup", pipeline_->dedup_time(), 8 * pipeline_->keys()},
                      {"plan", pipeline_->plan_time(), 8 * report_.row_lookups},
                      {"train", time_, trained}};
    if (state_->tiered.empty()) return;
    const DiskStats& disk = report_.tiers.disk;
    const int64_t pulled = disk.pages_read * static_cast<int64_t>(disk.page_bytes);
    report_.stages.insert(report_.stages.begin() + 3,
                          {{"pull", pipeline_->pull_time(), pulled},
                           {"link", pipeline_->link_time(), 8 * pipeline_->keys()}});
    report_.stages.push_back({"push", pipeline_->push_time(), pipeline_->push_bytes()});
  }

  void ReportTiers() {
    TierReport& tiers = report_.tiers;
    tiers.used = true;
    tiers.budget = config_.tiers.memory.budget;
    tiers.window = pipeline_->window();
    tiers.windows = pipeline_->window_stats();
    tiers.rows = TierStats();
    report_.rows_created = tiers.rows.created;
    report_.row_lookups = tiers.rows.lookups;
    for (const auto& table : state_->tiered) {
      tiers.metadata_bytes += table->metadata_bytes();
      tiers.disk.Add(table->disk().stats());
    }
    tiers.disk_memory_bytes = tiers.disk.memory_bytes();
  }

  void ReportLife() {
    LifeReport& life = report_.life;
    for (const auto& one : state_->lives) life.used = life.used || one != nullptr;
    life.expired += step_->restarted() + report_.tiers.rows.expired + report_.tiers.disk.expired;
    for (const auto& admission : state_->admissions) {
      if (admission == nullptr) continue;
      life.used = true;
      life.admitted += admission->sightings().admitted;
      life.refused += admission->sightings().refused;
      life.admission_bytes += admission->bytes();
    }
  }

  Env& env_;
  const RunConfig config_;
  const RunOptions& options_;
  const std::atomic<bool>& stop_;
  FeatureSpec spec_;
  Workers workers_;
  RunOrigin origin_;
  std::unique_ptr<ModelState> state_;
  std::unique_ptr<StepRunner> step_;
  std::unique_ptr<SnapshotTaker> taker_;
  std::unique_ptr<Pipeline> pipeline_;

  RunReport report_;
  ProgressLine progress_;
  StageTime time_;
  RunningTrainMetrics running_;
  int64_t epoch_ = 0;
  int64_t carried_expired_ = 0, carried_saturated_ = 0;  // of the run before the snapshot
  const double start_ = NowSeconds();
  double train_started_ = 0;
  double eval_started_ = 0;
  double eval_seconds_ = 0;
  double last_batch_ = 0;
  double longest_batch_ = 0;
  double timeline_step_ = 1;  // seconds between points
  TieredStats shown_;         // in the progress line before
  std::unique_ptr<MetricsCollector> collector_;
  std::unique_ptr<AtomicFile> predictions_;
};

}  // namespace

RunReport TrainModel(Env& env, const RunConfig& config, const RunOptions& options,
                     const std::atomic<bool>& stop) {
  return TrainStage(env, config, options, stop).Run();
}

}  // namespace terrace
