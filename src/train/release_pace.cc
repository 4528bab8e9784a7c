#include "train/release_pace.h"

namespace terrace {
namespace {

constexpr double kShortPause = 0.4;          // seconds
constexpr int64_t kTellingMoves = 16 << 10;  // fewer say little about the pace

}  // namespace

void ReleasePace::BeginPull(int64_t moves) {
  moves_ = moves;
  pulled_ = 0;
  batches_ = waiting_;
  released_ = 0;
  paced_ = static_cast<double>(moves) * move_seconds_ >
           static_cast<double>(batches_) * train_seconds_ + kShortPause;
}

void ReleasePace::EndPull(double pull_seconds, double train_seconds) {
  if (moves_ >= kTellingMoves) move_seconds_ = pull_seconds / static_cast<double>(moves_);
  train_seconds_ = train_seconds;
  paced_ = false;
}

bool ReleasePace::Release() {
  // The first one goes at once, the last one when all but a batch's share of the rows are there.
  if (paced_ && static_cast<double>(released_) * static_cast<double>(moves_) >
                    static_cast<double>(batches_) * static_cast<double>(pulled_))
    return false;
  --waiting_;
  ++released_;
  return true;
}

}  // namespace terrace
