// What tests of a whole disk store share: rows that tell their key and version, and contents to
// compare a store with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "tier/disk_page.h"
#include "tier/disk_store.h"

namespace terrace {

// Versions of rows by the mix of their keys, which is the order of a scan.
using Contents = std::map<uint64_t, uint64_t>;

inline std::string KeyText(uint64_t key) {
  char text[64];
  std::snprintf(text, sizeof(text), "key %#jx (mix %#jx)", uintmax_t{key},
                uintmax_t{MixOfKey(key)});
  return text;
}

// A row is its version, then bytes that depend on key and version.
inline void FillRow(uint64_t key, uint64_t version, std::byte* row, size_t bytes) {
  std::memcpy(row, &version, sizeof(version));
  for (size_t i = sizeof(version); i < bytes; i += 8) {
    const uint64_t word = RandomBits(key, version, i);
    std::memcpy(row + i, &word, std::min<size_t>(8, bytes - i));
  }
}

// Throws std::runtime_error if it is not a row of this key.
inline uint64_t VersionOf(uint64_t key, const std::byte* row, size_t bytes) {
  uint64_t version;
  std::memcpy(&version, row, sizeof(version));
  std::vector<std::byte> expected(bytes);
  FillRow(key, version, expected.data(), bytes);
  if (std::memcmp(row, expected.data(), bytes) != 0)
    throw std::runtime_error("the row of " + KeyText(key) + " is wrong");
  return version;
}

// What PutVersion leaves.
inline void NoteVersion(std::span<const uint64_t> keys, uint64_t version, Contents* contents) {
  std::map<uint64_t, uint64_t> seen;
  for (uint64_t key : keys) (*contents)[MixOfKey(key)] = version + seen[key]++;
}

// Puts all keys with one version; of a key that is there twice the second gets version + 1.
inline void PutVersion(DiskStore& store, std::span<const uint64_t> keys, uint64_t version,
                       Contents* contents = nullptr) {
  std::vector<std::byte> rows(keys.size() * store.row_bytes());
  std::map<uint64_t, uint64_t> seen;
  for (size_t i = 0; i < keys.size(); ++i)
    FillRow(keys[i], version + seen[keys[i]]++, &rows[i * store.row_bytes()], store.row_bytes());
  store.Put(keys, rows.data());
  if (contents != nullptr) NoteVersion(keys, version, contents);
}

inline void DeleteKeys(DiskStore& store, std::span<const uint64_t> keys,
                       Contents* contents = nullptr) {
  store.Delete(keys);
  if (contents == nullptr) return;
  for (uint64_t key : keys) contents->erase(MixOfKey(key));
}

// By a scan. Throws std::runtime_error if rows are wrong or not in order.
inline Contents ReadAll(DiskStore& store, int first, int end) {
  Contents contents;
  store.Scan(first, end, [&](std::span<const uint64_t> keys, const std::byte* rows) {
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t mix = MixOfKey(keys[i]);
      const int partition = store.PartitionOf(keys[i]);
      if ((!contents.empty() && contents.rbegin()->first >= mix) || partition < first ||
          partition >= end)
        throw std::runtime_error(KeyText(keys[i]) + " is not in order");
      contents[mix] = VersionOf(keys[i], rows + i * store.row_bytes(), store.row_bytes());
    }
  });
  return contents;
}
inline Contents ReadAll(DiskStore& store) { return ReadAll(store, 0, store.partitions()); }

// The first difference, empty if there is none.
inline std::string Difference(const Contents& found, const Contents& expected) {
  for (const auto& [mix, version] : expected) {
    const auto it = found.find(mix);
    if (it == found.end())
      return KeyText(KeyOfMix(mix)) + " version " + std::to_string(version) + " is missing; " +
             std::to_string(found.size()) + " rows, " + std::to_string(expected.size()) +
             " expected";
    if (it->second != version)
      return KeyText(KeyOfMix(mix)) + " has version " + std::to_string(it->second) + ", " +
             std::to_string(version) + " expected";
  }
  for (const auto& [mix, version] : found)
    if (!expected.contains(mix))
      return KeyText(KeyOfMix(mix)) + " version " + std::to_string(version) + " is too many";
  return {};
}

// Gets the keys and compares; empty if all is as expected.
inline std::string GetDifference(DiskStore& store, std::span<const uint64_t> keys,
                                 const Contents& expected) {
  const size_t bytes = store.row_bytes();
  constexpr std::byte kUntouched{0xa5};
  std::vector<std::byte> rows(keys.size() * bytes, kUntouched);
  std::vector<uint8_t> found(keys.size(), 9);
  const size_t count = store.Get(keys, rows.data(), found.data());
  size_t present = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::byte* row = &rows[i * bytes];
    const auto it = expected.find(MixOfKey(keys[i]));
    if (found[i] != (it != expected.end()))
      return KeyText(keys[i]) + ": found is " + std::to_string(found[i]);
    present += found[i];
    if (found[i] == 0) {
      for (size_t b = 0; b < bytes; ++b)
        if (row[b] != kUntouched) return KeyText(keys[i]) + ": absent, but written";
    } else if (const uint64_t version = VersionOf(keys[i], row, bytes); version != it->second) {
      return KeyText(keys[i]) + ": version " + std::to_string(version) + ", " +
             std::to_string(it->second) + " expected";
    }
  }
  if (count == present) return {};
  return std::to_string(present) + " found, " + std::to_string(count) + " reported";
}

// Everything by scan and by get, and the counts of the statistics.
inline std::string StoreDifference(DiskStore& store, const Contents& expected) {
  if (std::string d = Difference(ReadAll(store), expected); !d.empty()) return "scan: " + d;
  std::vector<uint64_t> keys;
  for (const auto& [mix, version] : expected) {
    keys.push_back(KeyOfMix(mix));
    keys.push_back(KeyOfMix(mix + 1));  // often absent
  }
  if (std::string d = GetDifference(store, keys, expected); !d.empty()) return "get: " + d;
  const PartitionStats total = store.stats().total;
  const auto rows = static_cast<int64_t>(expected.size());
  if (rows < total.rows_min() || rows > total.rows_max())
    return "stats: " + std::to_string(total.rows_min()) + " to " +
           std::to_string(total.rows_max()) + " rows, really " + std::to_string(rows);
  return {};
}

}  // namespace terrace
