#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/open_data.h"

namespace terrace {
namespace {

constexpr int64_t kRowsAtOnce = 4096;
// Of what SaveDenseStats writes: raised with every change.
constexpr uint32_t kVersion = 1;
constexpr uint64_t kChecksumSeed = 0x64656e7365737461;

// Mean and variance of a sequence (Welford), in the order of the data.
struct Moments {
  int64_t count = 0;
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean

  void Add(double x) {
    ++count;
    const double distance = x - mean;
    mean += distance / static_cast<double>(count);
    squares += distance * (x - mean);
  }
  // 1 for a column that does not vary.
  double InverseDeviation() const {
    if (count == 0 || squares <= 0) return 1;
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(count));
    return std::isfinite(inverse) ? inverse : 1;
  }
};

struct SavedColumn {
  std::string_view name;
  double mean;
  double inv_std;
};

void Require(bool condition, std::string_view otherwise) {
  if (!condition)
    throw Error(ErrorCode::kCorruption,
                fmt::format("the saved statistics of dense columns are damaged: {}; restore an "
                            "older snapshot",
                            otherwise));
}

std::vector<SavedColumn> ParseStats(std::string_view stats) {
  Require(stats.size() >= sizeof(kVersion) + sizeof(uint64_t), "they are cut off");
  std::string_view end = stats.substr(stats.size() - sizeof(uint64_t));
  stats.remove_suffix(sizeof(uint64_t));
  Require(TakeValue<uint64_t>(&end) == HashBytes(stats, kChecksumSeed),
          "their checksum does not match");
  const auto version = TakeValue<uint32_t>(&stats);
  Require(version == kVersion, fmt::format("their version is {}, expected {}", version, kVersion));
  std::vector<SavedColumn> columns;
  while (!stats.empty()) {
    SavedColumn column;
    column.name = TakeBytes(&stats, TakeValue<uint32_t>(&stats));
    column.mean = TakeValue<double>(&stats);
    column.inv_std = TakeValue<double>(&stats);
    Require(std::isfinite(column.mean) && std::isfinite(column.inv_std) && column.inv_std > 0,
            "a number is out of range");
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string SaveDenseStats(const FeatureSpec& spec) {
  std::string stats;
  AppendValue(&stats, kVersion);
  for (const DenseColumn& column : spec.dense) {
    if (!column.config.standardise) continue;
    AppendValue(&stats, static_cast<uint32_t>(column.config.name.size()));
    stats += column.config.name;
    AppendValue(&stats, column.mean);
    AppendValue(&stats, column.inv_std);
  }
  AppendValue(&stats, HashBytes(stats, kChecksumSeed));
  return stats;
}

void LoadDenseStats(std::string_view stats, FeatureSpec* spec) {
  const std::vector<SavedColumn> saved = ParseStats(stats);
  std::vector<DenseColumn> dense = spec->dense;
  for (DenseColumn& column : dense) {
    if (!column.config.standardise) continue;
    const auto found = std::ranges::find(saved, column.config.name, &SavedColumn::name);
    if (found == saved.end())
      throw Error(ErrorCode::kUsage,
                  fmt::format("data.dense: column {} has standardise = true, but the model was "
                              "trained without its mean and deviation; set it to false, or train "
                              "again",
                              column.config.name));
    column.mean = found->mean;
    column.inv_std = found->inv_std;
  }
  spec->dense = std::move(dense);
}

void MeasureDenseColumns(Env& env, const DataConfig& config, FeatureSpec* spec) {
  // What is measured is the value before it is standardised, of cells that are not empty.
  FeatureSpec raw = *spec;
  bool any = false;
  for (DenseColumn& column : raw.dense) {
    any = any || column.config.standardise;
    column.config.standardise = false;
    column.config.clip.clear();
    column.config.missing = std::numeric_limits<double>::quiet_NaN();
  }
  if (!any) return;
  for (const std::string& path : config.train)
    if (path == "-" && config.format != DataFormat::kSynthetic)
      throw Error(ErrorCode::kUsage,
                  "data.dense: standardise = true measures the training data before it is read, "
                  "which standard input does not allow; set standardise = false, or name a file");

  std::vector<Moments> moments(spec->dense.size());
  DataConfig in_file_order = config;
  in_file_order.shuffle = 0;
  const std::unique_ptr<DataStream> stream = OpenData(
      env, in_file_order, raw, {.part = DataPart::kTrain, .max_examples = config.standardise_rows});
  Batch batch;
  while (stream->Next(kRowsAtOnce, &batch)) {
    const float* value = batch.dense.data();
    for (int64_t row = 0; row < batch.examples; ++row)
      for (Moments& column : moments) {
        if (!std::isnan(*value)) column.Add(*value);
        ++value;
      }
  }
  for (size_t i = 0; i < moments.size(); ++i) {
    if (!spec->dense[i].config.standardise) continue;
    spec->dense[i].mean = moments[i].mean;
    spec->dense[i].inv_std = moments[i].InverseDeviation();
  }
}

}  // namespace terrace
