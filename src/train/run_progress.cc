#include "train/run_progress.h"

#include "base/bytes.h"
#include "base/error.h"
#include "train/trainer.h"

namespace terrace {
namespace {

void AppendText(std::string* to, std::string_view text) {
  AppendValue(to, uint64_t{text.size()});
  to->append(text);
}

std::string TakeText(std::string_view* from) {
  const auto size = TakeValue<uint64_t>(from);
  return std::string(TakeBytes(from, size));
}

bool TakeBool(std::string_view* from) { return TakeValue<uint8_t>(from) != 0; }

void CheckEnd(std::string_view rest, const char* what) {
  if (!rest.empty())
    throw Error(ErrorCode::kCorruption,
                std::string("there are bytes behind ") + what + "; restore an older snapshot");
}

// Calls f for each field, in one order for both ways.
template <typename F>
void EachMetric(Metrics& m, F f) {
  f(&m.examples), f(&m.auc), f(&m.auc_exact), f(&m.auc_bucketed), f(&m.logloss);
  f(&m.normalized_entropy), f(&m.copc), f(&m.label_rate), f(&m.has_gauc), f(&m.gauc.value);
  f(&m.gauc.groups), f(&m.gauc.skipped_groups), f(&m.has_best_auc), f(&m.best_auc);
}

template <typename F>
void EachCount(RunReport& r, F f) {
  f(&r.examples), f(&r.batches), f(&r.epochs), f(&r.stopped_early), f(&r.saturated);
  f(&r.life.expired);
}

}  // namespace

void RunningTrainMetrics::Add(const Batch& batch, std::span<const float> probabilities,
                              double loss) {
  auc_.Add(probabilities, batch.labels, batch.weights);
  loss_ += loss;
  if (batch.weights.empty()) {
    weight_ += static_cast<double>(batch.examples);
  } else {
    for (float w : batch.weights) weight_ += w;
  }
}

void RunningTrainMetrics::Clear() {
  auc_.Clear();
  loss_ = weight_ = 0;
}

void RunningTrainMetrics::Save(std::string* to) const {
  AppendValue(to, loss_);
  AppendValue(to, weight_);
  auc_.Save(to);
}

void RunningTrainMetrics::Load(std::string_view* saved) {
  loss_ = TakeValue<double>(saved);
  weight_ = TakeValue<double>(saved);
  auc_.Load(saved);
}

std::string SaveReader(const ReaderState& reader) {
  std::string to;
  AppendValue(&to, reader.steps);
  AppendValue(&to, reader.tick);
  AppendValue(&to, reader.epoch);
  AppendValue(&to, reader.eval_due);
  AppendValue(&to, reader.eval_ends);
  AppendValue(&to, reader.epoch_ended);
  AppendValue(&to, reader.ended);
  AppendValue(&to, reader.skipped_rows);
  AppendText(&to, reader.position);
  return to;
}

ReaderState LoadReader(std::string_view saved) {
  ReaderState reader;
  reader.steps = TakeValue<int64_t>(&saved);
  reader.tick = TakeValue<uint32_t>(&saved);
  reader.epoch = TakeValue<int64_t>(&saved);
  reader.eval_due = TakeBool(&saved);
  reader.eval_ends = TakeBool(&saved);
  reader.epoch_ended = TakeBool(&saved);
  reader.ended = TakeBool(&saved);
  reader.skipped_rows = TakeValue<int64_t>(&saved);
  reader.position = TakeText(&saved);
  CheckEnd(saved, "the reader's position");
  if (reader.steps < 0 || reader.epoch < 0 || reader.skipped_rows < 0)
    throw Error(ErrorCode::kCorruption,
                "the reader's position has negative counts; restore an older snapshot");
  return reader;
}

std::string SaveProgress(const RunReport& report, const RunningTrainMetrics& running,
                         int64_t epoch) {
  std::string to;
  const auto append = [&to](const auto* value) { AppendValue(&to, *value); };
  RunReport copy;  // EachCount serves both ways
  copy = report;
  EachCount(copy, append);
  AppendValue(&to, uint64_t{report.evaluations.size()});
  for (Evaluation evaluation : report.evaluations) {
    AppendValue(&to, evaluation.step);
    AppendValue(&to, evaluation.epoch);
    AppendValue(&to, evaluation.seconds);
    EachMetric(evaluation.metrics, append);
  }
  AppendValue(&to, epoch);
  running.Save(&to);
  return to;
}

void LoadProgress(std::string_view saved, RunReport* report, RunningTrainMetrics* running,
                  int64_t* epoch) {
  const auto take = [&saved](auto* value) {
    using T = std::remove_pointer_t<decltype(value)>;
    if constexpr (std::is_same_v<T, bool>)
      *value = TakeBool(&saved);
    else
      *value = TakeValue<T>(&saved);
  };
  EachCount(*report, take);
  report->evaluations.clear();
  for (auto count = TakeValue<uint64_t>(&saved); count > 0; --count) {
    Evaluation evaluation;
    take(&evaluation.step);
    take(&evaluation.epoch);
    take(&evaluation.seconds);
    EachMetric(evaluation.metrics, take);
    report->evaluations.push_back(evaluation);
  }
  take(epoch);
  running->Load(&saved);
  CheckEnd(saved, "the metrics");
}

}  // namespace terrace
