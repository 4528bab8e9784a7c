#include "cli/data_info.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/data_info_detect.h"
#include "cli/data_info_print.h"
#include "cli/data_info_stats.h"
#include "data/open_data.h"
#include "train/run_config.h"

namespace terrace {
namespace {

constexpr int64_t kBatch = 4096;

// Dense columns are shown as the file has them.
void ReadDenseAsTheyAre(std::vector<DenseConfig>* dense) {
  for (DenseConfig& column : *dense) {
    column.log = column.standardise = false;
    column.clip.clear();
    column.missing = kMissingMark;
  }
}

DataConfig ConfigOfFile(const InfoOptions& options) {
  RunConfig run;
  ConfigFile::Load(options.config).Read([&](ConfigVisitor& v) { run.Visit(v); });
  DataConfig data = std::move(run.data);
  if (!options.files.empty()) data.train = options.files;
  // Those that the format has by itself are written out, so that they too are read as they are.
  if (data.format == DataFormat::kCriteo && data.dense.empty())
    for (const DenseColumn& column : FeatureSpec::Resolve(data).dense)
      data.dense.push_back(column.config);
  ReadDenseAsTheyAre(&data.dense);
  return data;
}

DataConfig ConfigOf(Env& env, const InfoOptions& options) {
  if (!options.config.empty()) return ConfigOfFile(options);
  if (options.files.empty())
    throw Error(ErrorCode::kUsage, "no file given; name data files, or a --config that does");
  const std::vector<std::string> found = env.Glob(options.files[0]);
  if (found.empty())
    throw Error(ErrorCode::kUsage, fmt::format("no file matches \"{}\"", options.files[0]));
  DataConfig data = DetectData(env, found[0], options.format, options.label);
  data.train = options.files;
  return data;
}

// Why the first of the bad rows is one, in the words of a run that stops at it.
std::string FirstBadRow(Env& env, DataConfig data, const FeatureSpec& spec) {
  data.on_bad_row = OnBadRow::kError;
  try {
    const std::unique_ptr<DataStream> stream = OpenData(env, data, spec, {});
    Batch batch;
    while (stream->Next(kBatch, &batch)) {
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

bool ReadsStandardInput(const DataConfig& data) {
  return data.format != DataFormat::kSynthetic && data.train == std::vector<std::string>{"-"};
}

}  // namespace

std::string DescribeData(Env& env, const InfoOptions& options, const std::atomic<bool>& stop) {
  DataConfig data = ConfigOf(env, options);
  data.threads = options.threads;
  data.shuffle = 0;
  data.on_bad_row = OnBadRow::kSkip;
  const FeatureSpec spec = FeatureSpec::Resolve(data);
  OpenDataOptions open;
  open.max_examples = options.max_examples;
  const std::unique_ptr<DataStream> stream = OpenData(env, data, spec, open);

  const double start = NowSeconds();
  DataStats stats(spec);
  ProgressLine progress;
  for (Batch batch; stream->Next(kBatch, &batch);) {
    stats.Add(batch);
    if (stop.load(std::memory_order_relaxed))
      throw Error(ErrorCode::kInterrupted,
                  fmt::format("interrupted after {} examples", stats.examples()));
    if (!progress.Due()) continue;
    const double share = stream->progress();
    progress.Show(
        fmt::format("{} examples, {}{}/s", ShortCount(static_cast<double>(stats.examples())),
                    share >= 0 ? fmt::format("{:.0f} %, ", 100 * share) : "",
                    ShortCount(static_cast<double>(stats.examples()) / (NowSeconds() - start))));
  }
  progress.Clear();

  InfoSource source{data, stream->skipped_rows(), ""};
  if (source.skipped_rows > 0 && !ReadsStandardInput(data))
    source.first_bad_row = FirstBadRow(env, data, spec);
  if (stats.examples() == 0)
    throw Error(ErrorCode::kData, source.first_bad_row.empty()
                                      ? "there are no examples"
                                      : fmt::format("not one row could be read. The first one: {}",
                                                    source.first_bad_row));
  return RenderInfo(env, source, stats);
}

}  // namespace terrace
