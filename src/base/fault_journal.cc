#include "base/fault_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <set>

#include "base/error.h"

namespace terrace {
namespace {

uint64_t SizeOf(int fd) {
  struct stat info;
  TERRACE_CHECK(fstat(fd, &info) == 0);
  return static_cast<uint64_t>(info.st_size);
}

std::string ReadRange(int fd, uint64_t begin, uint64_t end) {
  std::string bytes(end > begin ? end - begin : 0, '\0');
  for (size_t got = 0; got < bytes.size();) {
    const ssize_t n =
        pread(fd, bytes.data() + got, bytes.size() - got, static_cast<off_t>(begin + got));
    TERRACE_CHECK(n > 0);
    got += static_cast<size_t>(n);
  }
  return bytes;
}

void WriteRange(int fd, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    TERRACE_CHECK(n > 0);
    offset += static_cast<uint64_t>(n);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

bool IsDirectory(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

std::string ParentOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

bool IsRemoved(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && info.st_nlink == 0;
}

void MakeAgain(const std::string& directory) {
  if (std::filesystem::exists(ParentOf(directory))) std::filesystem::create_directory(directory);
}

// Whether the path names the file that is open.
bool IsAt(const std::string& path, int fd) {
  struct stat named, opened;
  return stat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

std::string Normal(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

}  // namespace

Descriptor Reopen(int fd) {
  Descriptor again(open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC));
  TERRACE_CHECK(again.valid());
  return again;
}

FaultJournal::FileId FaultJournal::IdOf(int fd) {
  struct stat info;
  TERRACE_CHECK(fstat(fd, &info) == 0);
  return {info.st_dev, info.st_ino};
}

FaultJournal::File& FaultJournal::Find(int fd) {
  const FileId id = IdOf(fd);
  auto found = files_.find(id);
  if (found == files_.end())
    found = files_.emplace(id, File{Reopen(fd), SizeOf(fd), {}, false}).first;
  return found->second;
}

void FaultJournal::Add(File& file, Change change) {
  const uint64_t size = SizeOf(file.fd.get());
  change.before =
      ReadRange(file.fd.get(), change.offset, std::min(size, change.offset + change.size));
  file.changes.push_back(std::move(change));
}

void FaultJournal::WillWrite(int fd, uint64_t offset, uint64_t size) {
  if (size == 0) return;
  Add(Find(fd), {false, offset, size, std::max(SizeOf(fd), offset + size), {}});
}

void FaultJournal::WillTruncate(int fd, uint64_t size) {
  const uint64_t now = SizeOf(fd);
  if (size == now) return;
  Add(Find(fd), {true, size, now > size ? now - size : 0, size, {}});
}

void FaultJournal::Synced(int fd) {
  const auto found = files_.find(IdOf(fd));
  if (found != files_.end() && !found->second.sync_failed) files_.erase(found);
}

void FaultJournal::SyncFailed(int fd) { Find(fd).sync_failed = true; }

FaultJournal::Names FaultJournal::Remember(const std::vector<std::string>& paths) const {
  Names names;
  for (const std::string& given : paths) {
    const std::string path = Normal(given);
    const std::string parent = ParentOf(path);
    if (std::find(names.directories.begin(), names.directories.end(), parent) ==
        names.directories.end())
      names.directories.push_back(parent);
    auto file = std::make_shared<Descriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file->valid()) file.reset();
    names.before.emplace_back(path, std::move(file));
  }
  return names;
}

// A rename between directories brings what it depends on in the other directory along.
void FaultJournal::SyncedDirectory(const std::string& path) {
  std::set<std::string> synced{Normal(path)};
  for (size_t i = names_.size(); i-- > 0;) {
    const std::vector<std::string>& touched = names_[i].directories;
    if (std::none_of(touched.begin(), touched.end(), [&](auto& d) { return synced.contains(d); }))
      continue;
    synced.insert(touched.begin(), touched.end());
    names_.erase(names_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void FaultJournal::MovedDirectory(const std::string& from, const std::string& to) {
  const std::string old_name = Normal(from), new_name = Normal(to);
  const auto move = [&](std::string& path) {
    if (path == old_name || path.starts_with(old_name + "/"))
      path.replace(0, old_name.size(), new_name);
  };
  for (Names& names : names_) {
    for (std::string& directory : names.directories) move(directory);
    for (auto& [path, file] : names.before)
      if (path != old_name) move(path);
  }
}

void FaultJournal::Crash(uint64_t seed) {
  Dice dice(seed);
  for (auto& [id, file] : files_) Lose(file, dice);
  LoseNames(dice);
  files_.clear();
  names_.clear();
}

// A disk writes sectors whole: one that lost a write also lost all later writes to it.
std::vector<std::vector<bool>> FaultJournal::LostSectors(const File& file, uint64_t kept,
                                                         Dice& dice) {
  std::vector<std::vector<bool>> lost(file.changes.size());
  std::set<uint64_t> stale;
  for (size_t i = 0; i < lost.size(); ++i) {
    const Change& change = file.changes[i];
    if (change.truncate) {
      lost[i].assign(1, i >= kept);
      continue;
    }
    const uint64_t odds = dice.LostInFour();
    const uint64_t end = (change.offset + change.size + kSector - 1) / kSector;
    for (uint64_t sector = change.offset / kSector; sector < end; ++sector) {
      if (dice.Below(4) < odds) stale.insert(sector);
      lost[i].push_back(stale.contains(sector));
    }
  }
  return lost;
}

// Sizes survive in order; a file that grew may end at any sector of the growth.
void FaultJournal::Lose(File& file, Dice& dice) {
  const uint64_t kept = dice.Prefix(file.changes.size());
  uint64_t size = kept == 0 ? file.durable_size : file.changes[kept - 1].size_after;
  if (kept < file.changes.size() && !file.changes[kept].truncate && dice.seed != 0) {
    const uint64_t next = file.changes[kept].size_after;
    if (next > size)
      size = std::min(next, (size + dice.Below(next - size) + kSector - 1) / kSector * kSector);
  }
  const std::vector<std::vector<bool>> lost = LostSectors(file, kept, dice);
  uint64_t cut = std::numeric_limits<uint64_t>::max();  // what is behind it a truncation took
  for (size_t i = lost.size(); i-- > 0;) {
    const Change& change = file.changes[i];
    std::string before = change.before;
    before.resize(change.size);  // zeros where there was no file
    const auto restore = [&](uint64_t begin, uint64_t end) {
      begin = std::max(begin, change.offset);
      end = std::min({end, change.offset + change.size, cut});
      if (begin < end)
        WriteRange(file.fd.get(), begin,
                   std::string_view(before).substr(begin - change.offset, end - begin));
    };
    if (change.truncate) {
      if (lost[i][0])
        restore(change.offset, change.offset + change.size);
      else
        cut = std::min(cut, change.offset);
      continue;
    }
    const uint64_t first = change.offset / kSector;
    for (size_t s = 0; s < lost[i].size(); ++s)
      if (lost[i][s]) restore((first + s) * kSector, (first + s + 1) * kSector);
  }
  TERRACE_CHECK(ftruncate(file.fd.get(), static_cast<off_t>(size)) == 0);
}

std::vector<bool> FaultJournal::LostNames(Dice& dice) const {
  std::map<std::string, uint64_t> stay;  // by directory: changes that survive
  for (const Names& names : names_)
    for (const std::string& directory : names.directories) ++stay[directory];
  for (auto& [directory, count] : stay) count = dice.Prefix(count);

  std::vector<bool> lost;
  for (const Names& names : names_) {
    const bool goes = std::any_of(names.directories.begin(), names.directories.end(),
                                  [&](const std::string& d) { return stay[d] == 0; });
    for (const std::string& directory : names.directories)
      stay[directory] = goes ? 0 : stay[directory] - 1;
    lost.push_back(goes);
  }
  return lost;
}

void FaultJournal::LoseNames(Dice& dice) {
  const std::vector<bool> lost = LostNames(dice);
  std::map<std::string, std::shared_ptr<Descriptor>> result;
  for (size_t i = names_.size(); i-- > 0;)
    if (lost[i])
      for (const auto& [path, file] : names_[i].before) result[path] = file;

  std::map<FileId, std::string> directories;  // that get their old names back
  for (const auto& [path, file] : result) {
    if (file == nullptr || IsAt(path, file->get())) continue;
    if (IsDirectory(file->get())) {
      // A path sorts before what is in it, so one that was removed is there again for its files.
      if (IsRemoved(file->get()))
        MakeAgain(path);
      else
        directories[IdOf(file->get())] = path;
      continue;
    }
    if (!std::filesystem::exists(ParentOf(path))) continue;  // was never durable
    const std::string copy = path + ".before_crash";  // the name may be another file's by now
    CopyFileAndSync(fmt::format("/proc/self/fd/{}", file->get()), copy);
    std::filesystem::rename(copy, path);
  }
  // What is in a directory comes before it; one that was never durable takes all in it along.
  for (auto at = result.rbegin(); at != result.rend(); ++at) {
    const auto& [path, file] = *at;
    if (file != nullptr) continue;
    const Descriptor now(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!now.valid()) continue;
    const auto back = directories.find(IdOf(now.get()));
    if (back == directories.end())
      std::filesystem::remove_all(path);
    else
      std::filesystem::rename(path, back->second);
  }
}

}  // namespace terrace
