// Kills a process that writes to a store, again and again, and looks at what is left.
//
// TERRACE_CRASH_KILLS sets how often (`make crash`: 2,000 times).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/test_dir.h"
#include "crash_work.h"

namespace terrace {
namespace {

// A running crash_writer.
class Writer {
 public:
  Writer(const std::string& dir, uint64_t seed) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    const std::string number = std::to_string(seed);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], STDOUT_FILENO);
      execl(TERRACE_CRASH_WRITER, "crash_writer", dir.c_str(), number.c_str(), nullptr);
      _exit(127);
    }
    close(fds[1]);
    out_ = fds[0];
  }
  ~Writer() {
    Kill();
    close(out_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Waits for as many reports, or until the time is over. False if the writer has ended by itself.
  bool Wait(int reports, int64_t us) {
    for (; reports > 0; --reports)
      if (!Read()) return false;
    const timespec time{us / 1000000, us % 1000000 * 1000};
    pollfd nothing{-1, 0, 0};
    ppoll(&nothing, 0, &time, nullptr);
    return true;
  }
  // True if it was running until now.
  bool Kill() {
    if (pid_ <= 0) return true;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    while (Read()) {
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  uint64_t last_report() const { return last_report_; }

 private:
  bool Read() { return read(out_, &last_report_, sizeof(last_report_)) == sizeof(last_report_); }

  pid_t pid_ = 0;
  int out_ = -1;
  uint64_t last_report_ = 0;
};

struct Counts {
  int64_t kills = 0, while_opening = 0, commits = 0, unreported = 0, snapshots = 0;
};

// One store that is killed many times.
class Victim {
 public:
  Victim(uint64_t seed, TestDir::Place place, Counts* counts)
      : seed_(seed),
        root_(place),
        dir_(root_.path() + "/store"),
        random_(seed, 99),
        counts_(*counts) {}

  void KillOnce() {
    Writer writer(dir_, seed_);
    const int reports = static_cast<int>(random_.Next() % 5);
    // Starting takes some milliseconds, a step less than one.
    const int64_t us = static_cast<int64_t>(random_.Next() % (reports == 0 ? 10000 : 2000));
    const bool running = writer.Wait(reports, us);
    ASSERT_TRUE(writer.Kill() && running) << "the writer failed by itself";
    ++counts_.kills;
    counts_.while_opening += writer.last_report() == 0;
    Check(std::max(writer.last_report(), commits_));
  }

 private:
  // Nothing is merged to make room for the index.
  DiskOptions ReadOptions() const {
    DiskOptions options = CrashOptions(seed_);
    options.index_bytes = 0;
    return options;
  }

  void Check(uint64_t reported) {
    if (!std::filesystem::exists(dir_ + "/MANIFEST")) {
      ASSERT_EQ(reported, 0u);
      return;
    }
    // Opening for reading leaves what there is to repair to the next writer.
    const DiskOptions options = ReadOptions();
    const auto store = random_.Next() % 2 == 0 ? DiskStore::Open(dir_, options)
                                               : DiskStore::OpenReadOnly(dir_, options);
    const uint64_t found = store->stats().commits;
    ASSERT_GE(found, reported);
    ASSERT_LE(found, reported + 1);
    counts_.commits += static_cast<int64_t>(found - commits_);
    counts_.unreported += found > reported;
    while (commits_ < found) {
      CrashStep(seed_, ++commits_, nullptr, dir_, &contents_);
      if (IsSnapshotStep(seed_, commits_)) CheckSnapshot(commits_ <= reported);
    }
    ASSERT_EQ(StoreDifference(*store, contents_), "") << "at commit " << commits_;
    const VerifyReport report = VerifyStore(PosixEnv(), dir_, {});
    ASSERT_EQ(report.problems, std::vector<std::string>());
  }

  // A snapshot that was not finished has no manifest.
  void CheckSnapshot(bool finished) {
    const std::string copy = SnapshotDir(dir_, commits_);
    if (!finished && !std::filesystem::exists(copy + "/MANIFEST")) return;
    const auto store = DiskStore::OpenReadOnly(copy, ReadOptions());
    EXPECT_EQ(store->stats().commits, commits_);
    EXPECT_EQ(StoreDifference(*store, contents_), "") << "in " << copy;
    EXPECT_EQ(VerifyStore(PosixEnv(), copy, {}).problems, std::vector<std::string>());
    std::filesystem::remove_all(copy);
    ++counts_.snapshots;
  }

  const uint64_t seed_;
  TestDir root_;
  const std::string dir_;
  RandomStream random_;
  Counts& counts_;
  uint64_t commits_ = 0;
  Contents contents_;  // at this commit
};

TEST(Crash, AKilledWriterLeavesTheLastCommit) {
  const char* const wanted = std::getenv("TERRACE_CRASH_KILLS");
  const int64_t kills = wanted == nullptr ? 300 : std::atoll(wanted);
  constexpr int64_t kKillsPerStore = 25;
  Counts counts;
  for (uint64_t seed = 1; counts.kills < kills; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // Real syncs take long, and most kills then fall into one.
    Victim victim(seed, seed % 4 == 0 ? TestDir::kDisk : TestDir::kMemory, &counts);
    for (int64_t i = 0; i < kKillsPerStore && counts.kills < kills; ++i) {
      victim.KillOnce();
      if (HasFailure()) return;
    }
    if (wanted != nullptr) {
      std::printf("\rcrash: %jd of %jd kills", intmax_t{counts.kills}, intmax_t{kills});
      std::fflush(stdout);
    }
  }
  std::printf(
      "%scrash: %jd kills (%jd before the first commit of the process), %jd commits and %jd "
      "snapshots checked, %jd commits durable but not yet reported\n",
      wanted == nullptr ? "" : "\r", intmax_t{counts.kills}, intmax_t{counts.while_opening},
      intmax_t{counts.commits}, intmax_t{counts.snapshots}, intmax_t{counts.unreported});
  EXPECT_GT(counts.commits, kills);
  EXPECT_GT(counts.snapshots, kills / 10);
}

}  // namespace
}  // namespace terrace
