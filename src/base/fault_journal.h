// What is not yet durable of a tree of files, and the state that a power cut leaves of it.
//
// Data is remembered by file (a file keeps its identity under new names), names by directory.
// Each change is told before it happens. Not for several threads at once. Works on real files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix_io.h"
#include "base/random.h"

namespace terrace {

// A second descriptor of an open file, for buffered reading and writing.
Descriptor Reopen(int fd);

class FaultJournal {
 public:
  // Data of the file that `fd` has open.
  void WillWrite(int fd, uint64_t offset, uint64_t size);
  void WillTruncate(int fd, uint64_t size);
  void Synced(int fd);
  // The system may have dropped what it could not write, and a later sync does not notice: from now
  // on no change of the file becomes durable.
  void SyncFailed(int fd);

  // What paths name now. Taken before a name changes and added once it has changed.
  struct Names {
    std::vector<std::string> directories;
    std::vector<std::pair<std::string, std::shared_ptr<Descriptor>>> before;  // null: nothing
  };
  Names Remember(const std::vector<std::string>& paths) const;
  void Changed(Names names) { names_.push_back(std::move(names)); }
  // After Changed, for a directory: what happened in it goes along.
  void MovedDirectory(const std::string& from, const std::string& to);
  void SyncedDirectory(const std::string& path);

  // Brings the tree into a state that a power cut may leave and forgets everything. Seed 0 loses
  // all that is not durable, seed 1 nothing, the others a part. Of a directory's changes of names
  // the first ones stay; of the writes of a file any sectors do.
  void Crash(uint64_t seed);

 private:
  static constexpr uint64_t kSector = 512;

  struct Change {
    bool truncate = false;
    uint64_t offset = 0, size = 0;  // the bytes that change
    uint64_t size_after = 0;        // of the file
    std::string before;             // of the bytes that change, those that were in the file
  };
  struct File {
    Descriptor fd;
    uint64_t durable_size = 0;
    std::vector<Change> changes;
    bool sync_failed = false;
  };
  using FileId = std::pair<uint64_t, uint64_t>;  // device, inode: not reused while fd is open

  // Which of the things that may be lost are.
  struct Dice {
    explicit Dice(uint64_t s) : seed(s), random(s, 0) {}
    uint64_t Below(uint64_t n) { return BelowN(random.Next(), n); }
    // How many of n changes in order stay.
    uint64_t Prefix(uint64_t n) { return seed == 0 ? 0 : seed == 1 ? n : Below(n + 1); }
    // Of a write: sectors in four that are lost. Whole writes are lost and kept, too.
    uint64_t LostInFour() { return seed == 0 ? 4 : seed == 1 ? 0 : (Below(4) + 1) / 2 * 2; }
    const uint64_t seed;
    RandomStream random;
  };

  static FileId IdOf(int fd);
  File& Find(int fd);
  void Add(File& file, Change change);
  static void Lose(File& file, Dice& dice);
  // By change and sector of it: whether the write of it is lost.
  static std::vector<std::vector<bool>> LostSectors(const File& file, uint64_t kept, Dice& dice);
  void LoseNames(Dice& dice);
  // By change of names: whether it is lost.
  std::vector<bool> LostNames(Dice& dice) const;

  std::map<FileId, File> files_;  // those with changes that are not durable
  std::vector<Names> names_;      // in order
};

}  // namespace terrace
