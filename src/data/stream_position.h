// The position of a data stream as a string: numbers and the names of files, no examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/open_data.h"
#include "data/shuffle_buffer.h"

namespace terrace {

// A position ends with the XXH3 of the bytes before, with this seed.
constexpr uint64_t kPositionChecksumSeed = 0x706f736974696f6e;

struct InputFile {
  std::string path;
  int64_t bytes = -1;  // when the stream was opened; -1: unknown
};

// What must be the same when the stream is opened again.
struct StreamKind {
  DataFormat format = DataFormat::kCriteo;
  DataPart part = DataPart::kTrain;
  ShuffleOptions shuffle;
};

struct StreamPosition {
  StreamKind kind;
  int64_t delivered = 0;  // examples
  BlockPosition block;
  std::vector<InputFile> files;  // up to the last one of which the block has examples
};

// Makes positions of one stream: the files' part of each is a prefix of what is made once.
class PositionWriter {
 public:
  PositionWriter(const StreamKind& kind, const std::vector<InputFile>& files);
  std::string Write(int64_t delivered, const BlockPosition& block) const;

 private:
  std::string kind_;
  std::string files_;
  std::vector<size_t> ends_;  // of each file's entry in files_
};

// Throws Error(kCorruption) if `text` is not what PositionWriter made, or not all of it.
StreamPosition ParsePosition(std::string_view text);

// Throws Error(kUsage) that says what has changed if a stream of this kind and of these files
// cannot go on at the position. More files, and longer ones, are fine.
void CheckPosition(const StreamPosition& position, const StreamKind& kind,
                   const std::vector<InputFile>& files);

// "data.train" or "data.test".
const char* PartName(DataPart part);

}  // namespace terrace
