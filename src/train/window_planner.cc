#include "train/window_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "tier/disk_page.h"

namespace terrace {
namespace {

// Of the rows that a table can have in memory, those of a window are at most one in so many, so
// that one can come while another is trained even where they share no rows.
constexpr int64_t kWindowShare = 2;
constexpr int64_t kKnownShare = 1;
// Rows that batches share are counted by a sample of the keys, of so many where memory is full of
// them; and one key in so many at most.
constexpr int64_t kSample = 4096;
constexpr int64_t kMostSampleShare = 64;
// Of the batches of a window that is trained, one in so many may be left when the window after the
// next one is planned: its rows can come as soon as those of the next one are there.
constexpr int64_t kHeadStartShare = 8;

int64_t Moves(const Window& window) {
  size_t sum = 0;
  for (const RowMoves& moves : window.moves) sum += moves.size();
  return static_cast<int64_t>(sum);
}

}  // namespace

WindowPlanner::WindowPlanner(std::vector<TieredTable*> tables, const WindowLimits& limits,
                             Progress progress)
    : tables_(std::move(tables)),
      limits_(limits),
      progress_(std::move(progress)),
      known_keys_(tables_.size()) {
  for (const TieredTable* table : tables_)
    sample_share_.push_back(std::bit_floor(static_cast<uint64_t>(
        std::clamp<int64_t>(table->most_rows() / kSample, 1, kMostSampleShare))));
}

void WindowPlanner::Sample(Known* known) const {
  known->sample.resize(tables_.size());
  for (size_t t = 0; t < tables_.size(); ++t)
    for (uint64_t key : known->item->plans[t].row_keys)
      if ((MixOfKey(key) & (sample_share_[t] - 1)) == 0) known->sample[t].push_back(key);
}

void WindowPlanner::Touch(Known* known) {
  WorkItem& item = *known->item;
  if (!item.has_batch()) {
    known->touched = true;
    return;
  }
  const bool training = item.kind == WorkItem::Kind::kTrain;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (known->touched)
      tables_[t]->TouchMissing(StampOf(item), training, &item.plans[t]);
    else
      tables_[t]->Touch(StampOf(item), training, &item.plans[t]);
  }
  known->touched = true;
}

void WindowPlanner::Add(std::unique_ptr<WorkItem> item) {
  // A pin is a stamp and a bit.
  TERRACE_CHECK(item->number < std::numeric_limits<uint32_t>::max() / 2 - 1);
  Known known;
  // After an evaluation the reader may wait for its result.
  known.ends_window = item->kind == WorkItem::Kind::kEvalEnd;
  known.item = std::move(item);
  Sample(&known);
  for (size_t t = 0; t < tables_.size(); ++t)
    for (uint64_t key : known.sample[t]) ++known_keys_[t][key];
  Touch(&known);
  known_.push_back(std::move(known));
}

bool WindowPlanner::Fits(const std::vector<SampledKeys>& keys, int64_t share) const {
  for (size_t t = 0; t < tables_.size(); ++t)
    if (static_cast<int64_t>(keys[t].size() * sample_share_[t]) > tables_[t]->most_rows() / share)
      return false;
  return true;
}

// How many of a window's batches may be left when the one after the next is planned.
int64_t WindowPlanner::HeadStart(int64_t batches) const {
  return limits_.look_ahead ? (batches + kHeadStartShare / 2) / kHeadStartShare : 0;
}

bool WindowPlanner::WantsMore() const {
  if (known_.empty()) return true;
  // The last batches of the window in training are not known again yet when this one is planned.
  const int64_t wanted =
      limits_.batches * (limits_.look_ahead ? 2 : 1) - HeadStart(limits_.batches);
  return static_cast<int64_t>(known_.size()) < wanted && !known_.back().ends_window &&
         Fits(known_keys_, kKnownShare);
}

// How many of the known batches the next window has, if all goes well.
size_t WindowPlanner::Candidates() const {
  std::vector<SampledKeys> keys(tables_.size());
  size_t n = 0;
  while (n < known_.size() && static_cast<int64_t>(n) < limits_.batches) {
    for (size_t t = 0; t < tables_.size(); ++t)
      for (uint64_t key : known_[n].sample[t]) ++keys[t][key];
    if (n > 0 && !Fits(keys, kWindowShare)) break;
    if (known_[n++].ends_window) break;
  }
  return n;
}

bool WindowPlanner::Reserve(const WorkItem& item) {
  if (!item.has_batch()) return true;
  const uint32_t done = progress_.done();
  bool enough = true;
  for (size_t t = 0; t < tables_.size() && enough; ++t)
    enough = item.kind == WorkItem::Kind::kTrain ? tables_[t]->Reserve(item.plans[t], done)
                                                 : tables_[t]->ReserveGuests(item.plans[t], done);
  return enough;
}

// Room for the first known batch, whatever that takes. False: cancelled.
bool WindowPlanner::ReserveFirst() {
  Known& first = known_.front();
  for (;;) {
    const uint32_t done = progress_.done();
    if (Reserve(*first.item)) return true;
    if (done == last_stamp_) break;
    if (!progress_.wait(done + 1)) return false;
  }
  // Nothing is under way, and still there is no room: known batches hold it.
  ++stats_.squeezed;
  for (Known& known : known_) {
    for (size_t t = 0; t < tables_.size() && known.touched; ++t)
      tables_[t]->Forget(StampOf(*known.item), known.item->plans[t]);
    known.touched = false;
  }
  Touch(&first);
  if (!Reserve(*first.item)) FailTooLarge(*first.item);
  return true;
}

void WindowPlanner::Place(WorkItem* item, Window* window) {
  if (!item->has_batch()) return;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (item->kind == WorkItem::Kind::kTrain)
      tables_[t]->Place(StampOf(*item), &item->plans[t], &window->moves[t]);
    else
      tables_[t]->PlaceGuests(StampOf(*item), &item->plans[t], &window->moves[t]);
  }
}

// Until few enough windows are in flight. False: cancelled.
bool WindowPlanner::WaitForTurn() {
  const auto max_in_flight = static_cast<size_t>(limits_.prefetch);
  if (in_flight_.size() > max_in_flight) {
    const InFlight& window = in_flight_[in_flight_.size() - max_in_flight - 1];
    const auto left = static_cast<uint32_t>(HeadStart(window.batches));
    if (!progress_.wait(window.last_stamp - left)) return false;
  }
  while (!in_flight_.empty() && in_flight_.front().last_stamp <= progress_.done())
    in_flight_.pop_front();
  return true;
}

bool WindowPlanner::Next(Window* window) {
  if (!WaitForTurn()) return false;
  window->items.clear();
  window->moves.resize(tables_.size());
  for (RowMoves& moves : window->moves) moves.clear();

  // All batches of the window are touched before any row leaves: no row leaves and comes back.
  size_t candidates = Candidates();
  for (size_t i = 0; i < candidates; ++i) Touch(&known_[i]);
  for (size_t i = 0; i < candidates; ++i) {
    Known& known = known_.front();
    if (i == 0) {
      if (!ReserveFirst()) return false;
      if (known_.size() > 1 && !known_[1].touched) candidates = 1;
    } else {
      Touch(&known);  // the batches before brought rows
      if (!Reserve(*known.item)) break;
    }
    Place(known.item.get(), window);
    for (size_t t = 0; t < tables_.size(); ++t)
      for (uint64_t key : known.sample[t])
        if (const auto at = known_keys_[t].find(key); --at->second == 0) known_keys_[t].erase(at);
    last_stamp_ = StampOf(*known.item);
    window->items.push_back(std::move(known.item));
    known_.pop_front();
    // As many as one of these batches moves would be too many.
    const int64_t moves = Moves(*window);
    if (moves + moves / static_cast<int64_t>(window->items.size()) > limits_.moves) break;
  }
  for (size_t t = 0; t < tables_.size(); ++t) tables_[t]->EndWindow(&window->moves[t]);
  most_moves_ = std::max(most_moves_, Moves(*window));
  in_flight_.push_back({last_stamp_, std::ssize(window->items)});
  ++stats_.windows;
  stats_.batches += static_cast<int64_t>(window->items.size());
  const bool full = static_cast<int64_t>(window->items.size()) == limits_.batches;
  if (!full && !known_.empty()) ++stats_.cut;
  return true;
}

void WindowPlanner::FailTooLarge(const WorkItem& item) const {
  int64_t lack = 0;
  std::string rows_of;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto rows = static_cast<int64_t>(item.plans[t].row_keys.size());
    const TableSchema& schema = tables_[t]->memory().schema();
    lack += std::max<int64_t>(0, rows - tables_[t]->most_rows()) * TieredTable::RowBytes(schema);
    rows_of +=
        fmt::format("{}{} rows of table `{}`", t > 0 ? ", " : "", WithCommas(rows), schema.name);
  }
  throw Error(ErrorCode::kUsage,
              fmt::format("a batch of {} examples uses {}, and memory does not hold them beside "
                          "the rest: raise tiers.memory.budget to {} or lower train.batch",
                          item.batch.examples, rows_of,
                          ShortBytes(static_cast<double>(limits_.budget + 2 * lack))));
}

}  // namespace terrace
