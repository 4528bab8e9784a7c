// A tiered table, driven as the stages of training drive it, against a std::map.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "base/random.h"
#include "tier/disk_page.h"
#include "tier/tiered_table.h"
#include "tier/tiered_testing.h"

namespace terrace {

struct BatchCase {
  bool training = true;
  int rows = 0;
  uint64_t seed = 0;  // of its keys
};

struct TableCase {
  PolicyKind policy = PolicyKind::kLru;
  int dim = 4;  // 1: rows on disk are padded
  int partitions = 1;
  int most_rows = 0;  // of a batch
  int spare = 0;      // rows in memory beyond that
  int guests = 0;
  int room = 0;  // more rows, shared
  uint64_t keys = 0;
  int window = 1;
  uint64_t order = 0;  // of the stages' turns
  std::vector<BatchCase> batches;
};

// Also how a failing case is shown.
std::ostream& operator<<(std::ostream& out, const BatchCase& b) {
  return out << (b.training ? "train(" : "eval(") << b.rows << " rows, seed " << b.seed << ")";
}
std::ostream& operator<<(std::ostream& out, const TableCase& c) {
  return out << PolicyName(c.policy) << ", dim " << c.dim << ", partitions " << c.partitions
             << ", most_rows " << c.most_rows << ", spare " << c.spare << ", guests " << c.guests
             << ", room " << c.room << ", keys " << c.keys << ", window " << c.window << ", order "
             << c.order << ", batches " << rc::toString(c.batches);
}

namespace {

// Plan, pull, push and train take turns in a random order, within what training allows.
class Stages {
 public:
  explicit Stages(const TableCase& table_case)
      : case_(table_case), test_(SmallTable(case_.dim), case_.policy, case_.partitions) {
    test_.room.bytes = case_.room * TieredTable::RowBytes(test_.memory.schema());
    table().Start(case_.most_rows + case_.spare + case_.guests, case_.guests, &test_.room);
    for (const BatchCase& b : case_.batches) coming_.push_back(MakeItem(b));
  }

  void Run() {
    while (!coming_.empty() || !known_.empty() || Busy()) {
      switch (random_.Next() % 4) {
        case 0:
          PlanWindow();
          break;
        case 1:
          PullChunk();
          break;
        case 2:
          PushOne();
          break;
        case 3:
          TrainOne();
          break;
      }
    }
    CheckEnd();
  }

 private:
  struct Item {
    uint32_t stamp = 0;
    bool training = true;
    bool touched = false;
    TablePlan plan;
  };
  struct Window {
    std::deque<Item> items;
    RowMoves moves;
    size_t carried = 0;
    bool sorted = false;
  };

  TieredTable& table() { return test_.table; }
  bool Busy() const { return !planned_.empty() || !pulled_.empty() || !writes_.empty(); }

  Item MakeItem(const BatchCase& batch) {
    std::set<uint64_t> keys;
    const auto rows = std::min<uint64_t>(static_cast<uint64_t>(batch.rows), case_.keys);
    // Small numbers come often: some rows are used by most batches.
    for (uint64_t i = 0; keys.size() < rows; ++i) {
      const uint64_t draw = RandomBits(batch.seed, i);
      keys.insert(i % 2 == 0 ? draw % case_.keys : draw % (1 + case_.keys / 8));
    }
    Item item;
    item.stamp = ++stamps_;
    item.training = batch.training;
    item.plan = PlanOf({keys.begin(), keys.end()});
    return item;
  }

  void Touch(Item* item) {
    if (item->touched)
      table().TouchMissing(item->stamp, item->training, &item->plan);
    else
      table().Touch(item->stamp, item->training, &item->plan);
    item->touched = true;
  }
  bool Reserve(const Item& item) {
    return item.training ? table().Reserve(item.plan, done_)
                         : table().ReserveGuests(item.plan, done_);
  }

  std::map<uint64_t, uint32_t> Residents() const {
    std::map<uint64_t, uint32_t> residents;
    for (uint64_t key = 0; key < case_.keys; ++key)
      if (const uint32_t position = test_.Find(key); position != 0) residents[key] = position;
    return residents;
  }

  // Of the first known batch. False: others must be trained first.
  bool ReserveFirst() {
    if (Reserve(known_.front())) return true;
    if (Busy()) return false;
    for (Item& item : known_) {
      if (item.touched) table().Forget(item.stamp, item.plan);
      item.touched = false;
    }
    Touch(&known_.front());
    RC_ASSERT(Reserve(known_.front()));
    return true;
  }

  void PlanWindow() {
    while (!coming_.empty() && known_.size() < static_cast<size_t>(2 * case_.window)) {
      known_.push_back(std::move(coming_.front()));
      coming_.pop_front();
      Touch(&known_.back());
    }
    if (known_.empty()) return;
    const std::map<uint64_t, uint32_t> before = Residents();
    Window window;
    size_t candidates = std::min(known_.size(), static_cast<size_t>(case_.window));
    for (size_t i = 0; i < candidates; ++i) Touch(&known_[i]);
    if (PlanInParts(candidates, &window)) candidates = 0;
    for (size_t i = 0; i < candidates; ++i) {
      Item& item = known_.front();
      if (i == 0) {
        if (!ReserveFirst()) break;
        if (known_.size() > 1 && !known_[1].touched) candidates = 1;
      } else {
        Touch(&item);
        if (!Reserve(item)) break;
      }
      if (item.training)
        table().Place(item.stamp, &item.plan, &window.moves);
      else
        table().PlaceGuests(item.stamp, &item.plan, &window.moves);
      window.items.push_back(std::move(item));
      known_.pop_front();
    }
    table().EndPart(&window.moves);
    CheckWindow(before, window);
    // While the first batch waits there is nothing to carry: an empty window would keep it waiting.
    if (!window.items.empty() || !window.moves.empty()) planned_.push_back(std::move(window));
  }

  // Where there is room for all now: the window comes in parts, its batches together or one by one.
  bool PlanInParts(size_t candidates, Window* window) {
    const auto parts = static_cast<uint32_t>(random_.Next() % 4);
    const bool together = random_.Next() % 2 == 0;
    int64_t missing = 0;
    std::vector<TieredTable::BatchRows> batches;
    for (size_t i = 0; i < candidates; ++i) {
      if (!known_[i].training) return false;
      missing += known_[i].plan.missing;
      batches.push_back({known_[i].stamp, &known_[i].plan});
    }
    if (parts == 0 || missing > table().RoomAfter(done_, true)) return false;
    for (KeyPart part{0, parts}; part.index < parts; ++part.index) {
      RowMoves moves;
      if (together) {
        table().ListArrivals(batches, part);
        RC_ASSERT(table().ReserveArrivals(batches.size(), done_));
        table().PlaceArrivals(batches, part, &moves);
      } else {
        for (const auto& [stamp, plan] : batches) {
          table().TouchMissing(stamp, true, plan, part);
          RC_ASSERT(table().Reserve(*plan, done_, part));
          table().Place(stamp, plan, &moves, part);
        }
      }
      table().EndPart(&moves, part);
      for (const RowMove& move : moves) RC_ASSERT(!move.fetch || part.Has(MixOfKey(move.key)));
      window->moves.insert(window->moves.end(), moves.begin(), moves.end());
    }
    for (size_t i = 0; i < candidates; ++i) {
      RC_ASSERT(known_.front().plan.missing == 0);
      window->items.push_back(std::move(known_.front()));
      known_.pop_front();
    }
    return true;
  }

  // Rows came and left as the moves say, all others are where they were.
  void CheckWindow(std::map<uint64_t, uint32_t> expected, const Window& window) {
    std::set<uint32_t> positions;
    for (const RowMove& move : window.moves) {
      RC_ASSERT(move.position > 0u);
      RC_ASSERT(move.position <= table().handed_rows());
      RC_ASSERT(positions.insert(move.position).second);
      RC_ASSERT(move.evict || move.fetch);
      if (!move.evict) continue;
      const auto victim = expected.find(move.victim);
      RC_ASSERT(victim != expected.end());
      RC_ASSERT(victim->second == move.position);
      expected.erase(victim);
      // Nobody under way uses it.
      RC_ASSERT(last_use_[move.victim] <= done_);
      for (const Item& item : window.items)
        RC_ASSERT(std::ranges::find(item.plan.row_keys, move.victim) == item.plan.row_keys.end());
    }
    for (const RowMove& move : window.moves)
      if (move.create) RC_ASSERT(expected.emplace(move.key, move.position).second);
    RC_ASSERT(Residents() == expected);
    for (const Item& item : window.items)
      for (uint64_t key : item.plan.row_keys)
        if (item.training || expected.contains(key)) last_use_[key] = item.stamp;

    const std::vector<bool> resident = table().Resident();
    RC_ASSERT(std::ssize(resident) == table().handed_rows() + 1);
    std::set<uint32_t> found;
    for (uint32_t p = 0; p < resident.size(); ++p)
      if (resident[p]) found.insert(p);
    std::set<uint32_t> wanted;
    for (const auto& [key, position] : expected) wanted.insert(position);
    RC_ASSERT(found == wanted);
  }

  void PullChunk() {
    if (planned_.empty()) return;
    Window& window = planned_.front();
    if (!window.sorted) {
      if (!writes_.empty()) return;  // rows that left earlier are on disk before others are read
      table().Sort(&window.moves);
      window.sorted = true;
    }
    const size_t rows =
        std::min<size_t>(1 + random_.Next() % 16, window.moves.size() - window.carried);
    const auto chunk = std::span<const RowMove>(window.moves).subspan(window.carried, rows);
    WriteBack out;
    FetchBuffers buffers;
    table().CopyVictims(chunk, &out);
    table().Fetch(chunk, &buffers);
    if (!out.keys.empty()) writes_.push_back(std::move(out));
    window.carried += rows;
    if (window.carried < window.moves.size()) return;
    for (Item& item : window.items) pulled_.push_back(std::move(item));
    planned_.pop_front();
  }

  void PushOne() {
    if (writes_.empty()) return;
    table().Write(writes_.front());
    writes_.pop_front();
  }

  void TrainOne() {
    if (pulled_.empty()) return;
    const Item item = std::move(pulled_.front());
    pulled_.pop_front();
    const TableSchema& schema = test_.memory.schema();
    for (size_t r = 0; r < item.plan.row_keys.size(); ++r) {
      const uint64_t key = item.plan.row_keys[r];
      const uint32_t position = item.plan.row_positions[r];
      auto it = model_.find(key);
      if (!item.training) {
        RC_ASSERT(test_.RowAt(position) ==
                  (it != model_.end() ? it->second : Row(schema.layout.payload_bytes())));
        continue;
      }
      RC_ASSERT(test_.Find(key) == position);
      if (it == model_.end()) {
        it = model_.emplace(key, schema.layout.payload_bytes()).first;
        InitRow(schema, key, it->second.data());
      }
      RC_ASSERT(test_.RowAt(position) == it->second);
      const uint64_t value = RandomBits(key, item.stamp);
      std::memcpy(it->second.data(), &value, sizeof(value));
      std::memcpy(test_.memory.base() + position * schema.layout.stride, &value, sizeof(value));
    }
    lookups_ += item.training ? std::ssize(item.plan.row_keys) : 0;
    done_ = item.stamp;
  }

  void CheckEnd() {
    const TieredStats stats = table().stats();
    RC_ASSERT(stats.lookups == lookups_);
    RC_ASSERT(stats.lookups == stats.hits + stats.from_disk + stats.created);
    RC_ASSERT(stats.created == std::ssize(model_));
    // Rows come to memory to be trained: each that leaves has changed.
    RC_ASSERT(stats.written == stats.evicted);
    RC_ASSERT(table().handed_rows() <= case_.most_rows + case_.spare + case_.guests + case_.room);

    // Every row is in memory, or else on disk; no other row is anywhere.
    std::map<uint64_t, Row> rows;
    table().disk().Scan(0, case_.partitions, [&](auto keys, const std::byte* disk_rows) {
      for (size_t i = 0; i < keys.size(); ++i) {
        const std::byte* row = disk_rows + i * table().disk().row_bytes();
        rows[keys[i]] = Row(row, row + test_.memory.schema().layout.payload_bytes());
      }
    });
    for (const auto& [key, position] : Residents()) rows[key] = test_.RowAt(position);
    RC_ASSERT(rows == model_);

    // No position was lost: as many new rows come as there can ever be.
    std::vector<uint64_t> keys;
    for (int64_t i = 0; i < table().most_rows(); ++i)
      keys.push_back(case_.keys + static_cast<uint64_t>(i));
    TablePlan plan = PlanOf(keys);
    table().Touch(done_ + 1, true, &plan);
    RC_ASSERT(table().Reserve(plan, done_));
    RowMoves moves;
    table().Place(done_ + 1, &plan, &moves);
    RC_ASSERT(test_.memory.rows() == std::ssize(keys));
    RC_ASSERT(table().handed_rows() == std::ssize(keys) + case_.guests);
    TablePlan guests = PlanOf({});
    for (int i = 0; i < case_.guests; ++i) guests.row_keys.push_back(static_cast<uint64_t>(i));
    table().Touch(done_ + 2, false, &guests);
    RC_ASSERT(guests.missing == case_.guests);
    RC_ASSERT(table().ReserveGuests(guests, done_));
  }

  const TableCase case_;
  TestTable test_;
  RandomStream random_{case_.order, 1};
  std::deque<Item> coming_, known_, pulled_;
  std::deque<Window> planned_;
  std::deque<WriteBack> writes_;
  uint32_t stamps_ = 0, done_ = 0;
  int64_t lookups_ = 0;
  std::map<uint64_t, uint32_t> last_use_;
  std::map<uint64_t, Row> model_;
};

rc::Gen<TableCase> AnyCase(PolicyKind policy) {
  return rc::gen::exec([policy] {
    TableCase c;
    c.policy = policy;
    c.dim = *rc::gen::element(1, 4);
    c.partitions = *rc::gen::element(1, 2);
    c.most_rows = *rc::gen::inRange(1, 40);
    c.spare = *rc::gen::element(0, 0, 3, 30);
    c.guests = *rc::gen::inRange(0, 20);
    c.room = *rc::gen::element(0, 0, 25);
    c.keys = *rc::gen::element<uint64_t>(40, 100, 300);
    c.window = *rc::gen::inRange(1, 6);
    c.order = *rc::gen::arbitrary<uint8_t>();
    c.batches = *rc::gen::container<std::vector<BatchCase>>(rc::gen::build<BatchCase>(
        rc::gen::set(&BatchCase::training, rc::gen::element(true, true, false)),
        rc::gen::set(&BatchCase::rows, rc::gen::inRange(0, c.most_rows + 1)),
        rc::gen::set(&BatchCase::seed, rc::gen::arbitrary<uint64_t>())));
    return c;
  });
}

class TieredTables : public ::testing::TestWithParam<PolicyKind> {};

TEST_P(TieredTables, EveryBatchSeesTheRowsThatTheBatchesBeforeItLeft) {
  ASSERT_TRUE(rc::check([] { Stages(*AnyCase(GetParam())).Run(); }));
}

INSTANTIATE_TEST_SUITE_P(Each, TieredTables,
                         ::testing::Values(PolicyKind::kLru, PolicyKind::kLruLfu,
                                           PolicyKind::kClock, PolicyKind::kNextUse),
                         [](const auto& test) {
                           std::string name = PolicyName(test.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace terrace
