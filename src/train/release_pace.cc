#include "train/release_pace.h"

#include <algorithm>

namespace terrace {
namespace {

// Seconds of pulling that batches may be ahead of its rows.
constexpr double kAhead = 0.2;
constexpr int64_t kTellingMoves = 16 << 10;  // fewer say little about the pace

}  // namespace

void ReleasePace::BeginPull(int64_t moves, double now) {
  pulling_ = true;
  begin_ = now;
  moves_ = moves;
  pulled_ = 0;
  batches_ = waiting_;
  released_ = 0;
}

void ReleasePace::EndPull(double now) {
  if (moves_ >= kTellingMoves) move_seconds_ = (now - begin_) / static_cast<double>(moves_);
  pulling_ = false;
}

// Of the whole pull: as the last one let expect, or longer if it turns out so.
double ReleasePace::ExpectedSeconds(double now) const {
  double move_seconds = move_seconds_;
  if (pulled_ >= kTellingMoves)
    move_seconds = std::max(move_seconds, (now - begin_) / static_cast<double>(pulled_));
  return move_seconds * static_cast<double>(moves_);
}

bool ReleasePace::Release(double now) {
  const double expected = ExpectedSeconds(now);
  if (pulling_ && expected > kAhead && now - last_ < kLongestHold) {
    // Batches whose share of the rows is there may go: the first one at once, the last one when all
    // but a batch's share of the rows are there.
    const double arrived = static_cast<double>(pulled_) / static_cast<double>(moves_);
    const double share = arrived + kAhead / expected;
    if (static_cast<double>(released_) > share * static_cast<double>(batches_)) return false;
  }
  last_ = now;
  --waiting_;
  ++released_;
  return true;
}

}  // namespace terrace
