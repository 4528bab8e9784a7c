// How fast batches go to training while the rows of the next window come.
//
// All batches of a window wait for all its rows. Where these take longer than training needs for
// the batches before, it would run through those at full speed and then have nothing to do for
// seconds. So they are given out evenly as the rows arrive, and a little ahead of them: training is
// no slower, since it waits for a share of the rows that is there already, and never pauses for
// long. Where no rows arrive for a while, a batch goes now and then all the same.
//
// Plain numbers; whoever owns it guards it. Times are seconds of one clock.
#pragma once

#include <cstdint>

namespace terrace {

class ReleasePace {
 public:
  // The rows of so many more batches are there; they wait to be released.
  void Arrived(int64_t batches) { waiting_ += batches; }

  // The next window begins to be pulled, with so many moves.
  void BeginPull(int64_t moves, double now);
  void Pulled(int64_t moves) { pulled_ += moves; }
  // All its rows are there.
  void EndPull(double now);

  // Whether the next batch may go to training now; if so, it does. If not, rows that arrive may
  // change that, and so may time.
  bool Release(double now);
  static constexpr double kLongestHold = 0.4;  // before a batch goes, whatever arrives

 private:
  double ExpectedSeconds(double now) const;

  int64_t waiting_ = 0;
  double move_seconds_ = 0;  // of the last window that says something about the pace
  double last_ = 0;          // when a batch was released
  // Of the window that is pulled.
  bool pulling_ = false;
  double begin_ = 0;
  int64_t moves_ = 0, pulled_ = 0;
  int64_t batches_ = 0, released_ = 0;  // that waited when it began, and those that went since
};

}  // namespace terrace
