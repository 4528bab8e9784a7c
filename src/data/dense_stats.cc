#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/open_data.h"

namespace terrace {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

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

}  // namespace

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
