// Snapshots of a model in memory while it is trained: prints a JSON object a line.
//
//   snapshot_bench --rows 37000000 --dir DIR
//
// The product's own stages train a DeepFM of Criteo's shape on Zipf traffic over rows that all
// exist. Before each snapshot a share of all rows is marked as changed, beside those that training
// changed; nothing is written ahead, so this is the worst case for training. "write" is a plain
// loop that writes as many bytes as the model has, with nothing else going on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/random.h"
#include "bench/disk_work.h"
#include "bench/shapes.h"
#include "bench/tiers_traffic.h"
#include "train/pipeline.h"
#include "train/snapshot_taker.h"
#include "train/step.h"

namespace terrace {
namespace {

using nlohmann::json;

constexpr size_t kFillRows = 32 << 10;
constexpr int64_t kQuiet = 20;  // batches between snapshots, to measure what is usual
// 0: what training changed while the one before was taken; of no interest.
const std::vector<double> kShares = {1, 0, 0, 0.01, 0.1, 1};

struct BenchOptions {
  uint64_t rows = 37'000'000;
  std::string dir;
};

class SnapshotBench {
 public:
  explicit SnapshotBench(const BenchOptions& options)
      : options_(options),
        config_(ShapeConfig(ShapeOf("criteo"),
                            {"snapshot.dir=" + options.dir, "snapshot.keep_last=2"},
                            "snapshot_bench")),
        spec_(FeatureSpec::Resolve(config_.data)),
        workers_("train", static_cast<int>(config_.train.threads)),
        state_(config_, spec_, &CpuDevice()),
        lock_(LockSnapshots(PosixEnv(), options.dir)) {
    state_.OpenSaveStores(options.dir + "/live", SaveMemory(config_.snapshot, config_.tiers),
                          &PosixEnv(), DiskStore::Open, {});
  }

  void Run() {
    WritePlainly();
    Fill();
    SnapshotTaker taker(PosixEnv(), config_, &state_, {}, false);
    StepRunner step(config_, &state_, &workers_);
    PipelineOptions parts;
    TrafficOptions traffic;
    traffic.shape = ShapeOf("criteo");
    traffic.rows = options_.rows;
    parts.open = [&](const OpenDataOptions&) {
      return std::make_unique<Traffic>(traffic, spec_.shape);
    };
    parts.dedup_threads = DedupThreads(workers_.threads());
    parts.saver = taker.saver();
    RunConfig plain = config_;
    plain.snapshot.dir.clear();  // this program says when
    const std::atomic<bool> stop{false};
    Pipeline pipeline(plain, spec_, parts, &state_, stop);
    size_t next = 0;
    int64_t quiet = kQuiet;
    bool taking = false;
    std::vector<double> usual, during;
    json one;
    DiskStats before;
    double last = 0;
    while (std::unique_ptr<WorkItem> item = pipeline.Next()) {
      taker.BeforeTraining(item->plans);
      step.Train(item->batch, item->plans, item->step);
      taker.AfterTraining(item->step);
      const double now = NowSeconds();
      if (last > 0) (taking ? during : usual).push_back(now - last);
      last = now;
      const SnapshotReport report = taker.report();
      if (taking && report.taken == static_cast<int64_t>(next)) {
        const DiskStats after = state_.store(0)->stats();
        std::sort(usual.begin(), usual.end());
        one["seconds"] = report.seconds - taken_seconds_;
        taken_seconds_ = report.seconds;
        one["pause"] = report.pause - paused_;
        paused_ = report.pause;
        one["longest_pause"] = report.longest_pause;
        one["batch"] = usual[usual.size() / 2];
        one["longest_batch"] = *std::max_element(during.begin(), during.end());
        double sum = 0;
        for (double seconds : during) sum += seconds;
        one["slowdown"] = sum / static_cast<double>(during.size()) / usual[usual.size() / 2];
        one["bytes"] = after.log_bytes_written + after.merge_bytes_written -
                       before.log_bytes_written - before.merge_bytes_written;
        fmt::print("{}\n", one.dump());
        std::fflush(stdout);
        taking = false;
        quiet = kQuiet;
        usual.clear();
        during.clear();
        last = 0;
        if (next == kShares.size()) break;
      } else if (!taking && --quiet <= 0) {
        if (kShares[next] > 0) Mark(taker.saver(), kShares[next]);
        before = state_.store(0)->stats();
        one = {{"what", next == 0            ? "first"
                        : kShares[next] == 0 ? "settle"
                                             : "changed"},
               {"share", kShares[next]},
               {"rows", taker.saver()->changed_rows()},
               {"row_bytes", state_.store(0)->row_bytes()}};
        SnapshotPoint point;
        point.reader.steps = item->step;
        taker.Begin(&point, 0, {});
        taking = true;
        ++next;
        last = NowSeconds();
      }
      pipeline.Recycle(std::move(item));
    }
  }

 private:
  void Fill() {
    std::vector<uint32_t> positions(kFillRows);
    TableKeys(options_.rows).ForEachBatch(kFillRows, true, [&](std::span<const uint64_t> keys) {
      state_.tables[0]->FindOrCreate(keys, std::span(positions).first(keys.size()));
    });
  }

  // So many rows, chosen at random, count as changed.
  void Mark(RowSaver* saver, double share) {
    RandomStream random(1, static_cast<uint64_t>(share * 1000));
    std::vector<uint32_t> positions;
    for (uint32_t p = 1; p <= static_cast<uint32_t>(state_.tables[0]->last_position()); ++p) {
      if (share >= 1 || static_cast<double>(random.Next() >> 11) * 0x1p-53 < share)
        positions.push_back(p);
      if (positions.size() < kFillRows) continue;
      saver->BeforeTraining(0, positions);
      positions.clear();
    }
    saver->BeforeTraining(0, positions);
  }

  // As fast as the device takes it, and as a program would.
  void WritePlainly() {
    constexpr size_t kBlock = 4 << 20;
    const std::string path = options_.dir + "/plain";
    const uint64_t bytes = options_.rows * state_.store(0)->row_bytes();
    double start = NowSeconds();
    {
      const auto file = PosixEnv().OpenPages(path, PageMode::kCreate, true);
      Array<std::byte> block(kBlock);
      std::fill(block.begin(), block.end(), std::byte{1});
      for (uint64_t at = 0; at < bytes; at += kBlock) file->Write(at, block.data(), kBlock);
      file->Sync();
    }
    const double direct = NowSeconds() - start;
    PosixEnv().Remove(path);
    start = NowSeconds();
    const auto file = PosixEnv().OpenForWrite(path);
    const std::string block(kBlock, 'x');
    for (uint64_t at = 0; at < bytes; at += kBlock) file->Append(block);
    file->Close();
    fmt::print("{}\n", json{{"what", "write"},
                            {"bytes", bytes},
                            {"direct", direct},
                            {"seconds", NowSeconds() - start}}
                           .dump());
    PosixEnv().Remove(path);
  }

  const BenchOptions options_;
  const RunConfig config_;
  const FeatureSpec spec_;
  Workers workers_;
  ModelState state_;
  const std::unique_ptr<FileLock> lock_;
  double taken_seconds_ = 0, paused_ = 0;
};

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  terrace::BenchOptions options;
  CLI::App app("snapshots while training goes on");
  app.add_option("--rows", options.rows, "of the table");
  app.add_option("--dir", options.dir, "a new directory on the disk to measure")->required();
  CLI11_PARSE(app, argc, argv);
  terrace::SnapshotBench(options).Run();
}
