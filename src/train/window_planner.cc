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

// Of the rows that a table can have in memory, those of a window are at most so many in a hundred,
// so that one can come while another is trained even where they share no rows; with parts, where
// they share some. Of those of all known batches.
constexpr int64_t kWindowShare = 50, kWindowShareInParts = 67;
constexpr int64_t kKnownShare = 100;
// Rows that batches share are counted by a sample of the keys, of so many where memory is full of
// them; and one key in so many at most.
constexpr int64_t kSample = 4096;
constexpr int64_t kMostSampleShare = 64;
// Of the batches of a window that is trained, one in so many may be left when the window after the
// next one is planned: its rows can come as soon as those of the next one are there. The same of
// what is trained when a later part is planned.
constexpr int64_t kHeadStartShare = 8;

int64_t Rounded(int64_t n, int64_t share) { return (n + share / 2) / share; }

}  // namespace

int64_t WindowPart::move_count() const {
  int64_t sum = 0;
  for (const RowMoves& of_table : moves) sum += std::ssize(of_table);
  return sum;
}

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

void WindowPlanner::Touch(Known* known, KeyPart part) {
  WorkItem& item = *known->item;
  if (!item.has_batch()) {
    known->touched = true;
    return;
  }
  const bool training = item.kind == WorkItem::Kind::kTrain;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (known->touched)
      tables_[t]->TouchMissing(StampOf(item), training, &item.plans[t], part);
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
    if (static_cast<int64_t>(100 * keys[t].size() * sample_share_[t]) >
        share * tables_[t]->most_rows())
      return false;
  return true;
}

// How many of a window's batches may be left when the one after the next is planned.
int64_t WindowPlanner::HeadStart(int64_t batches) const {
  return limits_.look_ahead ? Rounded(batches, kHeadStartShare) : 0;
}

bool WindowPlanner::WantsMore() const {
  if (!part_.first()) return false;
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
    if (n > 0 && !Fits(keys, limits_.parts > 1 ? kWindowShareInParts : kWindowShare)) break;
    if (known_[n++].ends_window) break;
  }
  return n;
}

// Whether, when all windows under way are trained, there will be room for what these batches miss.
bool WindowPlanner::AllPartsFit(size_t batches) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    int64_t missing = 0;
    for (size_t i = 0; i < batches; ++i) {
      const WorkItem& item = *known_[i].item;
      if (item.kind == WorkItem::Kind::kTrain) missing += item.plans[t].missing;
      if (item.kind == WorkItem::Kind::kEval && item.plans[t].missing > tables_[t]->guests())
        return false;
    }
    if (missing > tables_[t]->RoomAfter(last_stamp_, tables_.size() == 1)) return false;
  }
  return true;
}

bool WindowPlanner::Reserve(const WorkItem& item) {
  if (!item.has_batch()) return true;
  const uint32_t done = progress_.done();
  bool enough = true;
  for (size_t t = 0; t < tables_.size() && enough; ++t)
    enough = item.kind == WorkItem::Kind::kTrain
                 ? tables_[t]->Reserve(item.plans[t], done, part_)
                 : tables_[t]->ReserveGuests(item.plans[t], done, part_);
  return enough;
}

// Room for a batch of the window, whatever that takes. False: cancelled.
bool WindowPlanner::ReserveAnyhow(size_t batch) {
  const WorkItem& item = *known_[batch].item;
  for (;;) {
    const uint32_t done = progress_.done();
    if (Reserve(item)) return true;
    if (done >= last_stamp_) break;
    if (!progress_.wait(done + 1)) return false;
  }
  // Nothing is under way, and still there is no room: known batches hold it.
  TERRACE_CHECK(part_.parts == 1 && batch == 0);
  ++stats_.squeezed;
  for (Known& known : known_) {
    for (size_t t = 0; t < tables_.size() && known.touched; ++t)
      tables_[t]->Forget(StampOf(*known.item), known.item->plans[t]);
    known.touched = false;
  }
  Touch(&known_.front());
  if (!Reserve(item)) FailTooLarge(item);
  if (known_.size() > 1) window_batches_ = 1;
  return true;
}

void WindowPlanner::Place(WorkItem* item, WindowPart* out) {
  if (!item->has_batch()) return;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (item->kind == WorkItem::Kind::kTrain)
      tables_[t]->Place(StampOf(*item), &item->plans[t], &out->moves[t], part_);
    else
      tables_[t]->PlaceGuests(StampOf(*item), &item->plans[t], &out->moves[t], part_);
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

// Until of the window in training as much is trained as the parts before are of the whole, but for
// a head start. False: cancelled.
bool WindowPlanner::WaitForPart() {
  const auto max_in_flight = static_cast<size_t>(limits_.prefetch);
  if (in_flight_.size() < max_in_flight) return true;
  const InFlight& window = in_flight_[in_flight_.size() - max_in_flight];
  const int64_t left = window.batches - window.batches * part_.index / part_.parts +
                       Rounded(window.batches, kHeadStartShare);
  if (left >= window.batches) return true;
  return progress_.wait(window.last_stamp - static_cast<uint32_t>(left));
}

// What several batches miss moves once. Even if all rows were missed twice, batches beyond this
// would move too many, and only make lists longer.
void WindowPlanner::LimitWindow() {
  int64_t missing = 0;
  for (size_t i = 0; i < window_batches_; ++i) {
    for (const TablePlan& plan : known_[i].item->plans)
      missing += known_[i].item->has_batch() ? plan.missing : 0;
    if (i > 0 && missing > 2 * limits_.moves * limits_.parts) window_batches_ = i;
  }
}

bool WindowPlanner::BeginWindow() {
  if (!WaitForTurn()) return false;
  // All batches of the window are touched before any row leaves: no row leaves and comes back.
  window_batches_ = Candidates();
  for (size_t i = 0; i < window_batches_; ++i) Touch(&known_[i]);
  LimitWindow();
  part_ = {0, static_cast<uint32_t>(std::min<size_t>(limits_.parts, window_batches_))};
  if (part_.parts > 1 && !AllPartsFit(window_batches_)) part_.parts = 1;
  // A test key is looked up between the batches before and after it.
  together_ =
      part_.parts > 1 &&
      std::all_of(known_.begin(), known_.begin() + static_cast<ptrdiff_t>(window_batches_),
                  [](const Known& known) { return known.item->kind != WorkItem::Kind::kEval; });
  return true;
}

// Where rows of the first part do not fit now, or would move in too large a number, the window
// ends. False: cancelled.
bool WindowPlanner::PlaceTogether(WindowPart* out) {
  const auto batches_of = [&](size_t table) {
    std::vector<TieredTable::BatchRows> batches;
    for (size_t i = 0; i < window_batches_; ++i) {
      WorkItem& item = *known_[i].item;
      batches.push_back({StampOf(item), item.has_batch() ? &item.plans[table] : nullptr});
    }
    return batches;
  };
  for (size_t t = 0; t < tables_.size(); ++t) tables_[t]->ListArrivals(batches_of(t), part_);
  int64_t moves = 0;
  for (size_t i = 0; i < window_batches_ && part_.first(); ++i) {
    for (const TieredTable* table : tables_) moves += table->arrivals(i);
    // As many as one of these batches moves would be too many.
    if (moves + moves / static_cast<int64_t>(i + 1) > limits_.moves) window_batches_ = i + 1;
  }
  for (;;) {
    const uint32_t done = progress_.done();
    bool enough = true;
    for (TieredTable* table : tables_)
      if (!table->ReserveArrivals(window_batches_, done)) enough = false;
    if (enough) break;
    const size_t fit = part_.first() ? BatchesThatFit() : 0;
    if (fit > 0) {
      window_batches_ = fit;
      break;
    }
    TERRACE_CHECK(done < last_stamp_);  // AllPartsFit
    if (!progress_.wait(done + 1)) return false;
  }
  for (size_t t = 0; t < tables_.size(); ++t)
    tables_[t]->PlaceArrivals(batches_of(t), part_, &out->moves[t]);
  return true;
}

// Of the window's, in what is free.
size_t WindowPlanner::BatchesThatFit() const {
  size_t fit = window_batches_;
  for (const TieredTable* table : tables_) {
    int64_t rows = 0;
    for (size_t i = 0; i < fit; ++i) {
      rows += table->arrivals(i);
      if (rows > table->free_rows()) fit = i;
    }
  }
  return fit;
}

// Where rows do not fit now, or would move in too large a number, the window ends.
bool WindowPlanner::PlaceFirstPart(WindowPart* out) {
  for (size_t i = 0; i < window_batches_; ++i) {
    if (i == 0) {
      if (!ReserveAnyhow(0)) return false;
    } else {
      Touch(&known_[i], part_);  // the batches before brought rows
      if (!Reserve(*known_[i].item)) window_batches_ = i;
      if (window_batches_ == i) break;
    }
    Place(known_[i].item.get(), out);
    // As many as one of these batches moves would be too many.
    const int64_t moves = out->move_count();
    if (moves + moves / static_cast<int64_t>(i + 1) > limits_.moves) window_batches_ = i + 1;
  }
  return true;
}

bool WindowPlanner::PlaceLaterPart(WindowPart* out) {
  for (size_t i = 0; i < window_batches_; ++i) {
    Touch(&known_[i], part_);
    if (!ReserveAnyhow(i)) return false;
    Place(known_[i].item.get(), out);
  }
  return true;
}

void WindowPlanner::EndWindow(WindowPart* out) {
  for (size_t i = 0; i < window_batches_; ++i) {
    Known& known = known_.front();
    for (size_t t = 0; t < tables_.size(); ++t)
      for (uint64_t key : known.sample[t])
        if (const auto at = known_keys_[t].find(key); --at->second == 0) known_keys_[t].erase(at);
    last_stamp_ = StampOf(*known.item);
    out->items.push_back(std::move(known.item));
    known_.pop_front();
  }
  const int64_t batches = std::ssize(out->items);
  in_flight_.push_back({last_stamp_, batches});
  ++stats_.windows;
  stats_.batches += batches;
  if (batches < limits_.batches && !known_.empty()) ++stats_.cut;
}

bool WindowPlanner::Next(WindowPart* out) {
  if (part_.first() ? !BeginWindow() : !WaitForPart()) return false;
  out->items.clear();
  out->moves.resize(tables_.size());
  for (RowMoves& moves : out->moves) moves.clear();
  const bool placed = together_       ? PlaceTogether(out)
                      : part_.first() ? PlaceFirstPart(out)
                                      : PlaceLaterPart(out);
  if (!placed) return false;
  for (size_t t = 0; t < tables_.size(); ++t) tables_[t]->EndPart(&out->moves[t], part_);
  most_moves_ = std::max(most_moves_, out->move_count());
  out->part = part_;
  if (part_.last()) {
    EndWindow(out);
    part_ = {};
  } else {
    ++part_.index;
  }
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
