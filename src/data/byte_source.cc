#include "data/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process.h"

namespace terrace {
namespace {

constexpr int kInputPollMs = 50;
constexpr size_t kFirstFillBytes = size_t{1} << 12;  // enough to recognise a file ...
constexpr size_t kMaxFillBytes = size_t{1} << 18;    // ... and to decompress a large one

// The file behind a source, with a window of bytes that were read and not yet used.
class Input {
 public:
  Input(Env& env, const std::string& path, int64_t* consumed,
        std::shared_ptr<const std::atomic<bool>> cancelled)
      : name_(DisplayPath(path)),
        consumed_(consumed),
        cancelled_(path == "-" ? std::move(cancelled) : nullptr),
        file_(env.OpenForRead(path)) {}

  const std::string& name() const { return name_; }
  const char* data() const { return buffer_.data() + begin_; }
  size_t size() const { return end_ - begin_; }
  void Skip(size_t n) { begin_ += n; }

  // Reads more behind what is there. False at the end of the file.
  bool Fill() {
    if (begin_ > 0) std::memmove(buffer_.data(), data(), size());  // little or nothing
    end_ -= std::exchange(begin_, 0);
    if (buffer_.size() < end_ + fill_bytes_) buffer_.resize(end_ + fill_bytes_);
    const size_t n = ReadFile(buffer_.data() + end_, fill_bytes_);
    end_ += n;
    if (n == fill_bytes_) fill_bytes_ = std::min(2 * fill_bytes_, kMaxFillBytes);
    return n > 0;
  }
  size_t ReadFile(void* to, size_t size) {
    while (cancelled_ != nullptr && !WaitForInput(kInputPollMs))
      if (cancelled_->load(std::memory_order_relaxed)) return 0;
    const size_t n = file_->Read(to, size);
    *consumed_ += static_cast<int64_t>(n);
    return n;
  }
  void SkipFile(uint64_t size) {
    file_->Skip(size);
    *consumed_ += static_cast<int64_t>(size);
  }

 private:
  std::string name_;
  int64_t* consumed_;
  std::shared_ptr<const std::atomic<bool>> cancelled_;
  std::unique_ptr<SequentialFile> file_;
  std::vector<char> buffer_;
  size_t fill_bytes_ = kFirstFillBytes;
  size_t begin_ = 0;
  size_t end_ = 0;
};

class PlainSource : public SequentialFile {
 public:
  explicit PlainSource(Input input) : input_(std::move(input)) {}
  size_t Read(void* to, size_t size) override {
    if (input_.size() == 0) return input_.ReadFile(to, size);
    const size_t n = std::min(size, input_.size());
    std::memcpy(to, input_.data(), n);
    input_.Skip(n);
    return n;
  }
  void Skip(uint64_t size) override {
    const size_t n = std::min<uint64_t>(size, input_.size());
    input_.Skip(n);
    if (size > n) input_.SkipFile(size - n);
  }

 private:
  Input input_;
};

// What both kinds of compressed data share: where they fail.
class CompressedSource : public SequentialFile {
 protected:
  CompressedSource(Input input, const char* kind) : input_(std::move(input)), kind_(kind) {}

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(ErrorCode::kData,
                fmt::format("{}: the {} data are {} after {} uncompressed bytes; make or copy the "
                            "file again",
                            input_.name(), kind_, what, produced_));
  }

  Input input_;
  const char* const kind_;
  int64_t produced_ = 0;
};

class GzipSource : public CompressedSource {
 public:
  explicit GzipSource(Input input) : CompressedSource(std::move(input), "gzip") {
    // 16: gzip headers and checksums, not zlib's.
    if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK)
      throw Error(ErrorCode::kIo, input_.name() + ": no memory to start decompression");
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t Read(void* to, size_t size) override {
    stream_.next_out = static_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
    const size_t room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (input_.size() == 0 && !input_.Fill()) {
        if (in_member_) Fail("cut short");
        break;
      }
      if (!in_member_ && !StartMember()) continue;
      Inflate();
    }
    const size_t n = room - stream_.avail_out;
    produced_ += static_cast<int64_t>(n);
    return n;
  }

 private:
  // Between members: files may be padded with zeros. False if only zeros were left.
  bool StartMember() {
    while (members_ > 0 && input_.size() > 0 && *input_.data() == 0) input_.Skip(1);
    if (input_.size() == 0) return false;
    in_member_ = true;
    return true;
  }

  void Inflate() {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(input_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    input_.Skip(input_.size() - stream_.avail_in);
    if (result == Z_STREAM_END) {
      inflateReset(&stream_);
      in_member_ = false;
      ++members_;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      Fail(fmt::format("corrupt ({})", stream_.msg != nullptr ? stream_.msg : "inflate failed"));
    }
  }

  z_stream stream_{};
  bool in_member_ = false;
  int64_t members_ = 0;
};

class ZstdSource : public CompressedSource {
 public:
  explicit ZstdSource(Input input)
      : CompressedSource(std::move(input), "zstd"), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr)
      throw Error(ErrorCode::kIo, input_.name() + ": no memory to start decompression");
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  size_t Read(void* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      if (!in_frame_) ReadFrameSize();
      // With input used up the decoder may still hold output of a frame in progress.
      if (input_.size() == 0 && !input_.Fill() && !pending_output_) {
        if (in_frame_) Fail("cut short");
        break;
      }
      ZSTD_inBuffer in{input_.data(), input_.size(), 0};
      const size_t result = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(result)) Fail(fmt::format("corrupt ({})", ZSTD_getErrorName(result)));
      input_.Skip(in.pos);
      in_frame_ = result != 0;
      pending_output_ = in_frame_ && out.pos == out.size;
      frame_produced_ += out.pos;
      // The decoder itself checks this only where it sees a frame whole.
      if (!in_frame_ && frame_size_ != ZSTD_CONTENTSIZE_UNKNOWN && frame_size_ != frame_produced_)
        Fail("corrupt (a frame is not as long as its header says)");
    }
    produced_ += static_cast<int64_t>(out.pos);
    return out.pos;
  }

 private:
  // Between frames: what the next one's header says of its length.
  void ReadFrameSize() {
    constexpr size_t kLongestHeader = 18;
    while (input_.size() < kLongestHeader && input_.Fill()) {
    }
    frame_produced_ = 0;
    frame_size_ = ZSTD_getFrameContentSize(input_.data(), input_.size());
    // What is no header at all the decoder explains better.
    if (frame_size_ == ZSTD_CONTENTSIZE_ERROR) frame_size_ = ZSTD_CONTENTSIZE_UNKNOWN;
  }

  ZSTD_DStream* const stream_;
  bool in_frame_ = false;
  bool pending_output_ = false;
  uint64_t frame_size_ = ZSTD_CONTENTSIZE_UNKNOWN;
  uint64_t frame_produced_ = 0;
};

bool StartsWith(const Input& input, std::string_view magic) {
  return std::string_view(input.data(), input.size()).substr(0, magic.size()) == magic;
}

// zstd's skippable frames, which parallel compressors write first: 0x184D2A50 .. 0x184D2A5F.
bool StartsWithSkippableFrame(const Input& input) {
  return input.size() >= 4 && (input.data()[0] & 0xf0) == 0x50 &&
         std::memcmp(input.data() + 1, "\x2a\x4d\x18", 3) == 0;
}

}  // namespace

std::string DisplayPath(const std::string& path) { return path == "-" ? "standard input" : path; }

std::unique_ptr<SequentialFile> OpenBytes(Env& env, const std::string& path, int64_t* consumed,
                                          std::shared_ptr<const std::atomic<bool>> cancelled) {
  Input input(env, path, consumed, std::move(cancelled));
  while (input.size() < 4 && input.Fill()) {
  }
  if (StartsWith(input, "\x1f\x8b")) return std::make_unique<GzipSource>(std::move(input));
  if (StartsWith(input, "\x28\xb5\x2f\xfd") || StartsWithSkippableFrame(input))
    return std::make_unique<ZstdSource>(std::move(input));
  return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace terrace
