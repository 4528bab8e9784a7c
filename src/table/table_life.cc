#include "table/table_life.h"

namespace terrace {

TableLife::TableLife(const LifeConfig& config) : rules_(config) {
  if (config.max_rows > 0) cap_ = std::make_unique<RowCap>(&rules_);
  if (config.expires()) due_.rules = &rules_;
  MutexLock lock(&mu_);
  shared_ = due_;
}

void TableLife::End(std::span<const RowUse> uses) {
  if (cap_ != nullptr) cap_->Step(due_.now, uses, &due_.caps);
  MutexLock lock(&mu_);
  shared_ = due_;
}

DueRule TableLife::Shared() const {
  MutexLock lock(&mu_);
  return shared_;
}

}  // namespace terrace
