#include "base/fault_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/fault_testing.h"

namespace terrace {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FaultEnvTest : public ::testing::Test, public TestTree {};

TEST_F(FaultEnvTest, EachOperationCanBeMadeToFail) {
  Put("a", "old");
  std::set<std::string> failures;
  int n = 0;
  for (;; ++n) {
    FaultEnv env(PosixEnv());
    env.FailAt(n);
    const std::string error = ErrorOf([&] {
      WriteFileAtomically(env, Path("a"), "new");
      env.SyncDirectory(dir_);
      EXPECT_EQ(ReadWholeFile(env, Path("a")), "new");
    });
    EXPECT_EQ(env.failed(), !error.empty());
    EXPECT_THAT(Names(), ElementsAre("a"));
    EXPECT_THAT(Read("a"), AnyOf("old", "new"));
    if (!env.failed()) break;
    EXPECT_THAT(error, HasSubstr(": Input/output error"));
    failures.insert(env.failure().substr(0, env.failure().find(" of")));
  }
  EXPECT_EQ(n, 8);  // create, append, close, rename, sync directory, open, two reads
  EXPECT_THAT(failures,
              ElementsAre("create", "open", "read", "rename", "sync", "sync directory", "write"));
}

TEST_F(FaultEnvTest, SkippingFailsAsReadingDoes) {
  Put("a", "0123");
  FaultEnv env(PosixEnv());
  const auto file = env.OpenForRead(Path("a"));
  file->Skip(2);
  char next;
  EXPECT_EQ(file->Read(&next, 1), 1U);
  EXPECT_EQ(next, '2');
  env.Inject({.kinds = FaultEnv::kRead});
  EXPECT_THAT(ErrorOf([&] { file->Skip(1); }), HasSubstr("Input/output error"));
}

TEST_F(FaultEnvTest, FaultIsOfTheChosenKindAndReason) {
  FaultEnv env(PosixEnv());
  env.Inject({.at = 1, .kinds = FaultEnv::kRename | FaultEnv::kLink, .error = ENOSPC});
  WriteFileAtomically(env, Path("a"), "x");
  EXPECT_EQ(ErrorOf([&] { env.Link(Path("a"), Path("b")); }),
            Path("b") + ": cannot link " + Path("a") +
                " to: No space left on device; free some space and run again");
  env.Link(Path("a"), Path("b"));
  env.Inject({.kinds = FaultEnv::kRemove, .lasting = true});
  for (int i = 0; i < 3; ++i) EXPECT_THROW(env.Remove(Path("a")), Error);
  EXPECT_EQ(env.operations(FaultEnv::kLink), 2);
  EXPECT_EQ(env.operations(FaultEnv::kRemove | FaultEnv::kRename), 4);
}

TEST_F(FaultEnvTest, ShortWriteLeavesTheFirstPart) {
  for (const bool direct : {false, true}) {
    FaultEnv env(PosixEnv());
    alignas(kPageAlign) static char data[2 * kPageAlign];
    std::fill(std::begin(data), std::end(data), 'x');
    const auto file = env.OpenPages(Path("p"), PageMode::kCreate, direct);
    env.Inject({.kinds = FaultEnv::kWrite, .short_write = true});
    EXPECT_EQ(ErrorOf([&] { file->Write(kPageAlign, data, sizeof(data)); }),
              Path("p") + ": cannot write 8192 bytes at 4096: Input/output error");
    EXPECT_EQ(Read("p"), std::string(kPageAlign, '\0') + std::string(kPageAlign, 'x'));
  }
  FaultEnv env(PosixEnv());
  const auto file = env.OpenForWrite(Path("a"));
  env.Inject({.kinds = FaultEnv::kWrite, .error = ENOSPC, .short_write = true});
  EXPECT_THROW(file->Append("1234567"), Error);
  EXPECT_EQ(Read("a"), "123");
}

TEST_F(FaultEnvTest, BatchReadFailsAtTheChosenRead) {
  FaultEnv env(PosixEnv());
  const auto file = env.OpenPages(Path("p"), PageMode::kCreate, false);
  Write(*file, 0, std::string(10 * kPageAlign, 'x'));
  const auto reader = env.NewBatchReader({IoEngine::kAuto, 4, kPageAlign});
  std::vector<PageRead> reads;
  for (uint64_t i = 0; i < 10; ++i) reads.push_back({file.get(), i * kPageAlign, kPageAlign});
  env.Inject({.at = 7, .kinds = FaultEnv::kBatchRead});
  int calls = 0;
  const auto count = [&](size_t, const std::byte*) { ++calls; };
  EXPECT_EQ(ErrorOf([&] { reader->Read(reads, count); }),
            Path("p") + ": cannot read 4096 bytes at 28672: Input/output error");
  EXPECT_EQ(calls, 7);
  reader->Read(reads, count);
  EXPECT_EQ(calls, 17);
}

TEST_F(FaultEnvTest, FullDiskTakesWhatFitsUntilThereIsSpace) {
  FaultEnv env(PosixEnv());
  const auto file = env.OpenPages(Path("p"), PageMode::kCreate, false);
  env.SetSpace(5000);
  Write(*file, 0, std::string(4096, 'x'));
  EXPECT_FALSE(env.failed());
  EXPECT_THAT(ErrorOf([&] { Write(*file, 4096, std::string(4096, 'y')); }),
              HasSubstr("No space left on device"));
  EXPECT_EQ(file->Size(), 4096u + 512u);
  EXPECT_THROW(Write(*file, 4096, std::string(4096, 'y')), Error);
  EXPECT_TRUE(env.failed());
  env.SetSpace(4096);
  Write(*file, 4096, std::string(4096, 'z'));
  EXPECT_EQ(Read("p"), std::string(4096, 'x') + std::string(4096, 'z'));
}

}  // namespace
}  // namespace terrace
