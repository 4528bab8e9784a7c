#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "base/fault_env.h"
#include "base/fault_testing.h"
#include "base/random.h"

namespace terrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CrashTest : public ::testing::Test, public TestTree {};

TEST_F(CrashTest, CrashKeepsSectorsOfUnsyncedWritesOneByOne) {
  std::set<std::string> seen;
  bool mixed = false, cut = false;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Put("p", "");
    FaultEnv env(PosixEnv());
    const auto file = env.OpenPages(Path("p"), PageMode::kCreate, false);
    Write(*file, 0, std::string(4 * 512, 'a'));
    file->Sync();
    Write(*file, 512, std::string(2 * 512, 'b'));
    Write(*file, 1024, std::string(4 * 512, 'c'));
    env.Crash(seed);

    std::string sectors;
    const std::string bytes = Read("p");
    ASSERT_EQ(bytes.size() % 512, 0u);
    for (size_t i = 0; i < bytes.size(); i += 512) {
      sectors += bytes[i] == '\0' ? '0' : bytes[i];
      ASSERT_EQ(bytes.substr(i, 512), std::string(512, bytes[i])) << "a torn sector";
    }
    EXPECT_THAT(sectors, ::testing::MatchesRegex("a[ab][abc][ac](|[0c]|[0c][0c])"));
    if (seed < 2) {
      EXPECT_EQ(sectors, seed == 0 ? "aaaa" : "abcccc");
    }
    mixed |= sectors.find("ac") != std::string::npos && sectors[1] == 'b';
    cut |= sectors.size() == 5;
    seen.insert(sectors);
  }
  EXPECT_TRUE(mixed);
  EXPECT_TRUE(cut);
  EXPECT_GT(seen.size(), 10u);
}

TEST_F(CrashTest, CrashKeepsOrUndoesATruncationAsAWhole) {
  const std::string old(3000, 'o');
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Put("p", old);
    FaultEnv env(PosixEnv());
    const auto file = env.OpenPages(Path("p"), PageMode::kCreate, false);
    if (seed % 2 == 0) {
      file->Sync();  // the file is empty for good
      file->Truncate(700);
    }
    env.Crash(seed);
    EXPECT_THROW(file->Size(), Error);
    const std::string now = Read("p");
    EXPECT_TRUE(now.empty() || now == (seed % 2 == 0 ? std::string(700, '\0') : old)) << seed;
    seen.insert(now);
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST_F(CrashTest, AppendsAreDurableAfterClose) {
  for (const bool close : {false, true}) {
    FaultEnv env(PosixEnv());
    const auto file = env.OpenForWrite(Path("a"));
    file->Append("12");
    file->Append("34");
    if (close) file->Close();
    env.SyncDirectory(dir_);
    env.Crash(0);
    EXPECT_EQ(Read("a"), close ? "1234" : "");
  }
}

TEST_F(CrashTest, NothingIsDurableAfterAFailedSync) {
  FaultEnv env(PosixEnv());
  const auto file = env.OpenPages(Path("p"), PageMode::kCreate, false);
  env.SyncDirectory(dir_);
  Write(*file, 0, std::string(512, 'a'));
  file->Sync();
  Write(*file, 512, std::string(512, 'b'));
  env.Inject({.kinds = FaultEnv::kSync});
  EXPECT_EQ(ErrorOf([&] { file->Sync(); }), Path("p") + ": cannot sync: Input/output error");
  file->Sync();
  env.Crash(0);
  EXPECT_EQ(Read("p"), std::string(512, 'a'));
}

TEST_F(CrashTest, NamesAreDurableAfterSyncDirectory) {
  for (const bool sync : {false, true}) {
    Clear();
    for (const char* name : {"moved", "over", "gone", "linked"}) Put(name, name);
    FaultEnv env(PosixEnv());
    const auto open = env.OpenPages(Path("gone"), PageMode::kRead, false);
    env.Rename(Path("moved"), Path("over"));
    env.Remove(Path("gone"));
    env.Link(Path("linked"), Path("second"));
    WriteFileAtomically(env, Path("new"), "new");
    env.MakeDirectory(Path("d/e"));
    if (sync) env.SyncDirectory(dir_ + "/");
    env.Crash(0);
    if (sync) {
      EXPECT_THAT(Names(), ElementsAre("d", "linked", "new", "over", "second"));
      EXPECT_EQ(Read("over"), "moved");
      EXPECT_THAT(PosixEnv().List(Path("d")), IsEmpty());
    } else {
      EXPECT_THAT(Names(), ElementsAre("gone", "linked", "moved", "over"));
      for (const char* name : {"moved", "over", "gone", "linked"}) EXPECT_EQ(Read(name), name);
    }
  }
}

TEST_F(CrashTest, ChangesOfNamesSurviveInOrder) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Clear();
    FaultEnv env(PosixEnv());
    for (const char* name : {"1", "2", "3"}) env.OpenForWrite(Path(name))->Close();
    env.Rename(Path("1"), Path("4"));
    env.Remove(Path("2"));
    env.Crash(seed);
    std::string names;
    for (const std::string& name : Names()) names += name;
    seen.insert(names);
  }
  EXPECT_THAT(seen, ElementsAre("", "1", "12", "123", "234", "34"));
}

TEST_F(CrashTest, RenamedDirectoryComesBackWithWhatIsDurableInIt) {
  FaultEnv env(PosixEnv());
  env.MakeDirectory(Path("work"));
  WriteFileAtomically(env, Path("work/kept"), "kept");
  env.SyncDirectory(Path("work"));
  env.SyncDirectory(dir_);
  env.OpenForWrite(Path("work/lost"))->Close();
  env.Rename(Path("work"), Path("done"));
  env.Crash(0);
  EXPECT_THAT(Names(), ElementsAre("work"));
  EXPECT_THAT(PosixEnv().List(Path("work")), ElementsAre("kept"));
}

TEST_F(CrashTest, AfterACrashOnlyAnotherEnvWorks) {
  FaultEnv env(PosixEnv());
  const auto pages = env.OpenPages(Path("p"), PageMode::kCreate, false);
  Write(*pages, 0, std::string(512, 'a'));
  const auto writer = env.OpenForWrite(Path("w"));
  const auto source = env.OpenForRead(Path("p"));
  const auto reader = env.NewBatchReader({IoEngine::kAuto, 4, kPageAlign});
  const auto lock = env.Lock(Path("LOCK"));
  env.Crash(1);
  char byte = 0;
  const std::vector<PageRead> reads{{pages.get(), 0, 512}};
  const std::string cut = ": the power was cut; open it with another Env";
  EXPECT_EQ(ErrorOf([&] { pages->Sync(); }), Path("p") + cut);
  EXPECT_EQ(ErrorOf([&] { pages->Read(0, &byte, 1); }), Path("p") + cut);
  EXPECT_EQ(ErrorOf([&] { reader->Read(reads, [](size_t, const std::byte*) {}); }),
            Path("p") + cut);
  EXPECT_EQ(ErrorOf([&] { source->Read(&byte, 1); }), Path("p") + cut);
  EXPECT_EQ(ErrorOf([&] { writer->Append("x"); }), Path("w") + cut);
  EXPECT_EQ(ErrorOf([&] { writer->Close(); }), Path("w") + cut);
  EXPECT_EQ(ErrorOf([&] { env.Remove(Path("p")); }), Path("p") + cut);
  EXPECT_THROW(env.Exists(Path("p")), Error);

  FaultEnv next(PosixEnv());
  next.Lock(Path("LOCK"));
  EXPECT_EQ(next.FileSize(Path("p")), 512);
}

TEST_F(CrashTest, ThreadsMayWriteWhileThePowerIsCut) {
  FaultEnv env(PosixEnv());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        try {
          const auto file = env.OpenPages(Path(std::to_string(t)), PageMode::kCreate, false);
          for (uint64_t i = 0;; ++i) {
            Write(*file, i % 64 * 512, std::string(512, 'x'));
            if (i % 16 == 0) file->Sync();
          }
        } catch (const Error&) {
        }
      });
    while (env.operations(FaultEnv::kWrite) < 200) std::this_thread::yield();
    env.Crash(2);
  }
  EXPECT_LE(Names().size(), 4u);
}

// All of a removed tree is there, or a part, or nothing; but never a file that was not in it.
TEST_F(CrashTest, CrashUndoesTheRemovalOfATree) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Clear();
    PosixEnv().MakeDirectory(Path("d/inner"));
    Put("d/a", "1");
    Put("d/inner/b", "2");
    FaultEnv env(PosixEnv());
    env.Rename(Path("d"), Path("gone"));
    env.SyncDirectory(dir_);
    RemoveTree(env, Path("gone"));
    env.Crash(seed);
    EXPECT_FALSE(PosixEnv().Exists(Path("d")));
    std::string state;
    for (const char* name : {"gone", "gone/a", "gone/inner", "gone/inner/b"})
      state += PosixEnv().Exists(Path(name)) ? '1' : '0';
    if (seed < 2) {
      EXPECT_EQ(state, seed == 0 ? "1111" : "0000");
    }
    if (state[1] == '1') {
      EXPECT_EQ(Read("gone/a"), "1");
    }
    if (state[3] == '1') {
      EXPECT_EQ(Read("gone/inner/b"), "2");
    }
    seen.insert(state);
  }
  EXPECT_GE(seen.size(), 4u);
}

TEST_F(CrashTest, ATreeThatWasNeverDurableStaysAway) {
  FaultEnv env(PosixEnv());
  env.MakeDirectory(Path("d"));
  env.OpenForWrite(Path("d/a"))->Close();
  env.SyncDirectory(Path("d"));
  RemoveTree(env, Path("d"));
  env.Crash(0);
  EXPECT_THAT(Names(), IsEmpty());
}

// What is durable and what is there, as the rules say it.
class Model {
 public:
  struct File {
    std::string now, durable;
  };
  using Tree = std::map<std::string, std::shared_ptr<File>>;
  Tree now, durable;

  static std::map<std::string, std::string> Contents(const Tree& tree, bool after_crash) {
    std::map<std::string, std::string> contents;
    for (const auto& [name, file] : tree) contents[name] = after_crash ? file->durable : file->now;
    return contents;
  }
};

TEST_F(CrashTest, CrashLeavesWhatTheModelSays) {
  for (uint64_t round = 0; round < 60; ++round) {
    Clear();
    FaultEnv env(PosixEnv());
    Model model;
    std::map<std::string, std::unique_ptr<PageFile>> open;
    RandomStream random(round, 0);
    const auto below = [&](uint64_t n) { return BelowN(random.Next(), n); };
    const auto name = [&] { return std::string(1, static_cast<char>('a' + below(4))); };
    for (int step = 0; step < 60; ++step) {
      const std::string a = name(), b = name();
      const bool has = model.now.contains(a);
      switch (below(8)) {
        case 0:
          open[a] = env.OpenPages(Path(a), PageMode::kCreate, false);
          if (!has) model.now[a] = std::make_shared<Model::File>();
          model.now[a]->now.clear();
          break;
        case 1:
        case 2:
          if (open[a] != nullptr && has) {
            const uint64_t offset = below(2000), size = 1 + below(1500);
            const std::string bytes(size, static_cast<char>('A' + step % 26));
            Write(*open[a], offset, bytes);
            std::string& file = model.now[a]->now;
            file.resize(std::max<size_t>(file.size(), offset + size));
            file.replace(offset, size, bytes);
          }
          break;
        case 3:
          if (open[a] != nullptr && has) {
            open[a]->Sync();
            model.now[a]->durable = model.now[a]->now;
          }
          break;
        case 4:
          if (open[a] != nullptr && has) {
            const uint64_t size = below(3000);
            open[a]->Truncate(size);
            model.now[a]->now.resize(size);
          }
          break;
        case 5:
          // A rename between two names of one file does nothing.
          if (has && model.now.contains(b) && model.now[a] == model.now[b]) break;
          if (has && below(2) == 0) {
            env.Rename(Path(a), Path(b));
            model.now[b] = model.now[a];
            model.now.erase(a);
            open[b] = std::move(open[a]);
          } else if (has && !model.now.contains(b)) {
            env.Link(Path(a), Path(b));
            model.now[b] = model.now[a];
            open[b].reset();
          }
          break;
        case 6:
          if (has) {
            env.Remove(Path(a));
            model.now.erase(a);
            open[a].reset();
          }
          break;
        default:
          if (below(3) == 0) {
            env.SyncDirectory(dir_);
            model.durable = model.now;
          }
      }
    }
    const bool lose = round % 2 == 0;
    env.Crash(lose ? 0 : 1);
    std::map<std::string, std::string> found;
    for (const std::string& each : Names()) found[each] = Read(each);
    EXPECT_TRUE(found == Model::Contents(lose ? model.durable : model.now, lose)) << round;
  }
}

}  // namespace
}  // namespace terrace
