#include "base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace terrace {
namespace {

class EnvTest : public ::testing::Test {
 protected:
  EnvTest() {
    std::string pattern = ::testing::TempDir() + "/env_XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~EnvTest() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
  Env& env_ = PosixEnv();
};

TEST_F(EnvTest, AtomicWriteReplacesTheWholeFile) {
  const std::string path = dir_ + "/a";
  WriteFileAtomically(env_, path, "old");
  WriteFileAtomically(env_, path, "new contents");
  EXPECT_EQ(ReadWholeFile(env_, path), "new contents");
  EXPECT_EQ(env_.FileSize(path), 12);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(EnvTest, UncommittedAtomicFileLeavesNothing) {
  {
    AtomicFile file(env_, dir_ + "/a");
    file.Append("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(EnvTest, GlobIsSortedAndKeepsPlainPaths) {
  for (const char* name : {"day_2", "day_1", "other"})
    WriteFileAtomically(env_, dir_ + "/" + name, "x");
  EXPECT_THAT(env_.Glob(dir_ + "/day_*"), ::testing::ElementsAre(dir_ + "/day_1", dir_ + "/day_2"));
  EXPECT_THAT(env_.Glob(dir_ + "/none_*"), ::testing::IsEmpty());
  EXPECT_THAT(env_.Glob("plain"), ::testing::ElementsAre("plain"));
}

TEST_F(EnvTest, ErrorsNamePathAndReason) {
  try {
    env_.OpenForRead(dir_ + "/absent");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_EQ(std::string(e.what()),
              dir_ + "/absent: cannot open: No such file or directory; check the path");
  }
  EXPECT_THROW(env_.OpenForRead(dir_), Error);
  EXPECT_THROW(env_.OpenForWrite(dir_ + "/no/such/dir"), Error);
}

}  // namespace
}  // namespace terrace
