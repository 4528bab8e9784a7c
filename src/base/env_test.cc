#include "base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

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

std::string ReadRest(SequentialFile& file) {
  std::string rest;
  char buffer[3];
  while (const size_t n = file.Read(buffer, sizeof(buffer))) rest.append(buffer, n);
  return rest;
}

TEST_F(EnvTest, SkipsBytesOfFilesAndPipes) {
  const std::string path = dir_ + "/f";
  WriteFileAtomically(env_, path, "0123456789");
  char first;
  for (const auto& [skip, rest] : {std::pair<uint64_t, std::string>{0, "123456789"},
                                   {4, "56789"},
                                   {9, ""},
                                   {10, ""},
                                   {~uint64_t{0}, ""}}) {
    const auto file = env_.OpenForRead(path);
    file->Read(&first, 1);
    file->Skip(skip);
    EXPECT_EQ(ReadRest(*file), rest);

    const std::string pipe = dir_ + "/pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::jthread writer([&] { std::ofstream(pipe) << "0123456789"; });
    const auto piped = env_.OpenForRead(pipe);
    piped->Read(&first, 1);
    piped->Skip(skip);
    EXPECT_EQ(ReadRest(*piped), rest);
    env_.Remove(pipe);
  }
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

TEST_F(EnvTest, MakesAndListsDirectories) {
  env_.MakeDirectory(dir_ + "/a/b/c");
  env_.MakeDirectory(dir_ + "/a/b/c");
  WriteFileAtomically(env_, dir_ + "/a/z", "");
  EXPECT_THAT(env_.List(dir_ + "/a"), ::testing::ElementsAre("b", "z"));
  EXPECT_THAT(env_.List(dir_ + "/a/b/c"), ::testing::IsEmpty());
  env_.SyncDirectory(dir_ + "/a");
  EXPECT_THROW(env_.MakeDirectory(dir_ + "/a/z"), Error);
  EXPECT_THROW(env_.List(dir_ + "/absent"), Error);
  EXPECT_THROW(env_.SyncDirectory(dir_ + "/absent"), Error);
}

TEST_F(EnvTest, LinkIsASecondNameForTheFile) {
  WriteFileAtomically(env_, dir_ + "/a", "bytes");
  env_.Link(dir_ + "/a", dir_ + "/b");
  EXPECT_TRUE(std::filesystem::equivalent(dir_ + "/a", dir_ + "/b"));
  EXPECT_THROW(env_.Link(dir_ + "/a", dir_ + "/b"), Error);
  EXPECT_THROW(env_.Link(dir_ + "/absent", dir_ + "/c"), Error);
  env_.Remove(dir_ + "/a");
  EXPECT_EQ(ReadWholeFile(env_, dir_ + "/b"), "bytes");
}

TEST_F(EnvTest, LinkToAnotherFileSystemCopies) {
  std::string shared = "/dev/shm/terrace_env_XXXXXX";
  if (mkdtemp(shared.data()) == nullptr) GTEST_SKIP() << "no second file system";
  const std::string contents(3 << 20, 'x');
  WriteFileAtomically(env_, dir_ + "/a", contents);
  env_.Link(dir_ + "/a", shared + "/a");
  EXPECT_EQ(ReadWholeFile(env_, shared + "/a"), contents);
  EXPECT_THROW(env_.Link(dir_ + "/a", shared + "/a"), Error);
  std::filesystem::remove_all(shared);
}

TEST_F(EnvTest, LockIsHeldByOneObject) {
  std::unique_ptr<FileLock> lock = env_.Lock(dir_ + "/LOCK");
  try {
    env_.Lock(dir_ + "/LOCK");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("another process has it open"));
  }
  lock.reset();
  env_.Lock(dir_ + "/LOCK");
}

TEST_F(EnvTest, LockOfADirectoryIsSharedOrAlone) {
  const std::string path = dir_ + "/d";
  env_.MakeDirectory(path);
  {
    const auto first = env_.TryLockDirectory(path, LockMode::kShared);
    const auto second = env_.TryLockDirectory(path, LockMode::kShared);
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(env_.TryLockDirectory(path, LockMode::kAlone), nullptr);
  }
  const auto alone = env_.TryLockDirectory(path, LockMode::kAlone);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(env_.TryLockDirectory(path, LockMode::kShared), nullptr);
  env_.Rename(path, dir_ + "/e");
  EXPECT_EQ(env_.TryLockDirectory(dir_ + "/e", LockMode::kShared), nullptr);
  EXPECT_THROW((void)env_.TryLockDirectory(path, LockMode::kShared), Error);
  EXPECT_THAT(env_.List(dir_ + "/e"), ::testing::IsEmpty());
}

TEST_F(EnvTest, RemovesATreeButNotWhatItsLinksLeadTo) {
  env_.MakeDirectory(dir_ + "/a/b/c");
  env_.MakeDirectory(dir_ + "/other");
  WriteFileAtomically(env_, dir_ + "/other/file", "stays");
  WriteFileAtomically(env_, dir_ + "/a/b/file", "goes");
  std::filesystem::create_directory_symlink(dir_ + "/other", dir_ + "/a/b/link");
  EXPECT_TRUE(env_.IsDirectory(dir_ + "/a/b"));
  EXPECT_FALSE(env_.IsDirectory(dir_ + "/a/b/link"));
  EXPECT_FALSE(env_.IsDirectory(dir_ + "/a/b/file"));
  EXPECT_THROW(env_.RemoveDirectory(dir_ + "/a"), Error);
  RemoveTree(env_, dir_ + "/a");
  EXPECT_THAT(env_.List(dir_), ::testing::ElementsAre("other"));
  EXPECT_EQ(ReadWholeFile(env_, dir_ + "/other/file"), "stays");
}

TEST_F(EnvTest, StatusTellsTheNamesOfAFile) {
  WriteFileAtomically(env_, dir_ + "/a", "bytes");
  env_.Link(dir_ + "/a", dir_ + "/b");
  const FileStatus a = env_.Status(dir_ + "/a"), b = env_.Status(dir_ + "/b");
  EXPECT_EQ(a.inode, b.inode);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.links, 2);
  EXPECT_EQ(a.bytes, 5);
  EXPECT_THROW(env_.Status(dir_ + "/absent"), Error);
}

TEST_F(EnvTest, PageFilesAreReadAndWrittenAtOffsets) {
  for (const bool direct : {false, true}) {
    const std::string path = dir_ + "/pages";
    alignas(kPageAlign) static std::byte page[kPageAlign], got[kPageAlign];
    {
      const auto file = env_.OpenPages(path, PageMode::kCreate, direct);
      EXPECT_EQ(file->Size(), 0u);
      page[5] = std::byte{42};
      file->Write(2 * kPageAlign, page, kPageAlign);
      EXPECT_EQ(file->Size(), 3 * kPageAlign);
      file->Read(2 * kPageAlign, got, kPageAlign);
      EXPECT_EQ(got[5], std::byte{42});
      file->Sync();
    }
    const auto file = env_.OpenPages(path, PageMode::kRead, direct);
    file->Read(0, got, kPageAlign);
    EXPECT_EQ(got[5], std::byte{0});
    EXPECT_THROW(file->Write(0, page, kPageAlign), Error);
    try {
      file->Read(3 * kPageAlign, got, kPageAlign);
      FAIL();
    } catch (const Error& e) {
      EXPECT_THAT(e.what(),
                  ::testing::HasSubstr("read 4096 bytes at 12288: the file ends at 12288"));
    }
    const auto again = env_.OpenPages(path, PageMode::kCreate, direct);
    EXPECT_EQ(again->Size(), 0u);
    again->Truncate(kPageAlign);
    EXPECT_EQ(again->Size(), kPageAlign);
  }
  EXPECT_THROW(env_.OpenPages(dir_ + "/absent", PageMode::kRead, true), Error);
  EXPECT_THROW(env_.OpenPages(dir_ + "/no/dir", PageMode::kCreate, true), Error);
}

}  // namespace
}  // namespace terrace
