// Compression for files that are written piece by piece, each by any thread.
#pragma once

#include <string>
#include <string_view>

namespace terrace {

enum class Compression { kNone, kGzip, kZstd };

// By the end of the path: .gz, .zst or else none.
Compression CompressionOfPath(std::string_view path);

// Appends `data` as one whole gzip member or zstd frame. Pieces one after another are a file that
// OpenBytes (data/byte_source.h), gzip and zstd read as one.
void AppendCompressed(Compression compression, std::string_view data, std::string* out);

}  // namespace terrace
