// A table's rules at work: what is due at the batch in training, and for those that look from other
// threads.
//
// Begin, End and due() belong to the train stage's thread, but for due() between Begin and End,
// which its workers may read. Others take a copy, which is never ahead of training.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "table/lifecycle.h"
#include "table/row_cap.h"

namespace terrace {

class TableLife {
 public:
  explicit TableLife(const LifeConfig& config);

  const LifeRules& rules() const { return rules_; }
  bool expires() const { return rules_.config().expires(); }
  bool capped() const { return cap_ != nullptr; }

  // A batch, for training or evaluation, at `tick`, which never decreases.
  void Begin(uint32_t tick) { due_.now = tick; }
  const DueRule& due() const { return due_; }
  // A training batch has ended. `uses` of its rows, if the table is capped.
  void End(std::span<const RowUse> uses) EXCLUDES(mu_);

  // As of the last batch that ended, or of when it was held.
  DueRule Shared() const EXCLUDES(mu_);
  // While a snapshot of that batch is taken no row may go that it still has.
  void Hold() EXCLUDES(mu_);
  void Release() EXCLUDES(mu_);

  // All that is known beside the rows' own statistics, between two batches; who stores it adds a
  // checksum. Load throws Error(kCorruption) for anything that Save does not write, and
  // Error(kUsage) where one is capped and the other not.
  std::string Save() const;
  void Load(std::string_view saved) EXCLUDES(mu_);

 private:
  const LifeRules rules_;
  std::unique_ptr<RowCap> cap_;
  DueRule due_;

  mutable Mutex mu_;
  DueRule shared_ GUARDED_BY(mu_);
  std::optional<DueRule> held_ GUARDED_BY(mu_);
};

}  // namespace terrace
