// One training run, in memory or through the tiers: prints a JSON object.
//
//   tiers_bench --shape ads100 --rows 32000000 --prefill --warmup 200 --batches 200
//       tiers.memory.budget=320000000 tiers.disk.path=DIR [train.window=4 ...]
//   tiers_bench --shape ads100 --rows 32000000 --warmup 200 --batches 200 --lru 2000000
//
// The product's own stages run, set up as `terrace train` does; only the data is made on the way
// (tiers_traffic.h). Names without prefix in the result are of the measured batches, those in "run"
// of all from the first batch on. With --lru nothing is trained: the same batches go through an
// exact LRU of so many rows.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "bench/disk_meter.h"
#include "bench/disk_work.h"
#include "bench/shapes.h"
#include "bench/tiers_lru.h"
#include "bench/tiers_traffic.h"
#include "train/pipeline.h"
#include "train/step.h"
#ifdef TERRACE_BENCH_ROCKSDB
#include "bench/peers/tier_rocksdb.h"
#endif

namespace terrace {
namespace {

using nlohmann::json;

constexpr size_t kFillRows = 32 << 10;  // created at once

const std::map<std::string, ModelState::OpenStore> kStores = {
    {"ours", DiskStore::Open},
#ifdef TERRACE_BENCH_ROCKSDB
    {"rocksdb", OpenRocksDbTier},
#endif
};

struct BenchOptions {
  std::string shape = "ads100";
  std::string store = "ours";
  TrafficOptions traffic;
  bool prefill = false;
  int64_t warmup = 0;
  int64_t batches = 100;
  int64_t cooldown = 0;
  int64_t memory_rows = 0;
  uint64_t lru = 0;
  bool digest = true;
  std::vector<std::string> sets;

  int64_t all_batches() const { return warmup + batches + cooldown; }
};

RunConfig ConfigOf(const BenchOptions& options) {
  std::vector<std::string> sets = {fmt::format("train.max_batches={}", options.all_batches())};
  sets.insert(sets.end(), options.sets.begin(), options.sets.end());
  return ShapeConfig(ShapeOf(options.shape), sets, "tiers_bench");
}

// From the one before to here.
TieredStats operator-(TieredStats a, const TieredStats& b) {
  a.lookups -= b.lookups;
  a.hits -= b.hits;
  a.from_disk -= b.from_disk;
  a.created -= b.created;
  a.evicted -= b.evicted;
  a.written -= b.written;
  return a;
}

json AsJson(const StageTime& time) {
  return {{"busy", time.busy}, {"wait_input", time.wait_input}, {"wait_output", time.wait_output}};
}

void AddRows(const TieredStats& rows, json* out) {
  out->update({{"lookups", rows.lookups},
               {"hits", rows.hits},
               {"hit_rate", static_cast<double>(rows.hits) /
                                static_cast<double>(std::max<int64_t>(rows.lookups, 1))},
               {"from_disk", rows.from_disk},
               {"created", rows.created},
               {"evicted", rows.evicted},
               {"written", rows.written}});
}

class TierBench {
 public:
  explicit TierBench(const BenchOptions& options)
      : options_(options),
        config_(ConfigOf(options)),
        spec_(FeatureSpec::Resolve(config_.data)),
        workers_("train", static_cast<int>(config_.train.threads)),
        state_(config_, spec_, &CpuDevice()) {
    if (tiered()) {
      TERRACE_CHECK(config_.tiers.memory.budget > 0);
      state_.OpenDiskTier(config_.tiers, &PosixEnv(), kStores.at(options.store), {});
    }
  }

  json Run() {
    if (options_.prefill) Prefill();
    Train();
    return Report();
  }

 private:
  // What a point in the run knows of it.
  struct Mark {
    double seconds = 0;
    double cpu = 0;
    double wait = 0;  // of train
    TieredStats rows;
    DiskStats disk;
  };

  bool tiered() const { return !config_.tiers.disk.path.empty(); }

  // Every row exists, with its first value; with tiers all of them on disk.
  void Prefill() {
    const double start = NowSeconds();
    MemoryTier& memory = *state_.tables[0];
    std::vector<uint32_t> positions(kFillRows);
    std::vector<std::byte> rows;
    // In ascending order: to most stores that is a bulk load, to ours it is any order.
    TableKeys(options_.traffic.rows)
        .ForEachBatch(kFillRows, true, [&](std::span<const uint64_t> keys) {
          if (!tiered()) {
            memory.FindOrCreate(keys, std::span(positions).first(keys.size()));
            return;
          }
          DiskStore& disk = state_.tiered[0]->disk();
          rows.assign(keys.size() * disk.row_bytes(), std::byte{0});
          for (size_t i = 0; i < keys.size(); ++i)
            InitRow(memory.schema(), keys[i], &rows[i * disk.row_bytes()]);
          disk.Put(keys, rows.data());
        });
    if (tiered()) state_.tiered[0]->disk().Settle();
    prefill_seconds_ = NowSeconds() - start;
    // The peak is to be that of training.
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;
  }

  void Train() {
    StepRunner step(config_, &state_, &workers_);
    PipelineOptions parts;
    parts.needs.fixed_bytes =
        process_bytes_ + step.scratch_bytes() +
        static_cast<int64_t>(sizeof(float)) * (state_.params.size() + state_.dense_state.size()) +
        (tiered() ? DiskTierMemory(config_.tiers) : 0);
    parts.needs.rows = options_.memory_rows;
    parts.dedup_threads = DedupThreads(workers_.threads());
    const std::atomic<bool> stop{false};
    parts.open = [this](const OpenDataOptions&) {
      return std::make_unique<Traffic>(options_.traffic, spec_.shape);
    };
    run_start_ = NowSeconds();
    Pipeline pipeline(config_, spec_, parts, &state_, stop);
    if (options_.warmup == 0) start_ = MarkNow();
    double last = NowSeconds();
    for (;;) {
      std::unique_ptr<WorkItem> item;
      {
        ScopedSeconds wait(&train_.wait_input);
        item = pipeline.Next();
      }
      if (item == nullptr) break;
      {
        ScopedSeconds busy(&train_.busy);
        step.Train(item->batch, item->plans, item->step);
      }
      const double now = NowSeconds();
      AddBatch(*item, now - last);
      last = now;
      pipeline.Recycle(std::move(item));
    }
    run_seconds_ = NowSeconds() - run_start_;
    stages_ = {{"read", AsJson(pipeline.read_time())},
               {"dedup", AsJson(pipeline.dedup_time())},
               {"plan", AsJson(pipeline.plan_time())},
               {"train", AsJson(train_)}};
    const int64_t queues = pipeline.queue_bytes();
    memory_ = {{"fixed", parts.needs.fixed_bytes},
               {"queues", queues},
               {"tiers", pipeline.tier_bytes()},
               {"dedup", pipeline.scratch_bytes()},
               {"items", pipeline.items()}};
    if (!tiered()) return;
    stages_["pull"] = AsJson(pipeline.pull_time());
    stages_["link"] = AsJson(pipeline.link_time());
    stages_["push"] = AsJson(pipeline.push_time());
    const WindowStats windows = pipeline.window_stats();
    windows_ = {{"most", pipeline.window()},
                {"windows", windows.windows},
                {"batches", windows.batches},
                {"cut", windows.cut},
                {"squeezed", windows.squeezed}};
  }

  Mark MarkNow() const {
    Mark mark;
    mark.seconds = NowSeconds() - run_start_;
    mark.cpu = ProcessCpuSeconds();
    mark.wait = train_.wait_input;
    for (const auto& table : state_.tiered) {
      mark.rows.Add(table->stats());
      mark.disk.Add(table->disk().stats());
    }
    return mark;
  }

  void AddBatch(const WorkItem& item, double gap) {
    examples_ += item.batch.examples;
    const int64_t last = options_.warmup + options_.batches;
    if (item.step > options_.warmup && item.step <= last) {
      gaps_.push_back(gap);
      distinct_ += static_cast<int64_t>(item.plans[0].row_positions.size());
    }
    if (item.step == options_.warmup) start_ = MarkNow();
    if (item.step == last) end_ = MarkNow();
    AddToTimeline(gap);
  }

  void AddToTimeline(double gap) {
    longest_ = std::max(longest_, gap);
    const double now = NowSeconds() - run_start_;
    if (!timeline_.empty() && now < timeline_.back()["seconds"].get<double>() + 1) return;
    json point = {{"seconds", now}, {"examples", examples_}, {"longest", longest_}};
    if (tiered()) {
      const TieredStats rows = state_.tiered[0]->stats();
      AddRows(rows - timeline_rows_, &point);
      point["rows"] = rows.created + Prefilled();
      const DiskStats disk = state_.tiered[0]->disk().stats();
      point.update({{"page_reads", disk.page_reads},
                    {"log_bytes_written", disk.log_bytes_written},
                    {"merge_bytes_read", disk.merge_bytes_read},
                    {"merge_bytes_written", disk.merge_bytes_written},
                    {"index_bytes", disk.index_bytes},
                    {"index_limit", disk.index_limit},
                    {"filter_bytes", disk.filter_bytes}});
      timeline_rows_ = rows;
    }
    timeline_.push_back(std::move(point));
    longest_ = 0;
  }

  int64_t Prefilled() const {
    return options_.prefill ? static_cast<int64_t>(options_.traffic.rows) : 0;
  }

  json Report() {
    json out;
    AddMeasured(&out);
    json run = {{"seconds", run_seconds_}, {"batches", options_.all_batches()}};
    const RowLayout& layout = state_.tables[0]->schema().layout;
    int64_t rows = state_.tables[0]->rows();
    if (tiered()) {
      TieredTable& table = *state_.tiered[0];
      AddRows(table.stats(), &run);
      rows = table.stats().created + Prefilled();
      const DiskStats disk = table.disk().stats();
      out.update({{"windows", windows_},
                  {"rows_in_memory", table.most_rows()},
                  {"row_bytes_in_memory", TieredTable::RowBytes(table.memory().schema())},
                  {"disk_row_bytes", table.disk().row_bytes()},
                  {"disk_file_bytes", disk.total.file_bytes},
                  {"disk_memory", DiskTierMemory(config_.tiers)},
                  {"disk_memory_used", disk.memory_bytes()}});
    }
    out.update({{"shape", options_.shape},
                {"store", tiered() ? options_.store : "memory"},
                {"rows", rows},
                {"model_bytes", rows * (RowLayout::kKeyBytes + layout.payload_bytes())},
                {"budget", config_.tiers.memory.budget},
                {"process_bytes", process_bytes_},
                {"peak_rss", PeakRssBytes()},
                {"memory", memory_},
                {"prefill_seconds", prefill_seconds_},
                {"stages", stages_},
                {"run", run},
                {"timeline", timeline_}});
    const double start = NowSeconds();
    if (options_.digest) out["digest"] = state_.Summarise(&workers_).digest;
    out["digest_seconds"] = NowSeconds() - start;
    return out;
  }

  void AddMeasured(json* out) {
    const double seconds = end_.seconds - start_.seconds;
    const auto batches = static_cast<double>(options_.batches);
    std::sort(gaps_.begin(), gaps_.end());
    AddRows(end_.rows - start_.rows, out);
    const int64_t pages = end_.disk.pages_read - start_.disk.pages_read;
    out->update(
        {{"batches", options_.batches},
         {"warmup", options_.warmup},
         {"seconds", seconds},
         {"warmup_seconds", start_.seconds},
         {"examples_per_s", batches * static_cast<double>(config_.train.batch) / seconds},
         {"cpu", (end_.cpu - start_.cpu) / seconds / AvailableCores()},
         {"train_wait", end_.wait - start_.wait},
         {"distinct_a_batch", static_cast<double>(distinct_) / batches},
         {"median_gap", gaps_[gaps_.size() / 2]},
         {"longest_gap", gaps_.back()},
         {"page_reads", end_.disk.page_reads - start_.disk.page_reads},
         {"page_bytes_read", pages * static_cast<int64_t>(end_.disk.page_bytes)},
         {"log_bytes_written", end_.disk.log_bytes_written - start_.disk.log_bytes_written},
         {"merge_bytes_read", end_.disk.merge_bytes_read - start_.disk.merge_bytes_read},
         {"merge_bytes_written", end_.disk.merge_bytes_written - start_.disk.merge_bytes_written},
         {"merges", end_.disk.merges - start_.disk.merges}});
  }

  const int64_t process_bytes_ = RssBytes();
  const BenchOptions options_;
  const RunConfig config_;
  const FeatureSpec spec_;
  Workers workers_;
  ModelState state_;

  double prefill_seconds_ = 0;
  double run_start_ = 0;
  double run_seconds_ = 0;
  StageTime train_;
  Mark start_, end_;  // of the measured batches
  std::vector<double> gaps_;
  int64_t distinct_ = 0;
  int64_t examples_ = 0;
  double longest_ = 0;  // gap, since the last point of the timeline
  TieredStats timeline_rows_;
  json stages_, windows_, memory_;
  json timeline_ = json::array();
};

json LruReport(const BenchOptions& options) {
  const RunConfig config = ConfigOf(options);
  const LruHits result = SimulateLru(options.traffic, config.train.batch, options.warmup,
                                     options.batches, options.lru);
  return {{"lru", options.lru},
          {"lookups", result.lookups},
          {"hits", result.hits},
          {"hit_rate", static_cast<double>(result.hits) / static_cast<double>(result.lookups)},
          {"batches", options.batches}};
}

int Main(int argc, char** argv) {
  CLI::App app("one training run, in memory or through the tiers");
  BenchOptions options;
  app.add_option("--shape", options.shape, "criteo or ads100");
  app.add_option("--store", options.store, "the disk tier: ours or rocksdb");
  app.add_option("--rows", options.traffic.rows, "that keys are drawn from")->required();
  app.add_option("--fresh", options.traffic.fresh, "share of draws that are new keys");
  app.add_option("--seed", options.traffic.seed);
  app.add_flag("--prefill", options.prefill, "all rows exist before the first batch");
  app.add_option("--warmup", options.warmup, "batches before the measured ones");
  app.add_option("--batches", options.batches, "that are measured")->check(CLI::PositiveNumber);
  app.add_option("--cooldown", options.cooldown,
                 "batches after the measured ones, so that rows of later ones come meanwhile");
  app.add_option("--memory-rows", options.memory_rows, "rows in memory, whatever the budget");
  app.add_option("--lru", options.lru, "train nothing; an exact LRU of so many rows");
  app.add_flag("!--no-digest", options.digest);
  app.add_option("set", options.sets, "key=value of the config");
  CLI11_PARSE(app, argc, argv);
  if (!kStores.contains(options.store))
    throw Error(ErrorCode::kUsage, "this build has no store \"" + options.store + "\"");
  options.traffic.shape = ShapeOf(options.shape);
  const json result = options.lru > 0 ? LruReport(options) : TierBench(options).Run();
  fmt::print("{}\n", result.dump());
  return 0;
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  try {
    return terrace::Main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "tiers_bench: {}\n", e.what());
    return 1;
  }
}
