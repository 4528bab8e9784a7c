// A tiered table's moves: their order, and carrying them out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "table/schema.h"
#include "tier/disk_page.h"
#include "tier/tiered_table.h"

namespace terrace {
namespace {

// Rows ahead of the one at hand whose cache lines are fetched.
constexpr size_t kAhead = 16;

int64_t Count(size_t n) { return static_cast<int64_t>(n); }

}  // namespace

void TieredTable::Sort(RowMoves* moves) {
  if (std::is_sorted(moves->begin(), moves->end(), [](const RowMove& a, const RowMove& b) {
        return MixOfKey(a.key) < MixOfKey(b.key);
      }))
    return;
  // First by the top bits alone, into parts that fit the caches.
  constexpr int kPartBits = 8;
  const auto part = [](const RowMove& move) { return MixOfKey(move.key) >> (64 - kPartBits); };
  std::array<size_t, 1 << kPartBits> ends{};
  for (const RowMove& move : *moves) ++ends[part(move)];
  size_t sum = 0;
  for (size_t& end : ends) sum += std::exchange(end, sum);
  SetSize(&sorted_, moves->size());
  for (const RowMove& move : *moves) sorted_[ends[part(move)]++] = move;
  moves->swap(sorted_);
  for (size_t p = 0, begin = 0; p < ends.size(); begin = ends[p++])
    SortPart(std::span(*moves).subspan(begin, ends[p] - begin));
}

void TieredTable::SortPart(std::span<RowMove> moves) {
  order_.resize(moves.size());
  for (size_t i = 0; i < moves.size(); ++i)
    order_[i] = {MixOfKey(moves[i].key), static_cast<uint32_t>(i)};
  SortItems(&order_, &sorting_);
  // In place, along the cycles of the permutation.
  for (size_t start = 0; start < order_.size(); ++start) {
    const RowMove first = moves[start];
    size_t to = start;
    for (size_t from; (from = order_[to].index) != start; to = from) {
      moves[to] = moves[from];
      order_[to].index = static_cast<uint32_t>(to);
    }
    moves[to] = first;
    order_[to].index = static_cast<uint32_t>(to);
  }
}

// --- pull ---

void TieredTable::CopyVictims(std::span<const RowMove> moves, WriteBack* out) {
  const RowTest due = due_ ? due_() : RowTest();
  out->keys.clear();
  size_t leaving = 0;
  for (const RowMove& move : moves) leaving += move.evict ? 1 : 0;
  out->rows.resize(leaving * disk_row_bytes_);
  if (disk_row_bytes_ > payload_bytes_)
    std::fill(out->rows.begin(), out->rows.end(), std::byte{0});  // padding has one value
  std::byte* to = out->rows.data();
  for (size_t i = 0; i < moves.size(); ++i) {
    if (i + kAhead < moves.size() && moves[i + kAhead].evict)
      for (size_t line = 0; line < payload_bytes_; line += 64)
        __builtin_prefetch(memory_.row(moves[i + kAhead].position) + line);
    if (!moves[i].evict) continue;
    const std::byte* const row = memory_.row(moves[i].position);
    if (due && due(row)) continue;
    out->keys.push_back(moves[i].victim);
    std::memcpy(to, row, payload_bytes_);
    to += disk_row_bytes_;
  }
  out->rows.resize(out->keys.size() * disk_row_bytes_);
  expired_ += Count(leaving - out->keys.size());
}

void TieredTable::Fetch(std::span<const RowMove> moves, FetchBuffers* buffers) {
  auto& [keys, rows, found] = *buffers;
  keys.clear();
  for (const RowMove& move : moves)
    if (move.fetch) keys.push_back(move.key);
  rows.resize(keys.size() * disk_row_bytes_);
  found.resize(keys.size());
  disk_->Get(keys, rows.data(), found.data());
  int64_t read = 0, created = 0;
  size_t i = 0;
  std::byte* const base = memory_.base();
  const int64_t stride = memory_.schema().layout.stride;
  for (size_t m = 0; m < moves.size(); ++m) {
    const RowMove& move = moves[m];
    if (m + kAhead < moves.size())
      __builtin_prefetch(base + moves[m + kAhead].position * stride, 1);
    if (!move.fetch) continue;
    std::byte* const row = base + move.position * stride;
    if (found[i] != 0) {
      std::memcpy(row, &rows[i * disk_row_bytes_], payload_bytes_);
      read += move.create;
    } else if (move.create) {
      InitRow(memory_.schema(), move.key, row);
      ++created;
    } else {
      std::memset(row, 0, payload_bytes_);
    }
    ++i;
  }
  from_disk_ += read;
  created_ += created;
}

// --- push ---

void TieredTable::Write(const WriteBack& rows) {
  try {
    disk_->Put(rows.keys, rows.rows.data());
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage) throw;
    throw Error(e.code(), fmt::format("table `{}`: its disk tier's memory is tiers.disk.memory: {}",
                                      memory_.schema().name, e.what()));
  }
  written_ += Count(rows.keys.size());
}

}  // namespace terrace
