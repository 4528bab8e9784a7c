#include "tier/digest.h"

#include <cstring>
#include <vector>

namespace terrace {
namespace {

// A sum of hashes: any order gives the same.
class RowSum {
 public:
  explicit RowSum(const TableSchema& schema)
      : seed_(HashBytes(schema.name, 0)),
        bytes_(static_cast<size_t>(RowLayout::kKeyBytes + schema.layout.payload_bytes())) {}

  // `record`: the key, then the row.
  void Add(const std::byte* record) {
    ++rows_;
    const Hash128 hash = HashBytes128(record, bytes_, seed_);
    sum_ += static_cast<unsigned __int128>(hash.high) << 64 | hash.low;
  }
  void Add(const RowSum& other) {
    sum_ += other.sum_;
    rows_ += other.rows_;
  }
  RowsDigest value() const {
    return {{static_cast<uint64_t>(sum_), static_cast<uint64_t>(sum_ >> 64)}, rows_};
  }

 private:
  uint64_t seed_;
  size_t bytes_;
  unsigned __int128 sum_ = 0;
  int64_t rows_ = 0;
};

const std::byte* RecordOf(const MemoryTier& tier, size_t position) {
  return tier.row(static_cast<uint32_t>(position)) - RowLayout::kKeyBytes;
}

// Rows of these partitions that are not in memory, where the newer value is.
void AddDisk(DiskStore& disk, const MemoryTier& memory, int first, int end, const RowTest& due,
             RowSum* sum) {
  const auto payload = static_cast<size_t>(memory.schema().layout.payload_bytes());
  std::vector<std::byte> record(RowLayout::kKeyBytes + payload);
  std::vector<uint32_t> positions;
  disk.Scan(first, end, [&](std::span<const uint64_t> keys, const std::byte* rows) {
    positions.resize(keys.size());
    memory.Find(keys, positions);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (positions[i] != 0 || (due && due(rows + i * disk.row_bytes()))) continue;
      std::memcpy(record.data(), &keys[i], RowLayout::kKeyBytes);
      std::memcpy(record.data() + RowLayout::kKeyBytes, rows + i * disk.row_bytes(), payload);
      sum->Add(record.data());
    }
  });
}

}  // namespace

RowsDigest DigestRows(const MemoryTier& tier, const RowTest& due) {
  RowSum sum(tier.schema());
  const std::vector<bool> free = tier.Free();
  for (size_t p = 1; p < free.size(); ++p)
    if (!free[p] && !(due && due(tier.row(static_cast<uint32_t>(p))))) sum.Add(RecordOf(tier, p));
  return sum.value();
}

RowsDigest DigestRows(TieredTable* table, const RowTest& due, Workers* workers) {
  const MemoryTier& memory = table->memory();
  std::vector<RowSum> sums(static_cast<size_t>(workers->threads()), RowSum(memory.schema()));
  const std::vector<bool> resident = table->Resident();
  for (size_t p = 0; p < resident.size(); ++p)
    if (resident[p] && !(due && due(memory.row(static_cast<uint32_t>(p)))))
      sums[0].Add(RecordOf(memory, p));
  workers->Run(table->disk().partitions(), [&](int64_t p, int worker) {
    AddDisk(table->disk(), memory, static_cast<int>(p), static_cast<int>(p) + 1, due,
            &sums[static_cast<size_t>(worker)]);
  });
  for (size_t w = 1; w < sums.size(); ++w) sums[0].Add(sums[w]);
  return sums[0].value();
}

}  // namespace terrace
