// How fast batches go to training while the rows of the next window come.
//
// All batches of a window wait for all its rows. Where these take longer than training needs for
// the batches before, it would run through those at full speed and then have nothing to do for
// seconds. So they are given out evenly as the rows arrive: many of them a little ahead of the
// rows, of few one is kept back for slow moments. Training is no slower and never pauses for long.
// Before the next window begins to be pulled, they go at the pace that is expected of it and of its
// plan, which may not be made yet.
//
// Plain numbers; whoever owns it guards it. Times are seconds of one clock.
#pragma once

#include <cstdint>

namespace terrace {

class ReleasePace {
 public:
  // The next window begins to be pulled, with about so many moves, whose plan took so long.
  void BeginPull(int64_t moves, double plan_seconds, double now);
  void Pulled(int64_t moves) { pulled_ += moves; }
  // The pull has to wait, for training; and goes on.
  void Pause(double now) { paused_ = now; }
  void GoOn(double now);
  // All its rows are there: so many more batches wait to be released.
  void EndPull(int64_t batches, double now);
  // No window comes any more.
  void Finish() { finished_ = true; }

  // Whether the next batch may go to training now; if so, it does. If not, rows that arrive may
  // change that, and so may time.
  bool Release(double now);
  // Before a batch goes, whatever arrives. Longer than one's share of a pull usually is, lest there
  // be none left at its end.
  static constexpr double kLongestHold = 0.8;
  // Who waits for Release looks again after so long, also where no rows arrive.
  static constexpr double kLook = 0.02;

 private:
  double ExpectedSeconds(double now) const;
  bool Held(double now) const;

  int64_t due_ = 0;          // may go at once: the window after theirs is there
  int64_t waiting_ = 0;      // the others
  double plan_seconds_ = 0;  // of the last window
  double move_seconds_ = 0;  // of the last window that says something about the pace
  double last_ = 0;          // when a batch was released
  bool finished_ = false;
  // Of the window that is pulled, or between two of the last one.
  bool pulling_ = false;
  double begin_ = 0;   // of the pull, or of the time between two; pauses are left out
  double paused_ = 0;  // when; 0: it is not
  int64_t moves_ = 0, pulled_ = 0;
  int64_t batches_ = 0, released_ = 0;  // that waited then, and those of them that went since
};

}  // namespace terrace
