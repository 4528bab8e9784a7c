// A batch on its way through the stages. Plain data; owned by one stage at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batch.h"
#include "tier/plan.h"

namespace terrace {

// Where reading stands between two batches.
struct ReaderState {
  int64_t steps = 0;         // training batches so far
  uint32_t tick = 0;         // of the last one
  int64_t epoch = 0;         // from 0
  bool eval_due = false;     // an evaluation belongs here and was not completed
  bool eval_ends = false;    // it is the one after the last batch of an epoch, or of the run
  bool epoch_ended = false;  // the next batch is of the next epoch
  bool ended = false;        // so is the run, as long as it was to be
  std::string position;      // of the epoch's stream; empty: its start
  int64_t skipped_rows = 0;  // of the epochs before
};

// A place in the stream at which a snapshot is taken. Filled in by the stages that it passes.
struct SnapshotPoint {
  bool last = false;  // nothing comes after it
  ReaderState reader;
  std::vector<std::string> admissions;  // by table; empty where all keys get rows
};

struct WorkItem {
  enum class Kind {
    kTrain,
    kEval,
    kEvalEnd,   // no batch: the evaluation is complete
    kSnapshot,  // no batch: the state after the one before it is to be saved
  };
  bool has_batch() const { return kind == Kind::kTrain || kind == Kind::kEval; }

  Kind kind = Kind::kTrain;
  bool last_eval = false;  // of the run
  bool complete = false;   // kEvalEnd: all of the test data was read
  int64_t step = 0;        // training batches up to here, this one included
  int64_t epoch = 0;
  uint32_t tick = 0;     // of train.clock; never decreases
  double progress = -1;  // of the whole run's input, 0..1; -1: unknown
  uint64_t number = 0;   // of all items, in stream order
  Batch batch;
  std::vector<TablePlan> plans;
  // With a disk tier, between dedup and link, by key group: how many keys each bag has, where all
  // have as many: their offsets are not kept. 0: they are.
  std::vector<uint32_t> bag_keys;
  std::unique_ptr<SnapshotPoint> snapshot;  // of its kind alone

  int64_t bytes() const {
    int64_t sum = BatchBytes(batch);
    for (const TablePlan& plan : plans) sum += plan.bytes();
    return sum;
  }
};

}  // namespace terrace
