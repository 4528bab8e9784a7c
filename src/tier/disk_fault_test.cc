// A store whose files fail: every operation in turn, a full disk, and power cuts at any point.

#include <gtest/gtest.h>

#include "base/fault_env.h"
#include "tier/disk_fault_testing.h"

namespace terrace {
namespace {

DiskOptions Tiny(bool background) {
  DiskOptions options;
  options.row_bytes = 24;
  options.page_bytes = 512;
  options.partitions = 2;
  options.memory_bytes = 8 << 20;
  options.index_bytes = 2000;  // puts have to merge
  options.background = background;
  return options;
}

// Fails operation n of the work, for every n.
void FailEach(const FaultEnv::Fault& fault, bool background, const std::string& reason) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    FaultEnv::Fault injected = fault;
    injected.at = n;
    env.Inject(injected);
    FaultWork work(&env, Tiny(background));
    work.RunWithRepeats(reason, [] {});
    const bool failed = env.failed();
    env.Inject({.at = -1});
    if (work.problem().empty() && !env.failure().starts_with("remove")) work.ExpectNoLeftovers();
    env.Crash(0);  // what was repeated is as durable as what succeeded at once
    work.Close();
    work.ExpectLastCommit();
    ASSERT_EQ(work.problem(), "") << "operation " << n << ": " << env.failure();
    if (!failed) break;
  }
}

TEST(DiskFault, EveryOperationMayFailAndIsRepeated) { FailEach({}, false, "Input/output error"); }

TEST(DiskFault, EveryOperationMayFailBesideMergesInTheBackground) {
  FailEach({}, true, "Input/output error");
}

TEST(DiskFault, WritesMayStopHalfWay) {
  FailEach({.kinds = FaultEnv::kWrite, .short_write = true}, false, "Input/output error");
}

TEST(DiskFault, AnyFailureLeavesTheLastCommit) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    FaultWork work(&env, Tiny(false));
    const bool done = work.RunUntilFailure();
    work.Close();
    work.ExpectLastCommit();
    ASSERT_EQ(work.problem(), "") << "operation " << n << ": " << env.failure();
    if (done && !env.failed()) break;
  }
}

TEST(DiskFault, AFullDiskIsAnErrorUntilThereIsSpace) {
  for (int64_t space = 0;; space += 700) {
    FaultEnv env(PosixEnv());
    env.SetSpace(space);
    FaultWork work(&env, Tiny(false));
    work.RunWithRepeats("No space left on device", [&] { env.SetSpace(-1); });
    if (work.problem().empty()) work.ExpectNoLeftovers();
    work.Close();
    work.ExpectLastCommit();
    ASSERT_EQ(work.problem(), "") << "space " << space << ": " << env.failure();
    if (!env.failed()) break;
  }
}

// Seed 0 loses all that is not durable, the others a part of it.
void CutPowerAtEach(bool background, bool lose_all) {
  for (int64_t n = 0;; ++n) {
    FaultEnv env(PosixEnv());
    env.Inject({.at = n, .lasting = true});
    FaultWork work(&env, Tiny(background));
    const bool done = work.RunUntilFailure();
    env.Crash(lose_all ? 0 : static_cast<uint64_t>(n) + 2);
    work.Close();
    work.ExpectLastCommit();
    ASSERT_EQ(work.problem(), "") << "operation " << n << ": " << env.failure();
    if (done) break;
  }
}

TEST(DiskFault, APowerCutAtAnyOperationLeavesTheLastCommit) {
  CutPowerAtEach(false, true);
  CutPowerAtEach(false, false);
}

TEST(DiskFault, APowerCutBesideMergesInTheBackgroundLeavesTheLastCommit) {
  CutPowerAtEach(true, true);
  CutPowerAtEach(true, false);
}

}  // namespace
}  // namespace terrace
