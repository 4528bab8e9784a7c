#include "tier/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace terrace {
namespace {

void CheckInput(const PlanInput& input) {
  constexpr size_t kLimit = KeyDedup::kMaxKeys;
  if (input.keys.size() >= kLimit || input.bag_offsets.size() >= kLimit)
    throw Error(ErrorCode::kUsage,
                fmt::format("a batch has {} keys in {} bags; fewer than {} of each can be handled. "
                            "Lower train.batch",
                            input.keys.size(), input.bag_offsets.size(), kLimit));
  TERRACE_CHECK(!input.bag_offsets.empty() && input.bag_offsets.front() == 0 &&
                input.bag_offsets.back() == input.keys.size());
  TERRACE_CHECK(input.slots > 0 && (input.bag_offsets.size() - 1) % input.slots == 0);
  TERRACE_CHECK(input.values.empty() || input.values.size() == input.keys.size());
  TERRACE_CHECK(input.mean_slots.size() == static_cast<size_t>(input.slots));
}

// Calls f(bag, slot) for each bag in order.
template <typename F>
void ForBags(const PlanInput& input, F f) {
  const size_t bags = input.bag_offsets.size() - 1;
  for (size_t bag = 0; bag < bags;)
    for (int slot = 0; slot < input.slots; ++slot, ++bag) f(bag, slot);
}

bool NeedsScales(const PlanInput& input) {
  if (!input.values.empty()) return true;
  if (std::find(input.mean_slots.begin(), input.mean_slots.end(), 1) == input.mean_slots.end())
    return false;
  bool needed = false;
  ForBags(input, [&](size_t bag, int slot) {
    needed |=
        input.mean_slots[slot] != 0 && input.bag_offsets[bag + 1] - input.bag_offsets[bag] > 1;
  });
  return needed;
}

void FillScales(const PlanInput& input, Array<float>* scales) {
  scales->clear();
  if (!NeedsScales(input)) return;
  SetSize(scales, input.keys.size());
  ForBags(input, [&](size_t bag, int slot) {
    const uint32_t begin = input.bag_offsets[bag];
    const uint32_t end = input.bag_offsets[bag + 1];
    const float share = input.mean_slots[slot] != 0 ? 1.0f / static_cast<float>(end - begin) : 1.0f;
    for (uint32_t o = begin; o < end; ++o)
      (*scales)[o] = input.values.empty() ? share : input.values[o] * share;
  });
}

// The low bytes of each number come first. Another number follows, so all four may be copied.
template <size_t kBytes>
void PackNumbers(const Array<uint32_t>& numbers, Array<uint8_t>* packed) {
  const size_t n = numbers.size();
  SetSize(packed, n * kBytes);
  uint8_t* to = packed->data();
  for (size_t i = 0; i + 1 < n; ++i, to += kBytes) std::memcpy(to, &numbers[i], 4);
  if (n > 0) std::memcpy(to, &numbers[n - 1], kBytes);
}

template <size_t kBytes>
void UnpackNumbers(const Array<uint8_t>& packed, Array<uint32_t>* numbers) {
  const size_t n = packed.size() / kBytes;
  SetSize(numbers, n);
  const uint8_t* from = packed.data();
  for (size_t i = 0; i < n; ++i, from += kBytes) {
    (*numbers)[i] = 0;
    std::memcpy(&(*numbers)[i], from, kBytes);
  }
}

}  // namespace

void CountUses(const PlanInput& input, std::span<const float> labels, TablePlan* plan) {
  SetSize(&plan->shows, plan->row_keys.size());
  SetSize(&plan->clicks, plan->row_keys.size());
  std::fill(plan->shows.begin(), plan->shows.end(), 0);
  std::fill(plan->clicks.begin(), plan->clicks.end(), 0);
  const size_t slots = static_cast<size_t>(input.slots);
  for (size_t e = 0; e < labels.size(); ++e) {
    const uint32_t click = labels[e] > 0.5f ? 1 : 0;
    for (uint32_t o = input.bag_offsets[e * slots]; o < input.bag_offsets[(e + 1) * slots]; ++o) {
      ++plan->shows[plan->rows[o]];
      plan->clicks[plan->rows[o]] += click;
    }
  }
}

void KeepRows(std::span<const uint8_t> keep, TablePlan* plan) {
  const size_t rows = plan->row_keys.size();
  size_t kept = 0;
  Array<uint32_t>& numbers = plan->shows;  // of no use any more
  for (size_t r = 0; r < rows; ++r) {
    plan->row_keys[kept] = plan->row_keys[r];
    numbers[r] = static_cast<uint32_t>(kept);
    kept += keep[r];
  }
  plan->refused = kept < rows;
  plan->row_keys.resize(kept);
  if (!plan->refused) return;
  for (size_t r = 0; r < rows; ++r)
    if (keep[r] == 0) numbers[r] = static_cast<uint32_t>(kept);
  for (uint32_t& row : plan->rows) row = numbers[row];
}

void PackRows(TablePlan* plan) {
  const size_t rows = plan->row_keys.size() + (plan->refused ? 1 : 0);
  plan->packed_bytes = rows <= size_t{1} << 16 ? 2 : rows <= size_t{1} << 24 ? 3 : 0;
  if (plan->packed_bytes == 2) PackNumbers<2>(plan->rows, &plan->packed_rows);
  if (plan->packed_bytes == 3) PackNumbers<3>(plan->rows, &plan->packed_rows);
  if (plan->packed_bytes > 0)
    plan->rows.clear();
  else
    plan->packed_rows.clear();
}

void UnpackRows(TablePlan* plan) {
  if (plan->packed_bytes == 2) UnpackNumbers<2>(plan->packed_rows, &plan->rows);
  if (plan->packed_bytes == 3) UnpackNumbers<3>(plan->packed_rows, &plan->rows);
  plan->packed_bytes = 0;
}

// By counting sort.
void LinkRows(std::span<const uint32_t> bag_offsets, size_t rows, TablePlan* plan) {
  // Counts stand two places up, so that the sort's cursors end as the offsets.
  Array<uint32_t>& offsets = plan->row_offsets;
  SetSize(&offsets, rows + (plan->refused ? 1 : 0) + 2);
  std::fill(offsets.begin(), offsets.end(), 0);
  for (uint32_t row : plan->rows) ++offsets[row + 2];
  for (size_t r = 2; r < offsets.size(); ++r) offsets[r] += offsets[r - 1];

  uint32_t* const cursors = offsets.data() + 1;
  SetSize(&plan->row_bags, plan->rows.size());
  SetSize(&plan->row_scales, plan->scales.size());
  const bool scaled = !plan->scales.empty();
  const size_t bags = bag_offsets.size() - 1;
  for (size_t bag = 0; bag < bags; ++bag)
    for (uint32_t o = bag_offsets[bag]; o < bag_offsets[bag + 1]; ++o) {
      const uint32_t place = cursors[plan->rows[o]]++;
      plan->row_bags[place] = static_cast<uint32_t>(bag);
      if (scaled) plan->row_scales[place] = plan->scales[o];
    }
  offsets.pop_back();
}

void FillPositions(TablePlan* plan) {
  plan->positions.swap(plan->rows);
  if (plan->refused) plan->row_positions.push_back(0);
  for (uint32_t& position : plan->positions) position = plan->row_positions[position];
  if (plan->refused) plan->row_positions.pop_back();
}

int64_t TablePlan::bytes() const {
  return static_cast<int64_t>(8 * row_keys.capacity() +
                              4 * (rows.capacity() + row_offsets.capacity() + row_bags.capacity() +
                                   scales.capacity() + row_scales.capacity() +
                                   row_positions.capacity() + positions.capacity() +
                                   shows.capacity() + clicks.capacity()) +
                              packed_rows.capacity());
}

size_t TablePlan::occurrences() const {
  return packed_bytes > 0 ? packed_rows.size() / static_cast<size_t>(packed_bytes) : rows.size();
}

void Planner::PlanKeys(const PlanInput& input, TablePlan* plan) {
  CheckInput(input);
  plan->refused = false;
  plan->packed_bytes = 0;
  if (plan->rows.capacity() < plan->positions.capacity()) plan->rows.swap(plan->positions);
  dedup_.Run(input.keys, &plan->row_keys, &plan->rows);
  FillScales(input, &plan->scales);
}

void Planner::PlanTrain(const PlanInput& input, TablePlan* plan) {
  PlanKeys(input, plan);
  LinkRows(input.bag_offsets, plan->row_keys.size(), plan);
}

void PlaceRows(MemoryTier* tier, TablePlan* plan) {
  // Never at position 0: the default row gets no gradient.
  SetSize(&plan->row_positions, plan->row_keys.size());
  tier->FindOrCreate(plan->row_keys, plan->row_positions);
  FillPositions(plan);
}

void FindRows(const MemoryTier& tier, TablePlan* plan) {
  SetSize(&plan->row_positions, plan->row_keys.size());
  tier.Find(plan->row_keys, plan->row_positions);
  FillPositions(plan);
}

}  // namespace terrace
