#include "train/snapshot_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/clock.h"
#include "base/error.h"
#include "base/workers.h"

namespace terrace {
namespace {

constexpr int64_t kLeastFlush = 32 << 10;  // rows; fewer are written with the snapshot
constexpr double kFlushMargin = 1.5;
constexpr int64_t kKeptShare = 32;  // of the budget
constexpr int64_t kMostKept = 256 << 20;

RowSaver::Limits LimitsOf(const RunConfig& config) {
  RowSaver::Limits limits;
  const int64_t budget = config.tiers.memory.budget;
  if (budget > 0) {
    limits.kept_bytes = std::clamp<int64_t>(budget / kKeptShare, 1 << 20, kMostKept);
    limits.sorted_rows = std::clamp<int64_t>(budget / 1024, 4 << 10, 256 << 10);
    limits.chunk_rows = std::clamp<int64_t>(budget / 64 / 1024, 256, 16 << 10);
  } else {
    limits.kept_bytes = kMostKept;
  }
  return limits;
}

std::vector<RowSaver::Table> SavedTables(const ModelState& state) {
  std::vector<RowSaver::Table> tables;
  for (size_t t = 0; t < state.tables.size(); ++t)
    tables.push_back({state.tables[t].get(), state.store(t), state.UnseenRows(t)});
  return tables;
}

// One line for people.
std::string SchemaText(const TableSchema& schema) {
  const RowLayout& layout = schema.layout;
  std::string text = fmt::format("dim {}", layout.dim);
  if (layout.linear > 0) text += ", linear weight";
  static constexpr const char* kOptimizers[] = {"sgd", "adagrad", "row-adagrad", "adam", "ftrl"};
  static constexpr const char* kCodecs[] = {"fp32", "fp16", "bf16", "int16", "int8"};
  text += fmt::format(", {}", kOptimizers[static_cast<int>(schema.config.optimizer)]);
  text += fmt::format(", weights {}", kCodecs[static_cast<int>(schema.config.weight_codec)]);
  if (layout.state > 0)
    text += fmt::format(", state {}", kCodecs[static_cast<int>(schema.config.state_codec)]);
  if (layout.counts) text += ", statistics";
  return text;
}

}  // namespace

SnapshotTaker::SnapshotTaker(Env& env, const RunConfig& config, ModelState* state,
                             std::vector<std::string> lineage, bool show_progress)
    : env_(env),
      config_(config),
      state_(*state),
      lineage_(std::move(lineage)),
      show_progress_(show_progress),
      saver_(SavedTables(*state), LimitsOf(config)),
      last_begin_(NowSeconds()) {
  for (size_t t = 0; t < state_.tiered.size(); ++t)
    state_.tiered[t]->set_leave(
        [this, t](std::span<RowMove> victims) { saver_.Leave(t, victims); });
  thread_ = std::jthread([this] {
    NameThisThread("save");
    SaveLoop();
  });
}

SnapshotTaker::~SnapshotTaker() {
  saver_.Cancel();
  {
    MutexLock lock(&mu_);
    end_ = true;
    changed_.NotifyAll();
  }
  thread_ = {};  // joins
  for (const auto& table : state_.tiered) table->set_leave(nullptr);
}

int64_t SnapshotTaker::bytes() const {
  const RowSaver::Limits limits = LimitsOf(config_);
  int64_t row_bytes = 0;
  for (size_t t = 0; t < state_.tables.size(); ++t)
    row_bytes = std::max(row_bytes, static_cast<int64_t>(state_.store(t)->row_bytes()));
  return limits.kept_bytes + limits.chunk_rows * (row_bytes + 16) +
         2 * limits.sorted_rows * static_cast<int64_t>(sizeof(KeyItem)) + 2 * state_.dense_bytes();
}

// --- train ---

void SnapshotTaker::BeforeTraining(const std::vector<TablePlan>& plans) {
  for (size_t t = 0; t < plans.size(); ++t) saver_.BeforeTraining(t, plans[t].row_positions);
  const double waited = saver_.wait_seconds();
  if (waited > waited_) CountPause(waited - waited_);
  waited_ = waited;
}

void SnapshotTaker::CountPause(double seconds) {
  MutexLock lock(&mu_);
  report_.pause += seconds;
  report_.longest_pause = std::max(report_.longest_pause, seconds);
}

void SnapshotTaker::AfterTraining(int64_t step) {
  const double now = NowSeconds();
  const double seconds = last_batch_ == 0 ? 0 : now - last_batch_;
  batch_seconds_ = batch_seconds_ == 0 ? seconds : 0.9 * batch_seconds_ + 0.1 * seconds;
  last_batch_ = now;
  if (!FlushIsDue(step)) return;
  saver_.StartFlush();
  MutexLock lock(&mu_);
  flush_ = true;
  changed_.NotifyAll();
}

// Whether writing what has changed would take until the next snapshot.
bool SnapshotTaker::FlushIsDue(int64_t step) {
  double rows_per_second;
  {
    MutexLock lock(&mu_);
    if (busy_ || flush_ || job_ != nullptr) return false;
    rows_per_second = flushed_per_second_;
  }
  if (saver_.copied_bytes() > LimitsOf(config_).kept_bytes / 2) return true;
  const auto rows = static_cast<double>(saver_.changed_rows());
  if (rows < kLeastFlush) return false;
  const double needed = kFlushMargin * rows / rows_per_second;
  const SnapshotConfig& config = config_.snapshot;
  const auto left = static_cast<double>(config.every > 0 ? config.every - step % config.every : 0);
  if (config.every > 0 && left * batch_seconds_ < needed) return true;
  return config.seconds > 0 && last_begin_ + config.seconds - NowSeconds() < needed;
}

void SnapshotTaker::Begin(SnapshotPoint* point, int64_t examples, std::vector<File> files) {
  const double start = NowSeconds();
  {
    MutexLock lock(&mu_);
    while (job_ != nullptr) changed_.Wait(&mu_);
  }
  auto job = std::make_unique<Job>();
  job->last = point->last;
  job->info.batch = point->reader.steps;
  job->info.epoch = point->reader.epoch + (point->reader.epoch_ended ? 1 : 0);
  job->info.examples = examples;
  job->info.program = "terrace";
  job->info.lineage = lineage_;
  for (const ParamBlock& block : state_.model->param_blocks())
    job->info.dense.push_back({block.name, block.shape()});
  job->files = std::move(files);
  const auto copy = [](const Buffer<float>& from) {
    return std::vector<float>(from.data(), from.data() + from.size());
  };
  job->dense = {copy(state_.params), copy(state_.dense_state)};
  for (size_t t = 0; t < state_.tables.size(); ++t) {
    const std::string name = EscapeName(state_.tables[t]->schema().name);
    if (state_.lives[t] != nullptr) {
      job->files.push_back({"life-" + name, state_.lives[t]->Save()});
      state_.lives[t]->Hold();
    }
    if (state_.admissions[t] != nullptr)
      job->files.push_back({"admission-" + name, std::move(point->admissions[t])});
  }
  saver_.BeginCut();
  last_begin_ = NowSeconds();
  {
    MutexLock lock(&mu_);
    job_ = std::move(job);
    changed_.NotifyAll();
  }
  CountPause(NowSeconds() - start);
}

void SnapshotTaker::Finish() {
  MutexLock lock(&mu_);
  while ((job_ != nullptr || flush_ || busy_) && !end_) changed_.Wait(&mu_);
  if (!last_failed_) return;
  throw Error(ErrorCode::kIo,
              fmt::format("the last snapshot could not be written: {}; the one before it is good: "
                          "remove the cause and go on with --resume",
                          report_.failure));
}

SnapshotReport SnapshotTaker::report() const {
  SnapshotReport report;
  {
    MutexLock lock(&mu_);
    report = report_;
  }
  report.rows_written = saver_.written_rows();
  return report;
}

// --- save ---

void SnapshotTaker::SaveLoop() {
  for (;;) {
    const Job* job = nullptr;
    {
      MutexLock lock(&mu_);
      while (job_ == nullptr && !flush_ && !end_) changed_.Wait(&mu_);
      if (end_) return;
      busy_ = true;
      job = job_.get();
      flush_ = false;
    }
    if (job != nullptr)
      Save(*job);
    else
      FlushAhead();
    MutexLock lock(&mu_);
    if (job != nullptr) job_.reset();
    busy_ = false;
    changed_.NotifyAll();
  }
}

void SnapshotTaker::FlushAhead() {
  const double start = NowSeconds();
  const int64_t before = saver_.written_rows();
  try {
    if (!saver_.FlushAll()) return;
  } catch (const std::exception&) {
    // The next snapshot tries again, and tells if that fails.
    saver_.AbandonCut();
    return;
  }
  const auto rows = static_cast<double>(saver_.written_rows() - before);
  const double seconds = NowSeconds() - start;
  MutexLock lock(&mu_);
  if (rows >= kLeastFlush && seconds > 0) flushed_per_second_ = rows / seconds;
}

void SnapshotTaker::Save(const Job& job) {
  const double start = NowSeconds();
  try {
    if (!saver_.FlushAll()) return;
    Write(job);
  } catch (const std::exception& e) {
    saver_.AbandonCut();
    ReleaseLives();
    Fail(fmt::format("batch {}: {}", job.info.batch, e.what()), job.last);
    return;
  }
  const double seconds = NowSeconds() - start;
  MutexLock lock(&mu_);
  ++report_.taken;
  report_.last_batch = job.info.batch;
  report_.seconds += seconds;
  report_.longest_seconds = std::max(report_.longest_seconds, seconds);
  last_failed_ = false;
}

void SnapshotTaker::Write(const Job& job) {
  // A flush ahead that failed took the rows of the cut with it.
  if (!saver_.cutting())
    throw Error(ErrorCode::kIo, "its rows could not be written; is the disk full?");
  SnapshotWriter writer(env_, config_.snapshot.dir, job.info.batch);
  std::vector<SnapshotTable> tables;
  for (size_t t = 0; t < state_.tables.size(); ++t) {
    const TableSchema& schema = state_.tables[t]->schema();
    DiskStore& store = *state_.store(t);
    store.Snapshot(writer.TablePath(schema.name));
    const PartitionStats rows = store.stats().total;
    SnapshotTable& table = tables.emplace_back();
    table.name = schema.name;
    table.row_bytes = static_cast<int64_t>(store.row_bytes());
    table.schema = SchemaText(schema);
    table.rows_min = rows.rows_min();
    table.rows_max = rows.rows_max();
  }
  saver_.EndCut();
  ReleaseLives();
  for (const SnapshotTable& table : tables) writer.AddTable(table);
  for (const File& file : job.files) writer.AddFile(file.name, file.bytes);
  AddDense(&writer, job.dense.params, job.dense.state);
  writer.Commit(job.info);
  try {
    (void)ApplyRetention(env_, config_.snapshot.dir, config_.snapshot.keep_last,
                         config_.snapshot.keep_every);
  } catch (const Error& e) {  // the next one tries again
    if (show_progress_)
      fmt::print(stderr, "\nan old snapshot could not be removed: {}\n", e.what());
  }
}

void SnapshotTaker::ReleaseLives() {
  for (const auto& life : state_.lives)
    if (life != nullptr) life->Release();
}

void SnapshotTaker::Fail(const std::string& what, bool last) {
  if (show_progress_)
    fmt::print(stderr, "\nsnapshot failed, training goes on; the one before it stays: {}\n", what);
  MutexLock lock(&mu_);
  ++report_.failed;
  report_.failure = what;
  last_failed_ = last;
}

}  // namespace terrace
