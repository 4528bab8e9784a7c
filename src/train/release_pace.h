// How fast batches go to training while the rows of the next window come.
//
// All batches of a window wait for all its rows. Where these take longer than training needs for
// the batches before, it would run through those at full speed and then have nothing to do for
// seconds. So they are given out as the rows arrive: training is no slower, and never pauses for
// long. Where it would pause briefly or not at all, nothing waits.
//
// Plain numbers; whoever owns it guards it.
#pragma once

#include <cstdint>

namespace terrace {

class ReleasePace {
 public:
  // The rows of so many more batches are there; they wait to be released.
  void Arrived(int64_t batches) { waiting_ += batches; }

  // The next window begins to be pulled, with so many moves.
  void BeginPull(int64_t moves);
  void Pulled(int64_t moves) { pulled_ += moves; }
  // All its rows are there, after so many seconds of pulling; meanwhile training needed
  // `train_seconds` a batch.
  void EndPull(double pull_seconds, double train_seconds);

  // Whether the next batch may go to training now; if so, it does.
  bool Release();

 private:
  int64_t waiting_ = 0;
  double move_seconds_ = 0;   // of the last window that says something about the pace
  double train_seconds_ = 0;  // a batch
  // Of the window that is pulled.
  bool paced_ = false;
  int64_t moves_ = 0, pulled_ = 0;
  int64_t batches_ = 0, released_ = 0;  // that waited when it began, and those that went since
};

}  // namespace terrace
