#include "checkpoint/dense_part.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.h"

namespace terrace {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string_view BytesOf(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

}  // namespace

int64_t NumbersOf(const SnapshotDense& block) {
  int64_t numbers = 1;
  for (const int64_t size : block.shape) numbers *= size;
  return numbers;
}

void AddDense(SnapshotWriter* writer, std::span<const float> params, std::span<const float> state) {
  writer->StreamFile(kDenseFile, [&](const SnapshotWriter::Append& append) {
    append(BytesOf(params));
    append(BytesOf(state));
  });
}

DensePart ReadDense(const Snapshot& snapshot) {
  const std::string bytes = snapshot.ReadFile(kDenseFile);
  // Each block is far below the largest number, and so is the size of a file that exists.
  const auto has = static_cast<int64_t>(bytes.size() / sizeof(float));
  int64_t numbers = 0;
  for (const SnapshotDense& block : snapshot.info().dense)
    if (numbers <= has) numbers += NumbersOf(block);
  if (numbers > has || bytes.size() % sizeof(float) != 0)
    throw Error(ErrorCode::kCorruption,
                fmt::format("{}/{}: has {} bytes, but the blocks of the MANIFEST need {} numbers "
                            "of 4; use another snapshot (terrace snapshot list)",
                            snapshot.path(), kDenseFile, bytes.size(), numbers));
  DensePart part;
  part.params.resize(static_cast<size_t>(numbers));
  part.state.resize(static_cast<size_t>(has - numbers));
  const char* from = bytes.data();
  for (std::vector<float>* to : {&part.params, &part.state}) {
    if (to->empty()) continue;
    std::memcpy(to->data(), from, to->size() * sizeof(float));
    from += to->size() * sizeof(float);
  }
  return part;
}

}  // namespace terrace
