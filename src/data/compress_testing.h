// Compressed files, for tests. Tests link zlib and libzstd.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace terrace {

inline std::string Plain(std::string_view text) { return std::string(text); }

inline std::string Gzip(std::string_view text) {
  z_stream stream{};
  TERRACE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  TERRACE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// With a checksum, as the zstd command writes it.
inline std::string Zstd(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size =
      ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size());
  TERRACE_CHECK(!ZSTD_isError(size));
  out.resize(size);
  return out;
}

}  // namespace terrace
