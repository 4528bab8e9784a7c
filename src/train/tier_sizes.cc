#include "train/tier_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "tier/tiered_table.h"

namespace terrace {
namespace {

// Larger windows read more rows with one IO, but their batches take memory from rows.
constexpr int64_t kQueueShare = 7, kQueueShareOf = 32;
constexpr int64_t kMostWindow = 64;
// Where a quarter of the rows of a batch move, such a window reaches the limit of moves; larger
// ones would take memory from rows for batches that do not come.
constexpr int64_t kMovesPerRow = 4;
// More rows at once are read with fewer IOs, but their lists take memory from rows.
constexpr int64_t kMostMoves = (1 << 20) / kWindowParts;
constexpr int64_t kMoveShare = 24;
constexpr int64_t kOwnBatches = 4;
// Rounding to pages, the heap's own memory.
constexpr int64_t kSlackShare = 32;

std::string Size(int64_t bytes) { return ShortBytes(static_cast<double>(bytes)); }

}  // namespace

TierSizes DivideBudget(const TierNeeds& needs) {
  TierSizes sizes;
  int64_t least = 0;
  int64_t batch_rows = 0;
  for (size_t t = 0; t < needs.batch_rows.size(); ++t) {
    least += needs.batch_rows[t] * needs.row_bytes[t];
    batch_rows += needs.batch_rows[t];
  }
  // The batch that reaches the limit may go beyond it with all its rows.
  sizes.moves = std::min(kMostMoves, needs.budget / kMoveShare / needs.move_bytes);
  const int64_t fixed = needs.fixed_bytes + (sizes.moves + batch_rows) * needs.move_bytes;
  sizes.window =
      needs.window > 0
          ? needs.window
          : std::clamp<int64_t>(std::min(needs.WindowIn(needs.budget * kQueueShare / kQueueShareOf),
                                         kMovesPerRow * kWindowParts * sizes.moves /
                                             std::max<int64_t>(batch_rows, 1)),
                                1, kMostWindow);
  const auto rows_bytes = [&](int64_t window) {
    return needs.budget - needs.budget / kSlackShare - fixed - needs.QueueBytes(window);
  };
  while (sizes.window > 1 && rows_bytes(sizes.window) < 4 * least) --sizes.window;
  const int64_t rows = rows_bytes(sizes.window);
  if (rows < least) {
    // Some parts grow with the budget; and readers take more in one run than in another: a tenth
    // more.
    const double grows =
        1.0 / kSlackShare + 1.0 / kMoveShare +
        static_cast<double>(needs.growing_bytes) / static_cast<double>(needs.budget);
    const int64_t stays = needs.fixed_bytes - needs.growing_bytes + batch_rows * needs.move_bytes +
                          needs.QueueBytes(1) + least;
    const auto needed = static_cast<int64_t>(1.1 * static_cast<double>(stays) / (1 - grows));
    throw Error(
        ErrorCode::kUsage,
        fmt::format("tiers.memory.budget is {}: the process, readers, net and disk tier take {}, "
                    "{} batches on their way {}, the rows of one batch {}; raise it to {} or lower "
                    "train.batch",
                    Size(needs.budget), Size(fixed), needs.Items(sizes.window),
                    Size(needs.QueueBytes(sizes.window)), Size(least), Size(needed)));
  }
  // Tables take room as their rows come, so each gets what it uses; but what one batch needs, and
  // if it fits what some need, is kept for every one of them.
  sizes.shared_bytes = rows;
  const auto tables = static_cast<int64_t>(needs.row_bytes.size());
  for (size_t t = 0; t < needs.row_bytes.size(); ++t) {
    const int64_t even = (rows - least) / tables / needs.row_bytes[t];
    const int64_t more = std::min(even, (kOwnBatches - 1) * needs.batch_rows[t]);
    const int64_t own = needs.batch_rows[t] + more;
    sizes.own_rows.push_back(own);
    sizes.shared_bytes -= own * needs.row_bytes[t];
    sizes.guests.push_back(needs.guests ? std::min(more, own / 4) : 0);
  }
  return sizes;
}

}  // namespace terrace
