// A bounded queue between two stages.
//
// Push blocks while the queue is full, Pop while it is empty. Close is the producer's "no more":
// items already queued are still delivered. Cancel is either side's "stop now": queued items are
// dropped, both calls return at once. All calls are safe from any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "base/mutex.h"

namespace terrace {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity < 1 ? 1 : capacity) {}

  // False if the queue was closed or cancelled: the item was not taken.
  [[nodiscard]] bool Push(T item) EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    while (items_.size() >= capacity_ && !closed_) not_full_.Wait(&mu_);
    if (closed_) return false;
    items_.push_back(std::move(item));
    not_empty_.NotifyOne();
    return true;
  }

  // Nothing once the queue is closed and drained, or cancelled.
  [[nodiscard]] std::optional<T> Pop() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    while (items_.empty() && !closed_) not_empty_.Wait(&mu_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    not_full_.NotifyOne();
    return item;
  }

  void Close() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    closed_ = true;
    not_empty_.NotifyAll();
    not_full_.NotifyAll();
  }

  void Cancel() EXCLUDES(mu_) {
    MutexLock lock(&mu_);
    closed_ = true;
    items_.clear();
    not_empty_.NotifyAll();
    not_full_.NotifyAll();
  }

 private:
  const size_t capacity_;
  Mutex mu_;
  CondVar not_full_;
  CondVar not_empty_;
  std::deque<T> items_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace terrace
