// The manifest of a snapshot: what it is and which files make it up. docs/snapshots.md.
//
// A text file of lines with a checksum at its end. Whatever it says is checked when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace terrace {

struct SnapshotTable {
  std::string name;
  int64_t row_bytes = 0;  // of the store's rows
  std::string schema;     // one line, for people
  int64_t rows_min = 0, rows_max = 0;
  // False while its rows are being changed, or when such a change was cut off: then the store is
  // whole, but nobody knows which of its two states it is in, and store_hash says nothing.
  bool settled = true;
  Hash128 store_hash = {};  // of the MANIFEST of the store
};

struct SnapshotDense {
  std::string name;
  std::vector<int64_t> shape;  // none: one number
};

struct SnapshotFile {
  std::string name;
  int64_t bytes = 0;
  Hash128 hash = {};
};

struct SnapshotInfo {
  static constexpr int kFormat = 1;
  static constexpr int64_t kMaxBatch = 999'999'999'999;  // what a directory's name holds

  int format = kFormat;
  int64_t batch = 0;                 // batches trained so far, of the whole run
  int64_t epoch = 0;                 // the one that the next batch belongs to
  int64_t examples = 0;              // trained so far
  std::string created;               // UTC: 2026-01-31T23:59:59Z
  std::string program;               // name and version of the program that wrote it
  std::vector<std::string> lineage;  // where it comes from, oldest first; a line each
  std::vector<SnapshotTable> tables;
  std::vector<SnapshotDense> dense;
  std::vector<SnapshotFile> files;  // all but the MANIFEST and the stores'

  // Null if there is none of this name.
  const SnapshotTable* FindTable(std::string_view name) const;
  const SnapshotFile* FindFile(std::string_view name) const;

  // Control characters in text become '?'. Throws Error(kUsage) if EscapeName does.
  std::string ToText() const;
  // `path` is for messages. Throws Error(kCorruption) with the line and what was expected there;
  // Error(kUsage) if it was written by a newer version, or if it is another kind of manifest.
  static SnapshotInfo Parse(std::string_view text, const std::string& path);
};

// The name of a table or of a dense block as part of a file's name: what is not a letter, a digit
// or one of "_-." becomes %XX. Throws Error(kUsage) if it is empty or longer than a file's name can
// be.
std::string EscapeName(std::string_view name);
// Whether a file of a snapshot may have this name: as EscapeName gives it, and no other's.
bool IsSnapshotFile(std::string_view name);
// The time now as SnapshotInfo::created has it.
std::string UtcNow();
std::string HashText(const Hash128& hash);  // 32 hexadecimal digits

}  // namespace terrace
