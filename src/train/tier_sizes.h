// Divides a memory budget: queues, and rows in memory. What is fixed is subtracted first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace terrace {

struct TierNeeds {
  int64_t budget = 0;
  // Taken whatever happens: the process, readers, the net, the disk tier, buffers of moves.
  int64_t fixed_bytes = 0;
  int64_t growing_bytes = 0;  // of these, what is a share of the budget
  int64_t item_bytes = 0;     // a batch with its plan, but for ...
  int64_t key_bytes = 0;      // ... its distinct keys, which it has until its rows have places
  int64_t fixed_items = 0;    // batches outside of windows: in readers' queues and hands
  int64_t window = 0;         // batches a window; 0: as fits
  int64_t prefetch = 1;
  bool look_ahead = true;           // one more window is known
  int64_t move_bytes = 0;           // of a row that moves, in all the lists it may be on
  bool guests = false;              // there are evaluations
  std::vector<int64_t> batch_rows;  // by table: of one batch
  std::vector<int64_t> row_bytes;   // by table: of one row in memory

  // Whose batches exist at once: the next one, those pulled ahead, and the one in training, whose
  // batches become the last ones that are known as they are trained.
  int64_t windows() const { return prefetch + (look_ahead ? 2 : 1); }
  // With windows of so many batches.
  int64_t Items(int64_t batches) const { return fixed_items + windows() * batches; }
  int64_t KeyedItems(int64_t batches) const { return fixed_items + (look_ahead ? 2 : 1) * batches; }
  int64_t QueueBytes(int64_t batches) const {
    return Items(batches) * item_bytes + KeyedItems(batches) * key_bytes;
  }
  // The largest window whose batches take no more, may be 0 or less.
  int64_t WindowIn(int64_t queue_bytes) const {
    const int64_t a_batch = QueueBytes(1) - QueueBytes(0);
    return (queue_bytes - QueueBytes(0)) / std::max<int64_t>(a_batch, 1);
  }
};

struct TierSizes {
  int64_t window = 0;             // batches
  int64_t moves = 0;              // rows that move for one part of a window, about
  std::vector<int64_t> own_rows;  // by table: guaranteed, guests included
  std::vector<int64_t> guests;    // by table
  int64_t shared_bytes = 0;       // for rows of any table
};

// Throws Error(kUsage) with the budget that is needed if one batch's rows do not fit.
TierSizes DivideBudget(const TierNeeds& needs);

}  // namespace terrace
