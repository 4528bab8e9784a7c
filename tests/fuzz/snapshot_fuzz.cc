// Any bytes as the manifest of a snapshot: they are refused with an Error, or they are exactly what
// is written for what was read, and name only files in the snapshot.
//
// Inputs that start with '+' get a right checksum, so that most get past it.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/snapshot_manifest.h"

namespace terrace {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void Run(std::string text) {
  if (text.starts_with('+')) {
    text.erase(0, 1);
    text += fmt::format("checksum {:016x}\n", HashBytes(text, 0));
  }
  SnapshotInfo info;
  try {
    info = SnapshotInfo::Parse(text, "MANIFEST");
  } catch (const Error& e) {
    Require(e.code() == ErrorCode::kCorruption || e.code() == ErrorCode::kUsage);
    Require(std::string(e.what()).size() < 500);
    return;
  }
  Require(info.ToText() == text);
  for (const SnapshotFile& file : info.files)
    Require(!file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos &&
            file.bytes >= 0);
  for (const SnapshotTable& table : info.tables)
    Require(EscapeName(table.name).find('/') == std::string::npos &&
            table.rows_min <= table.rows_max && info.FindTable(table.name) == &table);
}

}  // namespace
}  // namespace terrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  terrace::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
