// Cuts the stream of batches into windows and decides, for each, which rows move between the tiers.
//
// Batches are added as soon as they are known; their rows that are in memory are pinned from then
// on. The next window is taken from the front of the known batches. It is cut short where its rows
// do not fit beside those in use; a single batch waits for the ones before it to be trained, and at
// last pushes out what later batches would have used. Only a batch whose own rows do not fit is
// refused.
//
// A window comes in parts, each a range of the disk's order: its rows are as many to a read as
// those of a whole window, and its victims are chosen when the window before it is trained as far.
// So rows that only that one used leave sooner, and rows that will be used again can stay. Where it
// is not certain that all parts will find room, there is one part.
//
// Belongs to the plan thread. Throws Error(kUsage), with the budget that is needed, for a batch
// that does not fit; the run cannot go on then.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tier/tiered_table.h"
#include "train/work_item.h"

namespace terrace {

// Part of what moves before a window's batches can be trained; with the last part these come.
struct WindowPart {
  KeyPart part;
  std::vector<std::unique_ptr<WorkItem>> items;  // of the last part
  std::vector<RowMoves> moves;                   // by table
  uint32_t cuts = 0;                             // of the stores, before it ended (row_saver.h)
  double plan_seconds = 0;                       // that planning worked on it

  int64_t move_count() const;
};

struct WindowLimits {
  int64_t batches = 1;  // of a window
  uint32_t parts = kWindowParts;
  int64_t moves = 1 << 30;  // of a part, about; one batch may have more
  int64_t prefetch = 1;     // windows that may be pulled or wait while one is trained
  bool look_ahead = true;   // pin what the window after the next one uses, too
  int64_t budget = 0;       // of memory, for errors
};

struct WindowStats {
  int64_t windows = 0;
  int64_t batches = 0;
  int64_t cut = 0;       // because its rows did not fit
  int64_t squeezed = 0;  // batches that pushed out what later ones were known to use
};

class WindowPlanner {
 public:
  // How far training is.
  struct Progress {
    std::function<uint32_t()> done;  // the stamp of the last batch trained
    // Returns when done() is at least `stamp`; false: the run is being cancelled.
    std::function<bool(uint32_t stamp)> wait;
  };

  WindowPlanner(std::vector<TieredTable*> tables, const WindowLimits& limits, Progress progress);

  static uint32_t StampOf(const WorkItem& item) { return static_cast<uint32_t>(item.number) + 1; }

  // The next batch of the stream, with the distinct keys in its plans.
  void Add(std::unique_ptr<WorkItem> item);
  // More batches would be of use before the next window is made. Not between parts.
  bool WantsMore() const;
  bool empty() const { return known_.empty(); }
  // Makes the next part of a window, or the first one of the next window; not empty(). False:
  // cancelled.
  bool Next(WindowPart* out);

  int64_t batches() const { return limits_.batches; }
  void set_batches(int64_t batches) { limits_.batches = batches; }
  const WindowStats& stats() const { return stats_; }
  int64_t most_moves() const { return most_moves_; }  // of one part

 private:
  // Of a table: how many batches use each key of a sample.
  using SampledKeys = std::unordered_map<uint64_t, int32_t>;

  struct Known {
    std::unique_ptr<WorkItem> item;
    std::vector<std::vector<uint64_t>> sample;  // by table: of its keys
    bool touched = false;
    bool ends_window = false;
  };

  struct InFlight {
    uint32_t last_stamp = 0;
    int64_t batches = 0;
  };

  void Touch(Known* known, KeyPart part = {});
  void Sample(Known* known) const;
  bool Fits(const std::vector<SampledKeys>& keys, int64_t share) const;
  size_t Candidates() const;
  int64_t HeadStart(int64_t batches) const;
  bool AllPartsFit(size_t batches) const;
  bool WaitForTurn();
  bool WaitForPart();
  void LimitWindow();
  bool BeginWindow();
  void EndWindow(WindowPart* out);
  bool PlaceFirstPart(WindowPart* out);
  bool PlaceLaterPart(WindowPart* out);
  bool PlaceTogether(WindowPart* out);
  size_t BatchesThatFit() const;
  bool Reserve(const WorkItem& item);
  bool ReserveAnyhow(size_t batch);
  void Place(WorkItem* item, WindowPart* out);
  [[noreturn]] void FailTooLarge(const WorkItem& item) const;

  const std::vector<TieredTable*> tables_;
  WindowLimits limits_;
  const Progress progress_;
  std::deque<Known> known_;
  std::vector<uint64_t>
      sample_share_;  // by table, a power of two: one in so many keys is in samples
  std::vector<SampledKeys> known_keys_;  // by table: of the known batches
  std::deque<InFlight> in_flight_;       // windows not known to be trained
  KeyPart part_;                         // the next one
  size_t window_batches_ = 0;            // known batches of the window whose part that is
  bool together_ = false;                // they are placed at once
  uint32_t last_stamp_ = 0;              // of the last window
  WindowStats stats_;
  int64_t most_moves_ = 0;
};

}  // namespace terrace
