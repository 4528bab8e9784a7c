// A bounded queue between several producers and a consumer that wants items in order.
//
// Items carry the numbers 0, 1, 2, ..., each once; Pop delivers them in that order, whatever the
// order of Push. Push blocks while its item is `capacity` or more ahead of the next to be
// delivered, so the producer of that next one never waits for room. Close and Cancel as in
// BoundedQueue. All calls are safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace terrace {

template <typename T>
class OrderedQueue {
 public:
  explicit OrderedQueue(size_t capacity) : items_(capacity < 1 ? 1 : capacity) {}

  // False if the queue was closed or cancelled: the item was not taken.
  [[nodiscard]] bool Push(uint64_t number, T item) EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    while (number >= next_ + items_.size() && !closed_) changed_.Wait(&mu_);
    if (closed_) return false;
    Place(number) = std::move(item);
    if (number == next_) changed_.NotifyAll();
    return true;
  }

  // Nothing once the queue is closed and drained, or cancelled.
  [[nodiscard]] std::optional<T> Pop() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    while (!Place(next_).has_value() && !closed_) changed_.Wait(&mu_);
    std::optional<T> item = std::exchange(Place(next_), std::nullopt);
    if (item) ++next_;
    changed_.NotifyAll();
    return item;
  }

  void Close() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    closed_ = true;
    changed_.NotifyAll();
  }

  void Cancel() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    closed_ = true;
    for (std::optional<T>& item : items_) item.reset();
    changed_.NotifyAll();
  }

 private:
  std::optional<T>& Place(uint64_t number) REQUIRES(mu_) { return items_[number % items_.size()]; }

  Mutex mu_;
  CondVar changed_;
  std::vector<std::optional<T>> items_ GUARDED_BY(mu_);  // a ring
  uint64_t next_ GUARDED_BY(mu_) = 0;                    // to be delivered
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace terrace
