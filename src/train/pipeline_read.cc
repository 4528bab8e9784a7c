// The pipeline's first stage: batches in the order of the run, with the places where it evaluates
// and takes snapshots.
#include <algorithm>

#include "base/error.h"
#include "train/pipeline.h"

namespace terrace {

std::unique_ptr<WorkItem> Pipeline::NewItem() {
  if (spare_item_ != nullptr) return std::move(spare_item_);
  if (items_made_ < max_items_) {
    ++items_made_;
    auto item = std::make_unique<WorkItem>();
    item->batch = MakeBatch(spec_.shape);
    TakeKeys(&item->batch);
    return item;
  }
  ScopedSeconds wait(&read_time_.wait_output);
  std::optional<std::unique_ptr<WorkItem>> item = free_items_.Pop();
  if (!item) return nullptr;
  ClearBatch(&(*item)->batch);
  TakeKeys(&(*item)->batch);
  return std::move(*item);
}

void Pipeline::GiveKeys(Batch* batch) {
  const auto most = static_cast<size_t>(KeyedItems());
  MutexLock lock(&mu_);
  for (KeyGroup& group : batch->groups) {
    if (spare_keys_.size() < most * batch->groups.size())
      spare_keys_.push_back(std::move(group.keys));
    std::vector<uint64_t>().swap(group.keys);  // to assign {} would keep the memory
  }
}

void Pipeline::TakeKeys(Batch* batch) {
  MutexLock lock(&mu_);
  for (KeyGroup& group : batch->groups) {
    if (spare_keys_.empty() || group.keys.capacity() > 0) continue;
    group.keys.swap(spare_keys_.back());
    group.keys.clear();
    spare_keys_.pop_back();
  }
  for (KeyGroup& group : batch->groups) {
    if (spare_offsets_.empty() || group.offsets.capacity() > 1) continue;
    group.offsets.swap(spare_offsets_.back());
    group.offsets.assign(1, 0);
    spare_offsets_.pop_back();
  }
}

// Many batches wait for their rows, and offsets that can be made again need not wait with them.
void Pipeline::GiveOffsets(WorkItem* item) {
  std::vector<KeyGroup>& groups = item->batch.groups;
  item->bag_keys.assign(groups.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) item->bag_keys[g] = KeysOfEachBag(groups[g]);
  const auto most = static_cast<size_t>(KeyedItems());
  MutexLock lock(&mu_);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (item->bag_keys[g] == 0) continue;
    if (spare_offsets_.size() < most * groups.size())
      spare_offsets_.push_back(std::move(groups[g].offsets));
    std::vector<uint32_t>().swap(groups[g].offsets);
  }
}

void Pipeline::TakeOffsets(WorkItem* item) {
  for (size_t g = 0; g < item->bag_keys.size(); ++g) {
    if (item->bag_keys[g] == 0) continue;
    KeyGroup& group = item->batch.groups[g];
    {
      MutexLock lock(&mu_);
      if (!spare_offsets_.empty()) {
        group.offsets.swap(spare_offsets_.back());
        spare_offsets_.pop_back();
      }
    }
    FillOffsets(static_cast<size_t>(item->batch.examples * group.slots), item->bag_keys[g],
                &group.offsets);
  }
}

bool Pipeline::Emit(std::unique_ptr<WorkItem> item) {
  item->number = items_read_++;
  read_bytes_ += BatchBytes(item->batch);
  for (const KeyGroup& group : item->batch.groups) keys_ += static_cast<int64_t>(group.keys.size());
  ScopedSeconds wait(&read_time_.wait_output);
  return read_queue_.Push(std::move(item));
}

void Pipeline::ReadLoop() {
  const double start = last_snapshot_ = NowSeconds();
  if (!options_.train) {
    (void)ReadEvaluation(true);
  } else {
    bool more = true;
    if (reader_.eval_due) {
      const bool last = reader_.eval_ends && LastEpoch();
      more = ReadEvaluation(last);
      reader_.ended = more && last;
    }
    if (reader_.epoch_ended) more = more && !LastEpoch();
    if (reader_.ended) more = more && !AtLimit();
    for (int64_t epoch = reader_.epoch + (reader_.epoch_ended ? 1 : 0);
         more && epoch < config_.train.epochs; ++epoch)
      more = ReadEpoch(epoch);
    // Where nothing was trained since the last one, that is the state.
    if (!config_.snapshot.dir.empty() && reader_.steps > last_saved_)
      (void)EmitSnapshot(reader_, true);
  }
  read_time_.busy = NowSeconds() - start - read_time_.wait_input - read_time_.wait_output;
}

bool Pipeline::AtLimit() const {
  return config_.train.max_batches > 0 && reader_.steps >= config_.train.max_batches;
}

bool Pipeline::LastEpoch() const { return AtLimit() || reader_.epoch + 1 >= config_.train.epochs; }

bool Pipeline::SnapshotDue() const {
  const SnapshotConfig& config = config_.snapshot;
  if (config.dir.empty()) return false;
  if (config.every > 0 && reader_.steps % config.every == 0) return true;
  return config.seconds > 0 && NowSeconds() - last_snapshot_ >= config.seconds;
}

bool Pipeline::EmitSnapshot(ReaderState reader, bool last) {
  auto item = std::make_unique<WorkItem>();  // not one of those that go round
  item->batch = MakeBatch(spec_.shape);
  item->kind = WorkItem::Kind::kSnapshot;
  item->step = reader.steps;
  item->tick = reader.tick;
  item->epoch = reader.epoch;
  item->snapshot = std::make_unique<SnapshotPoint>();
  item->snapshot->last = last;
  item->snapshot->reader = std::move(reader);
  last_snapshot_ = NowSeconds();
  last_saved_ = item->step;
  return Emit(std::move(item));
}

bool Pipeline::ReadEpoch(int64_t epoch) {
  OpenDataOptions options;
  options.seed = static_cast<uint64_t>(config_.seed);
  options.epoch = epoch;
  if (epoch == reader_.epoch && !reader_.epoch_ended) options.position = reader_.position;
  reader_.epoch = epoch;
  reader_.epoch_ended = reader_.eval_ends = reader_.ended = false;
  std::unique_ptr<DataStream> stream = options_.open(options);
  const auto epochs = static_cast<double>(config_.train.epochs);
  // A snapshot after the last batch of an epoch waits for its evaluation.
  std::optional<ReaderState> due;
  while (!AtLimit() && !stop_.load(std::memory_order_relaxed)) {
    std::unique_ptr<WorkItem> item = NewItem();
    if (item == nullptr) return false;
    if (!stream->Next(config_.train.batch, &item->batch)) {
      ClearBatch(&item->batch);
      spare_item_ = std::move(item);
      break;
    }
    if (due && !EmitSnapshot(*std::move(due), false)) return false;
    due.reset();
    ++reader_.steps;
    item->kind = WorkItem::Kind::kTrain;
    item->step = reader_.steps;
    item->tick = TickOf(item->batch);
    item->epoch = epoch;
    const double share = stream->progress();
    item->progress = share < 0 ? -1 : (static_cast<double>(epoch) + share) / epochs;
    if (config_.train.max_batches > 0)
      item->progress = std::max(item->progress, static_cast<double>(reader_.steps) /
                                                    static_cast<double>(config_.train.max_batches));
    if (train_reader_bytes_ == 0) train_reader_bytes_ = stream->buffer_bytes();
    if (!Emit(std::move(item))) return false;
    reader_.eval_due =
        has_test_ && config_.eval.every > 0 && reader_.steps % config_.eval.every == 0;
    const bool save = SnapshotDue();
    if (save || reader_.eval_due) reader_.position = stream->position();
    if (reader_.eval_due && !ReadEvaluation(false)) return false;
    if (save) due = reader_;
  }
  skipped_rows_ = reader_.skipped_rows + stream->skipped_rows();
  train_reader_bytes_ = std::max<int64_t>(train_reader_bytes_, stream->buffer_bytes());
  reader_.position = stream->position();
  if (reader_.steps == 0 && !stop_.load(std::memory_order_relaxed))
    throw Error(ErrorCode::kData, "the training data has no examples; check data.train");
  if (stop_.load(std::memory_order_relaxed)) return false;
  reader_.epoch_ended = !AtLimit();
  if (reader_.epoch_ended) {
    reader_.skipped_rows = skipped_rows_;
    reader_.position.clear();
  }
  const bool last = LastEpoch();
  reader_.eval_ends = true;
  reader_.eval_due = has_test_ && (last || config_.eval.each_epoch);
  if (reader_.eval_due && !ReadEvaluation(last)) return false;
  reader_.ended = last;
  if (due && !last && !EmitSnapshot(reader_, false)) return false;
  return !last;
}

// Of the batch that was read last. Time that goes back stands still.
uint32_t Pipeline::TickOf(const Batch& batch) {
  if (config_.train.clock == ClockKind::kBatches)
    return reader_.tick = static_cast<uint32_t>(std::min<int64_t>(reader_.steps, UINT32_MAX));
  for (int64_t time : batch.timestamps)
    reader_.tick = std::max(reader_.tick, static_cast<uint32_t>(std::clamp<int64_t>(
                                              time / config_.train.tick_seconds, 1, UINT32_MAX)));
  return reader_.tick;
}

bool Pipeline::ReadEvaluation(bool last) {
  OpenDataOptions options;
  options.part = DataPart::kTest;
  std::unique_ptr<DataStream> stream = options_.open(options);
  for (;;) {
    std::unique_ptr<WorkItem> item = NewItem();
    if (item == nullptr) return false;
    const bool stopped = stop_.load(std::memory_order_relaxed);
    const bool more = !stopped && stream->Next(config_.train.batch, &item->batch);
    item->kind = more ? WorkItem::Kind::kEval : WorkItem::Kind::kEvalEnd;
    item->complete = !stopped;
    item->step = reader_.steps;
    item->tick = reader_.tick;
    item->epoch = reader_.epoch;
    item->last_eval = last;
    if (!Emit(std::move(item))) return false;
    if (stopped) return false;
    if (!more) break;
  }
  test_reader_bytes_ = std::max<int64_t>(test_reader_bytes_, stream->buffer_bytes());
  if (!options_.train) skipped_rows_ = stream->skipped_rows();
  reader_.eval_due = false;
  if (config_.eval.early_stopping == 0) return true;
  ScopedSeconds wait(&read_time_.wait_output);
  return verdicts_.Pop().value_or(false);
}

}  // namespace terrace
