// Invariant: a training run that is killed at any moment, again and again, and resumed each time
// with other tiers and threads, ends with bit for bit the model, the metrics and the predictions of
// one that was not. All that is seen of its snapshots in between is whole.
//
// TERRACE_TRAIN_CRASH_KILLS sets how often (`make crash`: 500 times).

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/test_dir.h"
#include "checkpoint/snapshot.h"
#include "train/tier_testing.h"
#include "train_case.h"
#include "trainer_process.h"

namespace terrace {
namespace {

using nlohmann::json;

struct Counts {
  int64_t kills = 0, in_snapshot = 0, in_removal = 0, before_any = 0;
  int64_t starts = 0, resumes = 0, tiered = 0, checked = 0, runs = 0;
  int64_t evicted = 0;  // rows, of whole runs in the least memory
};

// What can be seen in a snapshots directory.
struct Listing {
  int64_t newest = -1;  // batch
  bool whole = true;    // the newest has a manifest
  std::set<std::string> writing, removing;
};

Listing Look(const std::string& dir) {
  Listing listing;
  std::string newest;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(dir, none)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".writing-")) listing.writing.insert(name);
    if (name.starts_with(".removing-")) listing.removing.insert(name);
    if (name.find_first_not_of("0123456789") == std::string::npos) newest = std::max(newest, name);
  }
  if (newest.empty()) return listing;
  listing.newest = std::atoll(newest.c_str());
  listing.whole = std::filesystem::exists(dir + "/" + newest + "/MANIFEST");
  return listing;
}

void WaitMicros(int64_t us) {
  const timespec time{us / 1000000, us % 1000000 * 1000};
  pollfd nothing{-1, 0, 0};
  ppoll(&nothing, 0, &time, nullptr);
}

// One run, killed many times.
class KilledRun {
 public:
  // Real syncs take long: few are on a disk.
  KilledRun(uint64_t number, Counts* counts)
      : dir_(number % 10 == 0 ? TestDir::kDisk : TestDir::kMemory),
        other_(TestDir::kMemory),
        case_(number, dir_.path()),
        counts_(*counts),
        budget_(LeastBudget()) {}

  void Expect(int64_t most_kills) {
    const double began = NowSeconds();
    const std::string expected = RunToEnd();
    if (HasFailure()) return;
    seconds_ = NowSeconds() - began;
    const std::string expected_scores = ReadWholeFile(PosixEnv(), Path("predictions"));
    int64_t kills = 0;
    // A run may end before the moment it was to be killed at: then it is done again.
    for (int round = 0; round < 4 && (round == 0 || kills < most_kills); ++round) {
      BeginAnew();
      while (!done_ && !HasFailure()) {
        start_ = case_.Draw(other_.path());
        kills += StartOnce(kills < most_kills) ? 1 : 0;
      }
      if (HasFailure()) return;
      ++counts_.runs;
      ExpectResults(expected, expected_scores);
      CheckEnd();
    }
    RunInLeastMemory();
    if (!HasFailure()) ExpectResults(expected, expected_scores);
  }

  // Leaves the files behind; returns where.
  std::string Keep() {
    const std::string kept = dir_.path() + "_failed";
    std::filesystem::rename(dir_.path(), kept);
    return kept;
  }
  std::string Describe() const { return case_.Describe(); }

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }
  // To start with: what is too small is told by the run.
  int64_t LeastBudget() const { return case_.DiskMemory() + (1 << 20); }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string Output() const { return ReadWholeFile(PosixEnv(), Path("output")); }

  std::vector<std::string> Arguments(const std::vector<std::string>& sets) const {
    std::vector<std::string> arguments{"train",         Path("run.toml"),
                                       "--summary",     Path("summary.json"),
                                       "--predictions", Path("predictions")};
    for (const std::string& set : sets) {
      arguments.push_back("--set");
      arguments.push_back(set);
    }
    return arguments;
  }

  void BeginAnew() {
    PosixEnv().Remove(Path("predictions"));
    PosixEnv().Remove(Path("summary.json"));
    std::filesystem::remove_all(case_.snapshots());
    newest_ = -1;
    advices_ = 0;
    done_ = false;
    commands_.clear();
  }

  // What must not depend on kills, tiers and threads.
  static std::string Results(const std::string& summary) {
    const json all = json::parse(summary);
    json results;
    for (const char* name :
         {"model_digest", "auc", "auc_bucketed", "logloss", "normalized_entropy", "copc",
          "label_rate", "test_examples", "train_loss", "train_auc", "examples", "batches", "epochs",
          "stopped_early", "skipped_rows", "saturated", "rows", "evaluations"})
      results[name] = all.contains(name) ? all[name] : json();
    for (json& evaluation : results["evaluations"]) evaluation.erase("seconds");
    for (const char* name : {"admitted", "refused"})
      if (all.contains("life")) results["life"][name] = all["life"][name];
    return results.dump(1);
  }

  std::string RunToEnd() {
    TrainerProcess process(Arguments({}), Path("output"));
    while (process.Running()) WaitMicros(500);
    EXPECT_EQ(process.exit_code(), 0) << Output();
    return HasFailure() ? "" : Results(ReadWholeFile(PosixEnv(), Path("summary.json")));
  }

  void ExpectResults(const std::string& results, const std::string& scores) const {
    EXPECT_EQ(Results(ReadWholeFile(PosixEnv(), Path("summary.json"))), results) << commands_;
    EXPECT_EQ(ReadWholeFile(PosixEnv(), Path("predictions")), scores) << commands_;
  }

  // Nobody kills it: how many rows leave memory in starts that are killed cannot be seen, so this
  // one shows that the case makes them.
  void RunInLeastMemory() {
    BeginAnew();
    budget_ = LeastBudget();
    do {
      start_ = case_.Draw(other_.path());
    } while (!start_.tiered);
    start_.spare = 0;
    while (!done_ && !HasFailure()) (void)StartOnce(false);
    if (HasFailure()) return;
    const json summary = json::parse(ReadWholeFile(PosixEnv(), Path("summary.json")));
    counts_.evicted += summary["tiers"]["memory"]["evicted"].get<int64_t>();
  }

  // Kills at one of several kinds of moments.
  class Moment {
   public:
    Moment(TrainCase* draw, double run_seconds) : kind_(static_cast<Kind>(draw->Pick(6))) {
      const auto uniform = [&](double seconds) {
        return seconds * static_cast<double>(draw->Pick(10000)) / 10000;
      };
      at_ = NowSeconds() + (kind_ == kAtStart ? uniform(0.06) : uniform(run_seconds));
      which_ = static_cast<int64_t>(1 + draw->Pick(4));
      delay_us_ = static_cast<int64_t>(draw->Pick(3000));
    }
    // Whether it has come.
    bool Come(const Listing& now) {
      if (kind_ == kAnyTime || kind_ == kAtStart) return NowSeconds() >= at_;
      for (const std::string& name : kind_ == kInRemoval ? now.removing : now.writing)
        if (seen_.insert(name).second && --which_ == 0) {
          if (kind_ != kInRemoval) WaitMicros(delay_us_);
          return true;
        }
      return false;
    }

   private:
    enum Kind {
      kAtStart,
      kInRemoval,
      kInSnapshot,
      kInSnapshotToo,
      kAnyTime
    };  // the rest: any time
    Kind kind_;
    double at_ = 0;
    int64_t which_ = 0, delay_us_ = 0;
    std::set<std::string> seen_;
  };

  // Starts the run and kills it, if wanted and if it does not end before. True if it was killed.
  bool StartOnce(bool kill) {
    std::vector<std::string> sets = start_.sets;
    if (start_.tiered)
      sets.push_back(
          fmt::format("tiers.memory.budget={}",
                      static_cast<int64_t>(static_cast<double>(budget_) * (1 + start_.spare))));
    std::vector<std::string> arguments = Arguments(sets);
    arguments.push_back("--resume");
    commands_ += fmt::format("\n  terrace '{}'", fmt::join(arguments, "' '"));
    SCOPED_TRACE("starts so far:" + commands_);
    const bool resumes = newest_ >= 0;
    TrainerProcess process(arguments, Path("output"));
    Moment moment(&case_, std::max(seconds_, 0.3));
    while (process.Running()) {
      const Listing now = Look(case_.snapshots());
      CheckWhileRunning(now);
      if (HasFailure()) return false;
      if (kill && moment.Come(now)) break;
      WaitMicros(150);
    }
    const bool killed = process.Kill();
    if (!killed && TakeAdvice(process.exit_code())) return false;
    ++counts_.starts;
    counts_.tiered += start_.tiered ? 1 : 0;
    counts_.resumes += resumes ? 1 : 0;
    if (killed) CountKill();
    CheckSnapshots();
    if (killed) return true;
    EXPECT_EQ(process.exit_code(), 0) << Output();
    done_ = true;
    return false;
  }

  // Whether the run was refused for a memory budget that is too small: then a larger one is tried.
  bool TakeAdvice(int exit_code) {
    if (exit_code != 2 || !start_.tiered) return false;
    const int64_t wanted = BudgetIn(Output());
    if (wanted == 0 || ++advices_ > 30) return false;
    budget_ = std::max(budget_ + (256 << 10), wanted);
    return true;
  }

  void CountKill() {
    const Listing left = Look(case_.snapshots());
    ++counts_.kills;
    counts_.in_snapshot += left.writing.empty() ? 0 : 1;
    counts_.in_removal += left.removing.empty() ? 0 : 1;
    counts_.before_any += left.newest < 0 ? 1 : 0;
  }

  // Retention may remove what a listing shows, but only once a newer one is there.
  void CheckWhileRunning(Listing now) {
    for (int attempt = 0; attempt < 50 && (!now.whole || now.newest < newest_); ++attempt)
      now = Look(case_.snapshots());
    EXPECT_TRUE(now.whole) << "snapshot " << now.newest << " has no manifest";
    EXPECT_GE(now.newest, newest_) << "a moment without the last snapshot";
    newest_ = std::max(newest_, now.newest);
  }

  // Each can be read, and all that is in it.
  void CheckSnapshots() {
    const Listing now = Look(case_.snapshots());
    EXPECT_TRUE(now.whole);
    EXPECT_GE(now.newest, newest_);
    newest_ = now.newest;
    if (newest_ < 0) return;
    try {
      for (const SnapshotEntry& entry : ListSnapshots(PosixEnv(), case_.snapshots())) {
        const auto snapshot = Snapshot::Open(PosixEnv(), entry.path);
        for (const SnapshotFile& file : snapshot->info().files) (void)snapshot->ReadFile(file.name);
        for (const SnapshotTable& table : snapshot->info().tables)
          EXPECT_EQ(VerifyStore(PosixEnv(), snapshot->TablePath(table.name), {}).problems,
                    std::vector<std::string>());
        ++counts_.checked;
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }

  void CheckEnd() {
    const Listing now = Look(case_.snapshots());
    EXPECT_EQ(now.writing, std::set<std::string>());
    EXPECT_EQ(now.removing, std::set<std::string>());
    int64_t kept = 0;
    for (const SnapshotEntry& entry : ListSnapshots(PosixEnv(), case_.snapshots()))
      kept += start_.keep_every == 0 || entry.batch % start_.keep_every != 0 ? 1 : 0;
    const json summary = json::parse(ReadWholeFile(PosixEnv(), Path("summary.json")));
    // A run that ended with its last snapshot takes none when it is resumed.
    if (summary.contains("snapshots")) {
      EXPECT_LE(kept, start_.keep_last);
      EXPECT_EQ(summary["snapshots"]["failed"], 0);
    }
  }

  TestDir dir_, other_;
  TrainCase case_;
  Counts& counts_;
  double seconds_ = 0;  // of a run without kills
  int64_t budget_;      // the smallest that may do
  int advices_ = 0;
  TrainCase::Start start_;
  std::string commands_;
  int64_t newest_ = -1;  // snapshot, as far as was seen
  bool done_ = false;
};

void ExpectSurvives(uint64_t number, int64_t most_kills, Counts* counts) {
  KilledRun run(number, counts);
  SCOPED_TRACE(
      fmt::format("repeat with: TERRACE_TRAIN_CRASH_CASE={} build/release/crash_test "
                  "--gtest_filter=TrainCrash.*\n{}",
                  number, run.Describe()));
  run.Expect(most_kills);
  if (::testing::Test::HasFailure()) ADD_FAILURE() << "files are kept in " << run.Keep();
}

TEST(TrainCrash, AKilledRunGoesOnAsIfNothingHadHappened) {
  constexpr int64_t kKillsPerRun = 10;
  Counts counts;
  if (const char* one = std::getenv("TERRACE_TRAIN_CRASH_CASE"); one != nullptr) {
    ExpectSurvives(std::strtoull(one, nullptr, 10), kKillsPerRun, &counts);
    return;
  }
  const char* const wanted = std::getenv("TERRACE_TRAIN_CRASH_KILLS");
  const int64_t kills = wanted == nullptr ? 40 : std::atoll(wanted);
  for (uint64_t number = 1; counts.kills < kills && !HasFailure(); ++number) {
    ExpectSurvives(number, std::min(kKillsPerRun, kills - counts.kills), &counts);
    if (wanted != nullptr) {
      std::printf("\rtrain crash: %jd of %jd kills", intmax_t{counts.kills}, intmax_t{kills});
      std::fflush(stdout);
    }
  }
  std::printf(
      "%strain crash: %jd kills (%jd inside a snapshot, %jd inside a removal, %jd before the first "
      "snapshot), %jd resumes of %jd runs, %jd starts with a disk tier (%jd rows left memory in "
      "whole runs), %jd snapshots checked\n",
      wanted == nullptr ? "" : "\r", intmax_t{counts.kills}, intmax_t{counts.in_snapshot},
      intmax_t{counts.in_removal}, intmax_t{counts.before_any}, intmax_t{counts.resumes},
      intmax_t{counts.runs}, intmax_t{counts.tiered}, intmax_t{counts.evicted},
      intmax_t{counts.checked});
  EXPECT_GT(counts.in_snapshot, kills / 20);
  EXPECT_GT(counts.resumes, kills / 4);
  EXPECT_GT(counts.tiered, kills / 4);
  EXPECT_GT(counts.evicted, 0);
}

}  // namespace
}  // namespace terrace
