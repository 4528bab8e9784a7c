#include "data/stream_position.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

namespace terrace {
namespace {

// Raised with every change of what is written here.
constexpr uint32_t kVersion = 1;
// No count is greater, so that sums of two do not overflow.
constexpr int64_t kMaxCount = int64_t{1} << 61;

[[noreturn]] void FailCorrupt(std::string_view what) {
  throw Error(
      ErrorCode::kCorruption,
      fmt::format("the saved position of the data is damaged: {}; restore an older snapshot",
                  what));
}

void Require(bool condition, std::string_view otherwise) {
  if (!condition) FailCorrupt(otherwise);
}

int64_t TakeCount(std::string_view* from) {
  const auto count = TakeValue<int64_t>(from);
  Require(count >= 0 && count <= kMaxCount, "a count is out of range");
  return count;
}

StreamKind TakeKind(std::string_view* from) {
  StreamKind kind;
  const auto format = TakeValue<uint8_t>(from);
  Require(format <= static_cast<uint8_t>(DataFormat::kSynthetic), "the format is unknown");
  kind.format = static_cast<DataFormat>(format);
  const auto part = TakeValue<uint8_t>(from);
  Require(part <= static_cast<uint8_t>(DataPart::kTest), "the part of the data is unknown");
  kind.part = static_cast<DataPart>(part);
  kind.shuffle.examples = TakeCount(from);
  kind.shuffle.seed = TakeValue<uint64_t>(from);
  kind.shuffle.epoch = TakeValue<int64_t>(from);
  return kind;
}

void AppendBlock(const BlockPosition& block, std::string* to) {
  for (const int64_t number :
       {block.chunk.file, block.chunk.offset, block.chunk.line, block.chunk.bytes_before,
        block.before.bytes, block.before.skipped_rows, block.passed, block.number, block.size,
        block.taken})
    AppendValue(to, number);
  AppendValue(to, static_cast<uint8_t>(block.ended));
  AppendValue(to, block.bytes);
}

BlockPosition TakeBlock(std::string_view* from) {
  BlockPosition block;
  for (int64_t* number :
       {&block.chunk.file, &block.chunk.offset, &block.chunk.line, &block.chunk.bytes_before,
        &block.before.bytes, &block.before.skipped_rows, &block.passed, &block.number, &block.size,
        &block.taken})
    *number = TakeCount(from);
  const auto ended = TakeValue<uint8_t>(from);
  Require(ended <= 1, "a flag is out of range");
  block.ended = ended == 1;
  block.bytes = TakeValue<double>(from);
  Require(std::isfinite(block.bytes) && block.bytes >= 0, "a number of bytes is out of range");
  return block;
}

// What holds of any position of a stream of this kind.
void CheckBlock(const StreamPosition& position) {
  const BlockPosition& block = position.block;
  if (block.size == 0) {  // nothing was read
    Require(block.chunk == ChunkPlace{} && block.passed == 0 && block.taken == 0 &&
                block.before.skipped_rows == 0 && position.files.empty(),
            "it is of no block, and not at the start");
    return;
  }
  Require(block.taken > 0 && block.taken <= block.size, "more was taken than was there");
  const int64_t shuffle = position.kind.shuffle.examples;
  Require(shuffle == 0 || block.size <= shuffle, "a block is larger than the shuffle");
  const auto files = static_cast<int64_t>(position.files.size());
  if (position.kind.format == DataFormat::kSynthetic)
    Require(files == 0 && block.chunk.file == 0, "generated data have no files");
  else
    Require(block.chunk.file < files, "the file is not in the list");
}

[[noreturn]] void FailChanged(const StreamKind& kind, const std::string& what) {
  throw Error(ErrorCode::kUsage,
              fmt::format("{} has changed since the position was saved: {}; restore it as it was, "
                          "or train from the start",
                          PartName(kind.part), what));
}

template <typename T>
void RequireSame(const char* name, const T& was, const T& is) {
  if (was != is)
    throw Error(ErrorCode::kUsage,
                fmt::format("{} was {} when the position was saved, is {}; set it as it was, or "
                            "train from the start",
                            name, was, is));
}

}  // namespace

const char* PartName(DataPart part) {
  return part == DataPart::kTrain ? "data.train" : "data.test";
}

PositionWriter::PositionWriter(const StreamKind& kind, const std::vector<InputFile>& files) {
  AppendValue(&kind_, kVersion);
  AppendValue(&kind_, static_cast<uint8_t>(kind.format));
  AppendValue(&kind_, static_cast<uint8_t>(kind.part));
  AppendValue(&kind_, kind.shuffle.examples);
  AppendValue(&kind_, kind.shuffle.seed);
  AppendValue(&kind_, kind.shuffle.epoch);
  for (const InputFile& file : files) {
    AppendValue(&files_, static_cast<uint32_t>(file.path.size()));
    files_ += file.path;
    AppendValue(&files_, file.bytes);
    ends_.push_back(files_.size());
  }
}

std::string PositionWriter::Write(int64_t delivered, const BlockPosition& block) const {
  std::string text = kind_;
  AppendValue(&text, delivered);
  AppendBlock(block, &text);
  // A generator has no files.
  const size_t files =
      block.size == 0 ? 0 : std::min(ends_.size(), static_cast<size_t>(block.last_file + 1));
  AppendValue(&text, static_cast<uint32_t>(files));
  if (files > 0) text.append(files_, 0, ends_[files - 1]);
  AppendValue(&text, HashBytes(text, kPositionChecksumSeed));
  return text;
}

StreamPosition ParsePosition(std::string_view text) {
  uint64_t checksum;
  Require(text.size() >= sizeof(kVersion) + sizeof(checksum), "it is cut off");
  std::string_view end = text.substr(text.size() - sizeof(checksum));
  text.remove_suffix(sizeof(checksum));
  checksum = TakeValue<uint64_t>(&end);
  Require(checksum == HashBytes(text, kPositionChecksumSeed), "its checksum does not match");
  const auto version = TakeValue<uint32_t>(&text);
  Require(version == kVersion, fmt::format("its version is {}, expected {}", version, kVersion));
  StreamPosition position;
  position.kind = TakeKind(&text);
  position.delivered = TakeCount(&text);
  position.block = TakeBlock(&text);
  for (auto files = TakeValue<uint32_t>(&text); files > 0; --files) {
    InputFile& file = position.files.emplace_back();
    file.path = TakeBytes(&text, TakeValue<uint32_t>(&text));
    file.bytes = TakeValue<int64_t>(&text);
  }
  Require(text.empty(), "more follows than belongs to it");
  CheckBlock(position);
  position.block.last_file = static_cast<int64_t>(position.files.size()) - 1;
  return position;
}

void CheckPosition(const StreamPosition& position, const StreamKind& kind,
                   const std::vector<InputFile>& files) {
  if (position.kind.part != kind.part)
    throw Error(ErrorCode::kUsage,
                fmt::format("the position was saved of {}, but is given for {}; give it to the "
                            "data it was saved of",
                            PartName(position.kind.part), PartName(kind.part)));
  if (position.kind.format != kind.format) FailChanged(kind, "data.format is another one");
  RequireSame("seed", position.kind.shuffle.seed, kind.shuffle.seed);
  RequireSame("the epoch", position.kind.shuffle.epoch, kind.shuffle.epoch);
  RequireSame("data.shuffle", position.kind.shuffle.examples, kind.shuffle.examples);
  for (size_t i = 0; i < position.files.size(); ++i) {
    const InputFile& was = position.files[i];
    if (i >= files.size())
      FailChanged(kind, fmt::format("file {} was {}, and there are only {} now", i + 1, was.path,
                                    files.size()));
    const InputFile& is = files[i];
    if (was.path != is.path)
      FailChanged(kind, fmt::format("file {} was {}, is {}", i + 1, was.path, is.path));
    if (is.bytes >= 0 && is.bytes < was.bytes)
      FailChanged(kind, fmt::format("file {}, {}, had {} bytes, has {}", i + 1, was.path, was.bytes,
                                    is.bytes));
  }
}

}  // namespace terrace
