// A store of rows on an SSD, ours or a peer, through a list of phases; bench/disk.py runs it.
//
//   disk_bench ENGINE DIR --rows N --memory BYTES --phase load --phase cycle,zipf:0.99,100000,10s
//   ...
//
// Engines: ours, rocksdb, fbgemm (RocksDB with FBGEMM's options), lmdb; and raw, the device alone.
// Phases, in the order given:
//   load                    all rows, in batches of 100 k
//   get|put|cycle,LAW,BATCH,LIMIT   a cycle is a get and a put of the same keys with changed rows;
//                           get2 and its kind have two calling threads
//   settle                  waits for work in the background; tells what was written since the last
//   reopen                  closes and opens
// LAW is uniform, absent or zipf:S; BATCH draws are made distinct and the distinct keys counted;
// LIMIT is seconds (10s) or keys (20M). Rows that are read are checked, off the clock.
//
// Prints JSON, one object a phase. Times are of the calls alone; CPU is that of all threads but for
// making and checking batches.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/process.h"
#include "bench/disk_engine.h"
#include "bench/disk_meter.h"
#include "bench/disk_raw.h"
#include "bench/disk_work.h"

namespace terrace {
namespace {

using Opener = std::unique_ptr<DiskEngine> (*)(const EngineOptions&);
const std::map<std::string, Opener> kEngines = {
    {"ours", OpenOurs},
#ifdef TERRACE_BENCH_ROCKSDB
    {"rocksdb", OpenRocksDb},
    {"fbgemm", OpenRocksDbAsFbgemm},
#endif
#ifdef TERRACE_BENCH_LMDB
    {"lmdb", OpenLmdb},
#endif
};

constexpr size_t kLoadBatch = 100'000;

struct Phase {
  std::string text, kind, law;
  size_t batch = 0;
  double seconds = 1e9;
  uint64_t keys = ~uint64_t{0};
  int callers = 1;

  static Phase Parse(const std::string& text) {
    Phase phase;
    phase.text = text;
    phase.kind = text.substr(0, text.find(','));
    if (text.find(',') == std::string::npos) return phase;
    std::vector<std::string> parts = CLI::detail::split(text, ',');
    if (parts.size() != 4 || parts[3].empty())
      throw Error(ErrorCode::kUsage, "a phase is KIND,LAW,BATCH,LIMIT; found: " + text);
    if (phase.kind.ends_with('2')) {
      phase.callers = 2;
      phase.kind.pop_back();
    }
    phase.law = parts[1];
    phase.batch = std::stoull(parts[2]);
    const double number = std::stod(parts[3]);
    if (parts[3].back() == 's')
      phase.seconds = number;
    else
      phase.keys = static_cast<uint64_t>(number * (parts[3].back() == 'M' ? 1e6 : 1));
    return phase;
  }
};

class Bench {
 public:
  Bench(std::string name, EngineOptions options, uint64_t seed)
      : name_(std::move(name)),
        options_(std::move(options)),
        seed_(seed << 32),
        checker_(options_.row_bytes) {
    checker_.StartAt(static_cast<uint64_t>(time(nullptr)) << 20);
    Open();
  }

  void Run(const Phase& phase) {
    if (phase.kind == "load")
      Load(phase);
    else if (phase.kind == "settle")
      Settle(phase);
    else if (phase.kind == "reopen")
      Reopen(phase);
    else if (phase.kind == "get" || phase.kind == "put" || phase.kind == "cycle")
      Work(phase);
    else
      throw Error(ErrorCode::kUsage, "unknown phase: " + phase.text);
  }

 private:
  // What one calling thread needs.
  struct Buffers {
    std::vector<uint64_t> keys;
    std::vector<std::byte> rows;
    std::vector<uint8_t> found;
  };

  void Open() { engine_ = kEngines.at(name_)(options_); }

  void Load(const Phase& phase) {
    Meter meter;
    Buffers b;
    b.rows.resize(kLoadBatch * options_.row_bytes);
    double own_cpu = ThreadCpuSeconds();
    TableKeys(options_.rows)
        .ForEachBatch(kLoadBatch, engine_->loads_sorted(), [&](std::span<const uint64_t> keys) {
          checker_.Fill(keys, b.rows.data());
          meter.AddOwnCpu(ThreadCpuSeconds() - own_cpu);
          meter.Time(keys.size(), [&] { engine_->Load(keys, b.rows.data()); });
          own_cpu = ThreadCpuSeconds();
        });
    meter.Time(0, [&] { engine_->FinishLoad(); });
    put_since_settled_ += options_.rows;
    Print(phase, meter.Result());
  }

  void Work(const Phase& phase) {
    // No batch comes twice, and engines with the same phases see the same ones.
    const uint64_t seed = HashBytes(phase.text, seed_ + repeats_[phase.text]++);
    const BatchMaker maker(options_.rows, phase.law, phase.batch, seed);
    Meter meter;
    const auto run = [&](Meter* m, int caller) {
      Buffers b;
      const double start = NowSeconds();
      while (NowSeconds() - start < phase.seconds && m->keys() * phase.callers < phase.keys)
        OneBatch(phase, maker, m->batches() * phase.callers + caller, m, &b);
    };
    if (phase.callers == 1) {
      run(&meter, 0);
      Print(phase, meter.Result());
      return;
    }
    // Reads only: the checker's writes belong to one thread.
    TERRACE_CHECK(phase.kind == "get");
    std::vector<Meter> meters(static_cast<size_t>(phase.callers));
    {
      std::vector<std::jthread> callers;
      for (int c = 0; c < phase.callers; ++c)
        callers.emplace_back([&, c] { run(&meters[static_cast<size_t>(c)], c); });
    }
    for (const Meter& m : meters) meter.AddParallel(m);
    Print(phase, meter.Result());
  }

  void OneBatch(const Phase& phase, const BatchMaker& maker, uint64_t number, Meter* meter,
                Buffers* b) {
    double own_cpu = ThreadCpuSeconds();
    maker.Make(number, &b->keys);
    b->rows.resize(b->keys.size() * options_.row_bytes);
    b->found.resize(b->keys.size());
    const bool gets = phase.kind != "put", puts = phase.kind != "get";
    if (gets) {
      meter->AddOwnCpu(ThreadCpuSeconds() - own_cpu);
      // The whole cycle is one batch, and its keys count once.
      meter->Time(puts ? 0 : b->keys.size(),
                  [&] { engine_->Get(b->keys, b->rows.data(), b->found.data()); });
      own_cpu = ThreadCpuSeconds();
      checker_.Check(b->keys, b->rows.data(), b->found.data(), phase.law != "absent");
    }
    if (puts) checker_.Fill(b->keys, b->rows.data());
    meter->AddOwnCpu(ThreadCpuSeconds() - own_cpu);
    if (!puts) return;
    meter->Time(b->keys.size(), [&] { engine_->Put(b->keys, b->rows.data()); });
    put_since_settled_ += b->keys.size();
  }

  void Settle(const Phase& phase) {
    Meter meter;
    meter.Time(0, [&] { engine_->Settle(); });
    const double row = static_cast<double>(8 + options_.row_bytes);
    const uint64_t written = WrittenBytes();
    const double disk = static_cast<double>(DirectoryBytes(options_.dir));
    Print(phase, meter.Result() +
                     fmt::format(
                         ", \"puts\": {}, \"write_amplification\": {:.3f}, "
                         "\"disk_bytes\": {:.0f}, \"space_amplification\": {:.3f}",
                         put_since_settled_,
                         static_cast<double>(written - written_when_settled_) /
                             (row * static_cast<double>(std::max<uint64_t>(put_since_settled_, 1))),
                         disk, disk / (row * static_cast<double>(options_.rows))));
    written_when_settled_ = written;
    put_since_settled_ = 0;
  }

  void Reopen(const Phase& phase) {
    engine_.reset();
    Meter meter;
    meter.Time(0, [&] { Open(); });
    Print(phase, meter.Result());
  }

  void Print(const Phase& phase, const std::string& result) {
    fmt::print("{{\"engine\": \"{}\", \"phase\": \"{}\", {}, \"peak_rss\": {}{}}}\n", name_,
               phase.text, result, PeakRssBytes(), engine_->Details());
    std::fflush(stdout);
  }

  const std::string name_;
  const EngineOptions options_;
  const uint64_t seed_;
  std::map<std::string, uint64_t> repeats_;  // of a phase's text
  RowChecker checker_;
  std::unique_ptr<DiskEngine> engine_;
  uint64_t put_since_settled_ = 0;
  uint64_t written_when_settled_ = WrittenBytes();
};

void RunRaw(const EngineOptions& options, const std::vector<std::string>& phases) {
  RawReader raw(options.dir, options.rows, options.row_bytes);
  for (const std::string& text : phases) {
    const Phase phase = Phase::Parse(text);
    if (phase.kind != "get")
      throw Error(ErrorCode::kUsage, "raw has phases get,uniform,BATCH,SECONDSs only: " + text);
    fmt::print("{{\"engine\": \"raw\", \"phase\": \"{}\", {}}}\n", text,
               raw.Measure(phase.batch, phase.seconds));
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  CLI::App app("one disk engine through a list of phases");
  EngineOptions options;
  std::string engine;
  std::vector<std::string> phases;
  uint64_t seed = 0;
  app.add_option("engine", engine)->required();
  app.add_option("dir", options.dir)->required();
  app.add_option("--rows", options.rows)->required();
  app.add_option("--row-bytes", options.row_bytes);
  app.add_option("--memory", options.memory_bytes)->required();
  app.add_option("--threads", options.threads);
  app.add_option("--seed", seed, "another one, other batches");
  app.add_option("--phase", phases)->required();
  CLI11_PARSE(app, argc, argv);
  if (options.row_bytes < 16 || options.row_bytes % 8 != 0)
    throw Error(ErrorCode::kUsage, "--row-bytes must be a multiple of 8 from 16 on");
  std::filesystem::create_directories(options.dir);
  if (engine == "raw") {
    RunRaw(options, phases);
    return 0;
  }
  if (!kEngines.contains(engine)) {
    std::vector<std::string> names;
    for (const auto& [name, opener] : kEngines) names.push_back(name);
    throw Error(ErrorCode::kUsage, fmt::format("unknown engine \"{}\"; this build has {} and raw",
                                               engine, fmt::join(names, ", ")));
  }
  Bench bench(engine, options, seed);
  for (const std::string& text : phases) bench.Run(Phase::Parse(text));
  return 0;
}

}  // namespace
}  // namespace terrace

int main(int argc, char** argv) {
  try {
    return terrace::Main(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "disk_bench: {}\n", e.what());
    return 1;
  }
}
