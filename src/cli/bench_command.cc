// terrace bench policies
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/policy_trace.h"
#include "data/open_data.h"
#include "data/zipf.h"
#include "train/run_config.h"

namespace terrace {
namespace {

constexpr const char* kHelp =
    R"(When the memory tier is full, its policy decides which rows go to disk. Here every policy gets the
same batches and the same number of rows in memory; nothing is trained and no disk is touched. The
keys are synthetic, or with CONFIG.toml those of its training data (the first table's, the first
epoch). The first half of the batches warms up, the second half counts.

  hit rate       uses that found their row in memory, of those whose row existed
  misses/example rows read from disk for an example
  misses         relative to lru
  bytes/row      memory that the policy takes for each row of the tier
  ns/use         processor time to take note of a use
  ns/victim      to choose a row that leaves

Policies (tiers.memory.policy of a training config):
  lru       rows that were not used for the longest time leave
  lru-lfu   the half that was used last stays; of the others the least often used leave
  clock     the least used leave, where a use counts the less the longer ago it was
  next-use  as clock, but rows that the next --window batches will use stay

Examples:
  terrace bench policies
  terrace bench policies --share 32 --window 8
  terrace bench policies --slots 26 --values 1 --keys 26000000 --examples 1000000
  terrace bench policies my.toml --set data.train=day_0.tsv.gz --rows 5000000)";

constexpr PolicyKind kPolicies[] = {PolicyKind::kLru, PolicyKind::kLruLfu, PolicyKind::kClock,
                                    PolicyKind::kNextUse};

struct BenchArgs {
  std::string config;
  std::vector<std::string> sets;
  int64_t examples = 400'000;
  int64_t batch = 4096;
  int64_t slots = 20;
  int64_t values = 5;
  int64_t keys = 5'000'000;
  double zipf = 1.05;
  int64_t seed = 1;
  int64_t share = 8;
  int64_t rows = 0;  // 0: by share
  int64_t window = 4;
  std::string json;
  CLI::Option* batch_given = nullptr;
};

// The run whose training data is the trace.
RunConfig ConfigOf(const BenchArgs& args) {
  if (!args.config.empty()) {
    ConfigFile file = ConfigFile::Load(args.config);
    for (const std::string& set : args.sets) file.Set(set);
    RunConfig config = RunConfig::Read(file);
    if (!args.batch_given->empty()) config.train.batch = args.batch;
    return config;
  }
  RunConfig config;
  config.train.batch = args.batch;
  config.data.format = DataFormat::kSynthetic;
  config.data.threads = AvailableCores();
  SyntheticConfig& synthetic = config.data.synthetic;
  synthetic.train_examples = args.examples;
  synthetic.slots = args.slots;
  synthetic.values_per_slot = args.values;
  synthetic.features = std::max<int64_t>(args.keys / args.slots, 1);
  synthetic.zipf = args.zipf;
  synthetic.dense = 0;
  synthetic.factors = 0;
  synthetic.seed = args.seed;
  return config;
}

PolicyTrace Record(const BenchArgs& args) {
  const RunConfig config = ConfigOf(args);
  OpenDataOptions options;
  options.seed = static_cast<uint64_t>(config.seed);
  options.max_examples = args.examples;
  const auto stream = OpenData(PosixEnv(), config.data, FeatureSpec::Resolve(config.data), options);
  return RecordTrace(*stream, config.train.batch, StopOnSignals());
}

std::string Percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

std::string Describe(const PolicyTrace& trace, const TierShape& tier,
                     const std::vector<PolicyScore>& scores) {
  const PolicyScore& lru = scores.front();
  const auto batches = static_cast<int64_t>(trace.batches.size());
  const auto fresh = static_cast<double>(lru.fresh);
  std::string text = fmt::format(
      "trace: {} examples, {} batches of about {} keys, {} distinct keys\n"
      "tier: {} rows; {} of the uses after warm-up are of new keys, which are not read\n\n",
      WithCommas(trace.examples()), WithCommas(batches), WithCommas(trace.lookups() / batches),
      WithCommas(trace.keys), WithCommas(tier.rows),
      Percent(fresh / (fresh + static_cast<double>(lru.hits + lru.misses))));
  TextTable table(
      {"policy", "hit rate", "misses/example", "misses", "bytes/row", "ns/use", "ns/victim"});
  for (const PolicyScore& score : scores)
    table.AddRow({PolicyName(score.kind), Percent(score.hit_rate()),
                  fmt::format("{:.3f}", score.misses_per_example()),
                  lru.misses == 0 ? "-"
                                  : fmt::format("{:.3f}", static_cast<double>(score.misses) /
                                                              static_cast<double>(lru.misses)),
                  fmt::format("{:.1f}", score.row_bytes), fmt::format("{:.1f}", score.use_ns),
                  fmt::format("{:.1f}", score.victim_ns)});
  return text + table.Render();
}

std::string ScoresJson(const PolicyTrace& trace, const TierShape& tier,
                       const std::vector<PolicyScore>& scores) {
  nlohmann::ordered_json json;
  json["examples"] = trace.examples();
  json["batches"] = trace.batches.size();
  json["distinct_keys"] = trace.keys;
  json["rows"] = tier.rows;
  json["window"] = tier.window;
  for (const PolicyScore& s : scores)
    json["policies"].push_back({{"policy", PolicyName(s.kind)},
                                {"examples", s.examples},
                                {"hits", s.hits},
                                {"misses", s.misses},
                                {"fresh", s.fresh},
                                {"hit_rate", s.hit_rate()},
                                {"misses_per_example", s.misses_per_example()},
                                {"bytes_per_row", s.row_bytes},
                                {"use_ns", s.use_ns},
                                {"victim_ns", s.victim_ns}});
  return json.dump(2) + "\n";
}

void RunPolicies(const BenchArgs& args) {
  ProgressLine progress;
  if (progress.Due()) progress.Show("recording the trace");
  const PolicyTrace trace = Record(args);
  TierShape tier;
  tier.rows = args.rows > 0 ? args.rows : trace.keys / args.share;
  tier.window = args.window;
  std::vector<PolicyScore> scores;
  for (const PolicyKind kind : kPolicies) {
    if (progress.Due()) progress.Show(fmt::format("policy {}", PolicyName(kind)));
    scores.push_back(ScorePolicy(trace, kind, tier));
  }
  progress.Clear();
  if (!args.json.empty())
    WriteFileAtomically(PosixEnv(), args.json, ScoresJson(trace, tier, scores));
  fmt::print("{}", Describe(trace, tier, scores));
}

void AddPolicies(CLI::App* bench) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App* command =
      bench->add_subcommand("policies", "Compare which rows the memory tier lets go");
  command->footer(kHelp);
  CLI::Option* config = command->add_option("config", args->config, "a training config");
  config->type_name("TOML");
  command
      ->add_option("--set", args->sets, "key.name=value: lay a value over the config; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(config);
  const auto number = [command](const char* flag, auto* value, auto min, auto max,
                                const char* help) {
    return command->add_option(flag, *value, help)
        ->check(CLI::Range(min, max).description(""))
        ->type_name("N")
        ->capture_default_str();
  };
  constexpr int64_t kOne = 1, kMany = 10'000, kRows = (int64_t{1} << 32) - 1;
  number("--examples", &args->examples, kOne, int64_t{INT64_MAX}, "at most so many");
  args->batch_given = number("--batch", &args->batch, kOne, int64_t{1} << 24,
                             "examples of a batch; with a config: its train.batch");
  for (CLI::Option* synthetic :
       {number("--slots", &args->slots, kOne, kMany, "slots of an example"),
        number("--values", &args->values, kOne, kMany, "values of a slot, on average"),
        number("--keys", &args->keys, kOne, int64_t{INT64_MAX}, "distinct keys of all slots"),
        number("--zipf", &args->zipf, 0.0, ZipfSampler::kMaxExponent,
               "exponent of the keys' popularity; 0: all alike"),
        number("--seed", &args->seed, int64_t{0}, int64_t{INT64_MAX}, "of the examples")})
    synthetic->excludes(config);
  CLI::Option* share = number("--share", &args->share, kOne, kRows,
                              "the tier has room for 1/N of the trace's distinct keys");
  command->add_option("--rows", args->rows, "rows of the tier, instead of a share")
      ->check(CLI::Range(kOne, kRows).description(""))
      ->type_name("N")
      ->excludes(share);
  number("--window", &args->window, int64_t{0}, int64_t{1'000'000},
         "batches that next-use knows ahead");
  command->add_option("--json", args->json, "write the results as JSON")->type_name("FILE");
  command->callback([args] { RunPolicies(*args); });
}

}  // namespace

void AddBenchCommand(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure choices on your own shape of data");
  bench->require_subcommand(1);
  AddPolicies(bench);
}

}  // namespace terrace
