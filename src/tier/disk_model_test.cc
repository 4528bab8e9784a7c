// Random calls of a DiskStore, compared with a std::map after each.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <ostream>

#include "base/error.h"
#include "base/test_dir.h"
#include "tier/disk_store.h"
#include "tier/disk_testing.h"

namespace terrace {

enum class Op { kPut, kGet, kDelete, kCommit, kReopen, kSnapshot, kScan, kSettle, kMerge };

// A call; its keys follow from `seed`.
struct Call {
  Op op = Op::kPut;
  uint64_t seed = 0;
  int count = 0;  // keys, or for a scan the first partition
};

// Also how a failing case is shown.
std::ostream& operator<<(std::ostream& out, const Call& call) {
  static constexpr const char* kNames[] = {"Put",      "Get",  "Delete", "Commit", "Reopen",
                                           "Snapshot", "Scan", "Settle", "Merge"};
  return out << kNames[static_cast<int>(call.op)] << "(seed " << call.seed << ", count "
             << call.count << ")";
}

struct Regime {
  DiskOptions options;
  uint64_t keys = 0;  // distinct ones
};
std::ostream& operator<<(std::ostream& out, const Regime& regime) {
  const DiskOptions& o = regime.options;
  return out << "row " << o.row_bytes << ", page " << o.page_bytes << ", partitions "
             << o.partitions << ", index_bytes " << o.index_bytes << ", scratch "
             << (o.durability == Durability::kScratch) << ", background " << o.background
             << ", direct " << o.direct << ", io " << static_cast<int>(o.io) << ", keys "
             << regime.keys;
}

namespace {

// Keys that are special to the mix, then ordinary ones.
uint64_t KeyAt(uint64_t i) {
  static constexpr uint64_t kSpecial[] = {
      0,          ~0ULL,          Unmix64(0),          Unmix64(~0ULL),
      Unmix64(1), Unmix64(~1ULL), Unmix64(1ULL << 63), Unmix64((1ULL << 63) - 1)};
  return i < std::size(kSpecial) ? kSpecial[i] : i;
}

class Run {
 public:
  explicit Run(const Regime& regime) : regime_(regime) { Open(); }

  void Do(const Call& call) {
    switch (call.op) {
      case Op::kPut:
        PutVersion(*store_, Keys(call), version_ += 1000, &now_);
        break;
      case Op::kGet:
        Check(GetDifference(*store_, Keys(call), now_));
        break;
      case Op::kDelete:
        DeleteKeys(*store_, Keys(call), &now_);
        break;
      case Op::kCommit:
        Commit();
        break;
      case Op::kReopen:
        Reopen(call.seed);
        break;
      case Op::kSnapshot:
        Snapshot();
        break;
      case Op::kScan:
        Scan(call);
        break;
      case Op::kSettle:
        store_->Settle();
        break;
      case Op::kMerge:
        Merge();
        break;
    }
  }

  void Finish() {
    Check(StoreDifference(*store_, now_));
    for (const auto& [snapshot, contents] : snapshots_) CheckCopy(snapshot, contents);
    Do({Op::kReopen});
    store_.reset();
    if (!scratch()) CheckCopy(dir(), committed_);
  }

 private:
  static void Check(const std::string& difference) {
    if (!difference.empty()) RC_FAIL(difference);
  }
  bool scratch() const { return regime_.options.durability == Durability::kScratch; }
  std::string dir() const { return dir_.path() + "/store"; }
  void Open() { store_ = DiskStore::Open(dir(), regime_.options); }

  // A scratch store starts empty, or from a snapshot, with another index at times.
  void Reopen(uint64_t seed) {
    store_.reset();
    DiskOptions options = regime_.options;
    now_ = committed_;
    if (scratch() && seed % 4 > 0 && !snapshots_.empty()) {
      const auto& [snapshot, contents] = snapshots_[seed % snapshots_.size()];
      options.start_from = snapshot;
      options.partitions = 0;
      if (options.index_bytes > 0) options.index_bytes += seed % 5 * 1000;
      now_ = contents;
    }
    store_ = DiskStore::Open(dir(), options);
    Check(StoreDifference(*store_, now_));
  }

  std::vector<uint64_t> Keys(const Call& call) const {
    RandomStream random(call.seed, 0);
    std::vector<uint64_t> keys;
    for (int i = 0; i < call.count; ++i) keys.push_back(KeyAt(BelowN(random.Next(), regime_.keys)));
    return keys;
  }

  void Commit() {
    if (scratch()) {
      RC_ASSERT_THROWS_AS(store_->Commit(), Error);
      return;
    }
    const uint64_t commits = store_->stats().commits;
    store_->Commit();
    RC_ASSERT(store_->stats().commits == commits + 1);
    committed_ = now_;
  }

  void Snapshot() {
    const std::string copy = dir_.path() + "/copy" + std::to_string(snapshots_.size());
    store_->Snapshot(copy);
    if (!scratch()) committed_ = now_;
    snapshots_.emplace_back(copy, now_);
    CheckCopy(copy, now_);
  }

  void CheckCopy(const std::string& copy, const Contents& contents) {
    DiskOptions options = regime_.options;
    options.index_bytes = 0;
    Check(StoreDifference(*DiskStore::OpenReadOnly(copy, options), contents));
    const VerifyReport report = VerifyStore(PosixEnv(), copy, {});
    RC_ASSERT(report.problems == std::vector<std::string>());
  }

  void Scan(const Call& call) {
    const int partitions = store_->partitions();
    const int first = call.count % (partitions + 1);
    const int end = first + static_cast<int>(call.seed % static_cast<uint64_t>(partitions));
    Contents expected;
    for (const auto& [mix, version] : now_) {
      const int partition = store_->PartitionOf(KeyOfMix(mix));
      if (first <= partition && partition < end) expected[mix] = version;
    }
    Check(Difference(ReadAll(*store_, first, std::min(end, partitions)), expected));
  }

  void Merge() {
    store_->Merge();
    const DiskStats stats = store_->stats();
    RC_ASSERT(stats.total.log_keys == 0);
    RC_ASSERT(stats.total.log_pages == 0);
    RC_ASSERT(stats.total.base_rows == static_cast<int64_t>(now_.size()));
    RC_ASSERT(stats.total.rows_min() == stats.total.rows_max());
  }

  const Regime regime_;
  TestDir dir_;
  std::unique_ptr<DiskStore> store_;
  uint64_t version_ = 0;
  Contents now_, committed_;
  std::vector<std::pair<std::string, Contents>> snapshots_;
};

rc::Gen<Call> Calls(int max_count) {
  return rc::gen::build<Call>(
      rc::gen::set(&Call::op, rc::gen::weightedElement<Op>({{12, Op::kPut},
                                                            {6, Op::kGet},
                                                            {5, Op::kDelete},
                                                            {4, Op::kCommit},
                                                            {2, Op::kReopen},
                                                            {2, Op::kSnapshot},
                                                            {3, Op::kScan},
                                                            {1, Op::kSettle},
                                                            {1, Op::kMerge}})),
      rc::gen::set(&Call::seed, rc::gen::inRange<uint64_t>(0, 1000)),
      rc::gen::set(&Call::count, rc::gen::inRange(0, max_count)));
}

Regime RandomRegime(const std::vector<size_t>& rows, size_t page_bytes) {
  Regime regime;
  DiskOptions& options = regime.options;
  options.row_bytes = *rc::gen::elementOf(rows);
  options.page_bytes = page_bytes;
  options.partitions = 1 << *rc::gen::inRange(0, 4);
  options.memory_bytes = 8 << 20;
  // A little above what empty indexes take, so that most puts have to merge.
  const size_t least = 420 * static_cast<size_t>(options.partitions);
  if (*rc::gen::inRange(0, 3) > 0) options.index_bytes = least + *rc::gen::inRange(0, 6000);
  options.durability =
      *rc::gen::weightedElement<Durability>({{3, Durability::kCommit}, {2, Durability::kScratch}});
  options.background = *rc::gen::arbitrary<bool>();
  options.direct = *rc::gen::arbitrary<bool>();
  options.io = *rc::gen::element(IoEngine::kAuto, IoEngine::kThreads);
  regime.keys = *rc::gen::element<uint64_t>(20, 300, 5000);
  return regime;
}

bool CheckRandomRuns(const std::vector<size_t>& rows, size_t page_bytes, int max_count) {
  return rc::check([&] {
    const Regime regime = RandomRegime(rows, page_bytes);
    RC_LOG() << regime << "\n";
    const auto calls = *rc::gen::container<std::vector<Call>>(Calls(max_count));
    Run run(regime);
    for (const Call& call : calls) run.Do(call);
    run.Finish();
  });
}

TEST(DiskModel, TinyPagesBehaveAsAMap) {
  EXPECT_TRUE(CheckRandomRuns({16, 20, 24, 100}, 512, 300));
}

TEST(DiskModel, PagesOfOneRowBehaveAsAMap) { EXPECT_TRUE(CheckRandomRuns({300, 488}, 512, 60)); }

TEST(DiskModel, DefaultPagesBehaveAsAMap) {
  EXPECT_TRUE(CheckRandomRuns({16, 17, 64, 136, 500, 1000, 2048}, 0, 1000));
}

}  // namespace
}  // namespace terrace
