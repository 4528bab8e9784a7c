#include "data/compress.h"

#include <zlib.h>
#include <zstd.h>

#include <limits>

#include "base/error.h"

namespace terrace {
namespace {

// Levels at which text still leaves faster than most disks take it.
constexpr int kGzipLevel = 4;
constexpr int kZstdLevel = 3;

void AppendGzip(std::string_view data, std::string* out) {
  TERRACE_CHECK(data.size() <= std::numeric_limits<uInt>::max());
  constexpr int kGzipHeader = 16;
  z_stream stream{};
  TERRACE_CHECK(deflateInit2(&stream, kGzipLevel, Z_DEFLATED, MAX_WBITS + kGzipHeader, 8,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  const size_t begin = out->size();
  const size_t bound = deflateBound(&stream, data.size());
  out->resize(begin + bound);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out->data() + begin);
  stream.avail_out = static_cast<uInt>(bound);
  const int result = deflate(&stream, Z_FINISH);
  out->resize(begin + stream.total_out);
  deflateEnd(&stream);
  TERRACE_CHECK(result == Z_STREAM_END);
}

void AppendZstd(std::string_view data, std::string* out) {
  const size_t begin = out->size();
  out->resize(begin + ZSTD_compressBound(data.size()));
  const size_t size =
      ZSTD_compress(out->data() + begin, out->size() - begin, data.data(), data.size(), kZstdLevel);
  TERRACE_CHECK(!ZSTD_isError(size));
  out->resize(begin + size);
}

}  // namespace

Compression CompressionOfPath(std::string_view path) {
  if (path.ends_with(".gz")) return Compression::kGzip;
  if (path.ends_with(".zst")) return Compression::kZstd;
  return Compression::kNone;
}

void AppendCompressed(Compression compression, std::string_view data, std::string* out) {
  switch (compression) {
    case Compression::kNone:
      out->append(data);
      return;
    case Compression::kGzip:
      AppendGzip(data, out);
      return;
    case Compression::kZstd:
      AppendZstd(data, out);
      return;
  }
}

}  // namespace terrace
