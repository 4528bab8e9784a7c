#include "table/table_life.h"

#include "base/bytes.h"
#include "base/error.h"

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
  return held_ ? *held_ : shared_;
}

void TableLife::Hold() {
  MutexLock lock(&mu_);
  held_ = shared_;
}

void TableLife::Release() {
  MutexLock lock(&mu_);
  held_.reset();
}

std::string TableLife::Save() const {
  std::string to;
  AppendValue(&to, due_.now);
  AppendValue(&to, uint64_t{due_.caps.size()});
  for (const CapMark& cap : due_.caps) {
    AppendValue(&to, cap.tick);
    AppendValue(&to, cap.level);
    AppendValue(&to, cap.seen);
  }
  AppendValue(&to, uint8_t{cap_ != nullptr});
  if (cap_ != nullptr) cap_->Save(&to);
  return to;
}

void TableLife::Load(std::string_view saved) {
  DueRule due;
  due.rules = due_.rules;
  due.now = TakeValue<uint32_t>(&saved);
  for (auto caps = TakeValue<uint64_t>(&saved); caps > 0; --caps) {
    CapMark cap;
    cap.tick = TakeValue<uint32_t>(&saved);
    cap.level = TakeValue<int32_t>(&saved);
    cap.seen = TakeValue<uint32_t>(&saved);
    due.caps.push_back(cap);
  }
  if ((TakeValue<uint8_t>(&saved) != 0) != (cap_ != nullptr))
    throw Error(ErrorCode::kUsage,
                "life.max_rows was set in one run and not in the other: set it as it was");
  if (cap_ != nullptr) cap_->Load(&saved);
  if (!saved.empty()) throw Error(ErrorCode::kCorruption, "there are bytes behind a table's life");
  due_ = due;
  MutexLock lock(&mu_);
  shared_ = due_;
}

}  // namespace terrace
