// The stages around training: `read` makes batches, `dedup` finds the distinct keys of each and who
// uses them, `plan` finds their rows; with a disk tier `pull` brings those that are not in memory,
// `link` finds who uses each and `push` writes those that leave memory. One thread each, but for
// dedup, whose threads take different batches, and pull, whose threads take different rows; bounded
// queues between them; the caller is the `train` stage.
//
// Evaluation batches travel the same way, in stream order: a test key is looked up exactly between
// the training batches before and after it, so results do not depend on how far ahead the stages
// run.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/interrupt_cpu.h"
#include "base/mutex.h"
#include "base/ordered_queue.h"
#include "base/queue.h"
#include "base/workers.h"
#include "data/open_data.h"
#include "tier/planner.h"
#include "tier/row_saver.h"
#include "train/model_state.h"
#include "train/release_pace.h"
#include "train/run_config.h"
#include "train/step.h"
#include "train/tier_sizes.h"
#include "train/window_planner.h"
#include "train/work_item.h"

namespace terrace {

// Dedup costs at most half of what training does, and about twice what planning does, which is one
// thread's: so many keep up with both.
inline int DedupThreads(int train_threads) { return std::clamp(train_threads / 2, 1, 3); }

// What is known of memory before the first batch.
struct MemoryNeeds {
  // Of a run through these: `process_bytes` before it, the net, the disk tier.
  static MemoryNeeds Of(const RunConfig& config, const ModelState& state, const StepRunner& step,
                        int64_t process_bytes);

  int64_t fixed_bytes = 0;  // all but readers, batches and rows
  int64_t rows = 0;         // not 0: so many rows of each table in memory, whatever the budget
};

struct PipelineOptions {
  // Opens a stream of batches; called by the read thread, once for each epoch and evaluation.
  std::function<std::unique_ptr<DataStream>(const OpenDataOptions&)> open;
  int dedup_threads = 1;
  MemoryNeeds needs;
  ReaderState start;          // where reading begins
  bool train = true;          // false: one evaluation, nothing else
  RowSaver* saver = nullptr;  // who has to know of rows that leave memory; null: nobody
  // Set when a stage fails and at the end, for who waits for input; null: nobody does.
  std::shared_ptr<std::atomic<bool>> cancelled = {};
};

class Pipeline {
 public:
  // Starts the stages. Everything passed outlives the pipeline. `stop` is looked at between
  // batches: once set, no more training batches are read, those under way are still delivered.
  Pipeline(const RunConfig& config, const FeatureSpec& spec, PipelineOptions options,
           ModelState* state, const std::atomic<bool>& stop);
  // Cancels what is under way and joins.
  ~Pipeline();

  // The next item in order; null at the end. Rethrows what a stage threw.
  std::unique_ptr<WorkItem> Next();
  // Gives an item back when all is done with it: its rows may leave, its memory is used again.
  void Recycle(std::unique_ptr<WorkItem> item) EXCLUDES(progress_mu_);
  // With eval.early_stopping the read stage waits after each evaluation for this word.
  void Continue(bool go_on);

  // After Next returned null.
  const StageTime& read_time() const { return read_time_; }
  StageTime dedup_time() const;  // mean of its threads
  const StageTime& plan_time() const { return plan_time_; }
  const StageTime& pull_time() const { return pull_time_; }
  const StageTime& link_time() const { return link_time_; }
  const StageTime& push_time() const { return push_time_; }
  WindowStats window_stats() const { return planner_ ? planner_->stats() : WindowStats{}; }
  int64_t window() const { return window_; }  // batches of one, at most; 0 without a disk tier
  // Of the training data; of the test data where nothing is trained.
  int64_t skipped_rows() const { return skipped_rows_; }
  int64_t reader_bytes() const { return train_reader_bytes_ + test_reader_bytes_; }
  int64_t read_bytes() const { return read_bytes_; }  // of the batches
  int64_t push_bytes() const { return push_bytes_; }  // of the rows that left
  int64_t keys() const { return keys_; }              // of all batches
  int64_t lookups() const { return lookups_; }        // distinct keys of training batches
  int64_t items() const { return max_items_; }        // that may exist at once
  int64_t queue_bytes() const;                        // of all of them, at most
  // Of the dedup threads, of keys without a row and of the search for due rows.
  int64_t scratch_bytes() const;
  int64_t tier_bytes() const;  // of moves, chunks and inverse indexes, with a disk tier

 private:
  using ItemQueue = BoundedQueue<std::unique_ptr<WorkItem>>;

  struct DedupWorker {
    std::vector<Planner> planners;      // by key group
    std::vector<Array<uint32_t>> rows;  // by key group: of the batch at hand, before it is packed
    StageTime time;
    std::jthread thread;
  };

  static constexpr int kWriteBacks = 12;  // that exist at once
  static constexpr int kPartsAhead = 1;   // parts of windows that wait to be pulled

  // A move is on the list of a part that is planned, or waits, or is pulled; and planning it takes
  // memory in several lists of keys and of rows that leave.
  static constexpr int64_t kMoveBytes = (3 + kPartsAhead) * int64_t{sizeof(RowMove)} + 72;

  // One thread of the pull stage.
  struct Puller {
    FetchBuffers buffers = {};
    CpuStay cpu;
    double wait_output = 0;  // seconds
  };

  void ReadLoop();
  bool ReadEpoch(int64_t epoch);
  bool ReadEvaluation(bool last);
  bool AtLimit() const;
  bool LastEpoch() const;
  bool SnapshotDue() const;
  bool EmitSnapshot(ReaderState reader, bool last);
  bool Emit(std::unique_ptr<WorkItem> item);
  std::unique_ptr<WorkItem> NewItem();
  void GiveKeys(Batch* batch) EXCLUDES(mu_);
  void TakeKeys(Batch* batch) EXCLUDES(mu_);
  void GiveOffsets(WorkItem* item) EXCLUDES(mu_);
  void TakeOffsets(WorkItem* item) EXCLUDES(mu_);
  int64_t KeyedItems() const;
  void DedupLoop(DedupWorker* worker);
  void DedupItem(DedupWorker* worker, WorkItem* item);
  uint32_t TickOf(const Batch& batch);
  void PlanLoop();
  void PlanItem(WorkItem* item);
  void AdmitKeys(WorkItem* item);
  void SaveAdmissions(SnapshotPoint* point) const;
  int64_t AdmissionBytes() const;
  void CheckAdmission() const;
  // Gives positions of rows that are due back, some at a time.
  void Sweep(size_t table, const WorkItem& item) EXCLUDES(progress_mu_);
  void CheckMemory();
  void WindowLoop();
  void StartTiers(const WorkItem& first);
  void KeepQueueBytes(const WorkItem& item);
  void UseSpareMemory();
  void SetWindow(int64_t batches);
  void LimitWindow(int64_t batches);
  void GrowWindow(int64_t batches);
  bool WaitForDone(uint32_t stamp) EXCLUDES(progress_mu_);
  void PullLoop();
  bool PullPart(WindowPart* part, Workers* team);
  void BeginPull(const WindowPart& part) EXCLUDES(progress_mu_);
  void EndPull(const WindowPart& part, double seconds) EXCLUDES(progress_mu_);
  bool WaitForRelease() EXCLUDES(progress_mu_);
  bool PullChunk(size_t table, uint32_t cuts, std::span<const RowMove> moves, int worker);
  bool WaitForWrites() EXCLUDES(progress_mu_);
  void GiveMoves(std::vector<RowMoves>* moves) EXCLUDES(mu_);
  void TakeMoves(std::vector<RowMoves>* moves) EXCLUDES(mu_);
  void LinkLoop();
  int64_t LinkedItems() const;
  // `most`: batches that have keys at the same time.
  void GiveRowKeys(WorkItem* item, int64_t most) EXCLUDES(mu_);
  void TakeRowKeys(TablePlan* plan) EXCLUDES(mu_);
  void GiveLinks(WorkItem* item) EXCLUDES(mu_);
  void TakeLinks(WorkItem* item) EXCLUDES(mu_);
  void PushLoop();
  void CheckDisk();
  void Join();
  void Fail() EXCLUDES(mu_);
  void CancelAll();

  const RunConfig& config_;
  const FeatureSpec& spec_;
  const PipelineOptions options_;
  ModelState& state_;
  const std::atomic<bool>& stop_;
  const bool has_test_;
  const int dedup_threads_;
  const MemoryNeeds needs_;
  RowSaver* const saver_;
  std::atomic<int64_t> max_items_;
  std::atomic<int64_t> items_made_{0};  // that exist

  ItemQueue read_queue_;
  OrderedQueue<std::unique_ptr<WorkItem>> dedup_queue_;
  ItemQueue plan_queue_;
  ItemQueue free_items_;
  BoundedQueue<bool> verdicts_;
  BoundedQueue<WindowPart> part_queue_;
  ItemQueue pulled_queue_;
  BoundedQueue<std::unique_ptr<WriteBack>> write_queue_;
  BoundedQueue<std::unique_ptr<WriteBack>> free_writes_;

  double next_at_ = 0;  // of the caller: when it got its last item

  // Of the read thread, then readable after the end.
  StageTime read_time_;
  ReaderState reader_;
  double last_snapshot_ = 0;  // when it was read
  int64_t last_saved_ = 0;    // batches before it
  uint64_t items_read_ = 0;
  int64_t skipped_rows_ = 0;
  std::atomic<int64_t> train_reader_bytes_{0};  // at most
  std::atomic<int64_t> test_reader_bytes_{0};
  int64_t read_bytes_ = 0, keys_ = 0;
  std::unique_ptr<WorkItem> spare_item_;  // taken for a batch that did not come
  // Of the plan thread, then readable after the end.
  StageTime plan_time_;
  int64_t lookups_ = 0;
  int64_t item_bytes_ = 0;  // of the largest batch with its plan; with a disk tier without ...
  int64_t key_bytes_ = 0;   // ... the distinct keys of the largest one
  // Of a table in memory alone whose rows expire: the last batch that holds each position, and
  // where the search for due rows goes on.
  struct Sweeper {
    std::vector<uint32_t> stamps;
    size_t hand = 1;
  };
  std::vector<Sweeper> sweepers_;  // by table
  std::vector<uint8_t> admitted_;
  std::vector<uint32_t> swept_;

  std::unique_ptr<WindowPlanner> planner_;
  RowRoom room_;
  int64_t window_ = 0;          // batches of one, at most
  int64_t largest_window_ = 0;  // since windows were last limited
  TierNeeds tier_needs_;
  int64_t admission_bytes_ = 0;  // set aside for keys without a row
  int64_t queue_bytes_ = 0;      // that all items together may take
  // Of the pull and push threads, then readable after the end.
  StageTime pull_time_;
  std::vector<Puller> pullers_;
  StageTime link_time_;
  StageTime push_time_;
  bool pull_stays_ = false;   // on the CPU that the disk interrupts
  double pull_seconds_ = 0;   // of this window's parts
  double paced_seconds_ = 0;  // trained_seconds_ and trained_ when pull last looked
  int64_t paced_batches_ = 0;
  int64_t link_bytes_ = 0;  // of the largest batch's inverse indexes
  int64_t push_bytes_ = 0;
  std::atomic<int64_t> writes_started_{0};  // of pull
  int64_t chunk_rows_ = 0;
  int64_t chunk_bytes_ = 0;  // of all chunks

  // How far training and write-backs are, for who waits for them.
  Mutex progress_mu_;
  CondVar progressed_;
  uint32_t done_ GUARDED_BY(progress_mu_) = 0;
  int64_t trained_ GUARDED_BY(progress_mu_) = 0;  // batches
  double trained_seconds_ GUARDED_BY(progress_mu_) = 0;
  int64_t writes_ended_ GUARDED_BY(progress_mu_) = 0;
  ReleasePace release_pace_ GUARDED_BY(progress_mu_);
  bool cancelled_ GUARDED_BY(progress_mu_) = false;

  Mutex mu_;
  std::exception_ptr error_ GUARDED_BY(mu_);
  // Memory for keys of the next batches: after dedup a batch does not need its own any more.
  std::vector<std::vector<uint64_t>> spare_keys_ GUARDED_BY(mu_);
  // The same for offsets, with a disk tier.
  std::vector<std::vector<uint32_t>> spare_offsets_ GUARDED_BY(mu_);
  // The same for distinct keys, with a disk tier.
  std::vector<Array<uint64_t>> spare_row_keys_ GUARDED_BY(mu_);
  // Memory for the moves of the next windows.
  std::vector<std::vector<RowMoves>> spare_moves_ GUARDED_BY(mu_);
  // Memory for rows and inverse indexes of the next batches, in plans that have nothing else.
  std::vector<TablePlan> spare_links_ GUARDED_BY(mu_);

  std::atomic<int> dedup_running_;  // the last to end closes dedup_queue_
  std::vector<std::unique_ptr<DedupWorker>> dedup_workers_;
  std::jthread read_thread_;
  std::jthread plan_thread_;
  std::jthread pull_thread_;
  std::jthread link_thread_;
  std::jthread push_thread_;
};

}  // namespace terrace
