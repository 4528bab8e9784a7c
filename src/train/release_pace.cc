#include "train/release_pace.h"

#include <algorithm>

namespace terrace {
namespace {

// Seconds of pulling that batches may be ahead of its rows.
constexpr double kAhead = 0.2;
// Of windows of few batches, one is kept back for slow moments: they would be ahead by less.
constexpr double kKeptBack = 0.9;  // of a batch
constexpr int64_t kFewBatches = 3;
constexpr int64_t kTellingMoves = 16 << 10;  // fewer say little about the pace

}  // namespace

void ReleasePace::BeginPull(int64_t moves, double plan_seconds, double now) {
  plan_seconds_ = plan_seconds;
  pulling_ = true;
  begin_ = now;
  moves_ = moves;
  pulled_ = 0;
  batches_ = waiting_;
  released_ = 0;
}

void ReleasePace::GoOn(double now) {
  begin_ += now - paused_;
  paused_ = 0;
}

void ReleasePace::EndPull(int64_t batches, double now) {
  if (moves_ >= kTellingMoves) move_seconds_ = (now - begin_) / static_cast<double>(moves_);
  pulling_ = false;
  begin_ = now;
  due_ += waiting_;
  waiting_ = batches_ = batches;
  released_ = 0;
}

// Of the whole pull: as the last one let expect, or longer if it turns out so. Between two pulls of
// the next plan, too.
double ReleasePace::ExpectedSeconds(double now) const {
  if (pulling_ && paused_ > 0) now = paused_;
  const auto moves = static_cast<double>(moves_);
  if (!pulling_) return plan_seconds_ + move_seconds_ * moves;
  if (pulled_ < kTellingMoves) return move_seconds_ * moves;
  return std::max(move_seconds_, (now - begin_) / static_cast<double>(pulled_)) * moves;
}

bool ReleasePace::Held(double now) const {
  const double expected = ExpectedSeconds(now);
  if (finished_ || due_ > 0 || expected <= kAhead || now - last_ >= kLongestHold) return false;
  // Batches whose share of the rows is there may go.
  const double arrived = pulling_ ? static_cast<double>(pulled_) / static_cast<double>(moves_)
                                  : (now - begin_) / expected;
  const double share = arrived + kAhead / expected;
  const double kept_back = batches_ < kFewBatches ? 0 : kKeptBack;
  return static_cast<double>(released_) > share * static_cast<double>(batches_) - kept_back;
}

bool ReleasePace::Release(double now) {
  if (Held(now)) return false;
  last_ = now;
  if (due_ > 0) {
    --due_;
  } else {
    --waiting_;
    ++released_;
  }
  return true;
}

}  // namespace terrace
