// Faults of the disk below a run: it ends with the system's error, at once, and leaves no files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/fault_env.h"
#include "base/random.h"
#include "base/test_dir.h"
#include "train/train_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

// A run whose rows go to disk and come back, many times.
class TierFaults : public ::testing::Test {
 protected:
  // What the run throws, or nothing. Only the store sees `env`.
  std::string ErrorOfRun(FaultEnv* env) {
    const RunConfig config =
        SmallRun({"data.synthetic.train_examples=2000", "data.synthetic.features=2000",
                  "train.batch=64", "tables.main.dim=64", "train.threads=2", "train.window=2",
                  "eval.every=10", "tiers.disk.path=" + dir_.path() + "/rows",
                  "tiers.disk.memory=6MB", "tiers.disk.partitions=1"});
    RunOptions options;
    options.show_progress = false;
    options.memory_rows = 700;
    options.open_store = [env](const std::string& path, DiskOptions store) {
      store.env = env;
      store.index_bytes = 20'000;  // so that there are merges
      return DiskStore::Open(path, store);
    };
    const std::atomic<bool> stop{false};
    try {
      TrainModel(PosixEnv(), config, options, stop);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kIo) << e.what();
      return e.what();
    }
    return "";
  }
  // Removing them may be what fails.
  void ClearFiles() { std::filesystem::remove_all(dir_.path() + "/rows"); }

  TestDir dir_;
};

TEST_F(TierFaults, AnErrorOfTheDiskEndsTheRunWithThatError) {
  constexpr uint32_t kKinds[] = {FaultEnv::kBatchRead, FaultEnv::kWrite, FaultEnv::kAll};
  int64_t operations[std::size(kKinds)];
  {
    FaultEnv env(PosixEnv());
    ASSERT_EQ(ErrorOfRun(&env), "");
    for (size_t k = 0; k < std::size(kKinds); ++k) {
      operations[k] = env.operations(kKinds[k]);
      ASSERT_GT(operations[k], 5);
    }
  }
  int failed = 0;
  for (uint64_t i = 0; i < 48; ++i) {
    const size_t k = i % std::size(kKinds);
    FaultEnv env(PosixEnv());
    FaultEnv::Fault fault;
    fault.at = static_cast<int64_t>(RandomBits(5, i) % static_cast<uint64_t>(operations[k]));
    fault.kinds = kKinds[k];
    fault.lasting = i % 2 == 0;
    env.Inject(fault);
    SCOPED_TRACE(fmt::format("operation {} of kinds {}", fault.at, fault.kinds));
    const std::string error = ErrorOfRun(&env);
    // A merge may be given up and a file left to the next open: then the run goes on.
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr(std::strerror(EIO)));
      EXPECT_THAT(error, HasSubstr(dir_.path()));
      ++failed;
    } else {
      EXPECT_FALSE(env.failed() && fault.kinds == FaultEnv::kBatchRead) << env.failure();
    }
    ClearFiles();
  }
  EXPECT_GT(failed, 24);
}

TEST_F(TierFaults, AFullDiskEndsTheRun) {
  for (const int64_t space : {0, 5'000, 40'000, 100'000}) {
    FaultEnv env(PosixEnv());
    env.SetSpace(space);
    SCOPED_TRACE(fmt::format("{} bytes", space));
    EXPECT_THAT(ErrorOfRun(&env), HasSubstr(std::strerror(ENOSPC)));
    ClearFiles();
  }
}

}  // namespace
}  // namespace terrace
