// terrace data gen | info
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "base/env.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/data_gen.h"
#include "cli/data_info.h"
#include "data/zipf.h"

namespace terrace {
namespace {

constexpr const char* kGenHelp =
    R"(Write synthetic clicks with a known best answer.

Each slot draws its values by a power law, and labels are drawn from a hidden model: a
factorisation machine over slots and dense columns. The AUC of that model on the written rows is
printed at the end: no predictor can do better, and `terrace train` shows how near it comes.

The same options give the same bytes, whatever --threads is. --part test gives fresh rows of the
same hidden model.

Examples:
  terrace data gen train.tsv.gz --examples 1000000
  terrace data gen test.tsv.gz --examples 100000 --part test
  terrace data gen clicks.csv --slots 8 --features 1000 --dense 4
  terrace data gen ads.csv.zst --slots 20 --values-per-slot 5 --features 1000000000
  terrace data gen - --examples 1000 | head -2)";

constexpr const char* kInfoHelp =
    R"(Show what data files hold: label rate, keys, missing values, skew.

The format is guessed from the first rows: 40 columns between tabs are criteo, a line of
index:value pairs is libsvm, of field:index:value triples libffm; otherwise the first line is a
header and a csv or tsv follows. There, a column of numbers of which some have a decimal point is
dense, any other one is a slot; a cell such as Action|Comedy holds many values. With --config the
[data] section of a training config tells instead.

Distinct keys are exact up to a few million, then estimated within about 1 % (shown as ~).
Rows that cannot be read are left out and counted.

Examples:
  terrace data info train.tsv.gz
  terrace data info 'day_*.csv.gz' --examples 1000000
  terrace data info --config examples/criteo/deepfm.toml train.tsv.gz)";

const std::map<std::string, DataFormat> kFormats = {{"criteo", DataFormat::kCriteo},
                                                    {"csv", DataFormat::kCsv},
                                                    {"tsv", DataFormat::kTsv},
                                                    {"libsvm", DataFormat::kLibsvm},
                                                    {"libffm", DataFormat::kLibffm}};
const std::map<std::string, Compression> kCompressions = {
    {"none", Compression::kNone}, {"gzip", Compression::kGzip}, {"zstd", Compression::kZstd}};
const std::map<std::string, DataPart> kParts = {{"train", DataPart::kTrain},
                                                {"test", DataPart::kTest}};

// An option whose value is one of the names.
template <typename T>
CLI::Option* AddChoice(CLI::App* command, const char* flag, T* value,
                       const std::map<std::string, T>& names, const std::string& help) {
  std::string list;
  for (const auto& [name, unused] : names) list += (list.empty() ? "" : "|") + name;
  return command
      ->add_option_function<std::string>(
          flag, [value, &names](const std::string& name) { *value = names.at(name); }, help)
      ->check([&names, list](const std::string& name) {
        return names.contains(name) ? "" : fmt::format("found {}, expected {}", name, list);
      })
      ->type_name(list);
}

struct GenArgs {
  GenOptions options;
  CLI::Option* format = nullptr;
  CLI::Option* compression = nullptr;
};

void RunGen(GenArgs& args) {
  GenOptions& options = args.options;
  if (args.format->empty()) options.format = FormatOfPath(options.path);
  if (args.compression->empty()) options.compression = CompressionOfPath(options.path);
  const GenReport report = GenerateFile(PosixEnv(), options, StopOnSignals());
  // Standard output may be the data.
  fmt::print(options.path == "-" ? stderr : stdout, "{}", DescribeGenerated(options, report));
}

void AddGen(CLI::App* data) {
  auto args = std::make_shared<GenArgs>();
  GenOptions& o = args->options;
  SyntheticConfig& s = o.synthetic;
  o.examples = 100'000;
  o.threads = AvailableCores();
  CLI::App* gen = data->add_subcommand("gen", kGenHelp);
  gen->add_option("out", o.path, "the file to write; - is standard output")->required();
  args->format = AddChoice(gen, "--format", &o.format, kFormats,
                           "default: by the ending (.csv, .libsvm, .libffm), else criteo");
  args->compression = AddChoice(gen, "--compress", &o.compression, kCompressions,
                                "default: by the ending (.gz, .zst)");
  AddChoice(gen, "--part", &o.part, kParts, "fresh rows of the same hidden model [train]");
  const auto number = [&](const char* flag, int64_t* value, int64_t max, const char* help) {
    gen->add_option(flag, *value, help)->check(CLI::Range(int64_t{1}, max))->capture_default_str();
  };
  constexpr int64_t kAny = INT64_MAX;
  number("--examples", &o.examples, kAny, "rows");
  number("--slots", &s.slots, 10'000, "slots");
  number("--features", &s.features, kAny, "distinct values of a slot");
  number("--values-per-slot", &s.values_per_slot, 10'000,
         "values of a slot in one row, on average");
  gen->add_option("--dense", s.dense, "dense columns")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  gen->add_option("--zipf", s.zipf, "exponent of the values' popularity; 0: all alike")
      ->check(CLI::Range(0.0, ZipfSampler::kMaxExponent))
      ->capture_default_str();
  gen->add_option("--label-rate", s.label_rate, "share of clicks")
      ->check(CLI::Range(1e-6, 1 - 1e-6))
      ->capture_default_str();
  gen->add_option("--seed", s.seed, "of the hidden model and the rows")
      ->check(CLI::Range(int64_t{0}, kAny))
      ->capture_default_str();
  gen->add_option("--threads", o.threads, "threads that generate; default: all cores")
      ->check(CLI::Range(1, 256));
  gen->callback([args] { RunGen(*args); });
}

void AddInfo(CLI::App* data) {
  auto options = std::make_shared<InfoOptions>();
  options->threads = AvailableCores();
  CLI::App* info = data->add_subcommand("info", kInfoHelp);
  info->add_option("files", options->files, "files or patterns; - is standard input");
  auto format = std::make_shared<DataFormat>();
  CLI::Option* given =
      AddChoice(info, "--format", format.get(), kFormats, "default: guessed from the first rows");
  info->add_option("--config", options->config, "a training config whose [data] section to use")
      ->excludes(given);
  info->add_option("--label", options->label, "csv, tsv: column of the label")
      ->capture_default_str();
  info->add_option("--examples", options->max_examples, "look only at so many; default: all")
      ->check(CLI::Range(int64_t{1}, INT64_MAX));
  info->add_option("--threads", options->threads, "threads that parse; default: all cores")
      ->check(CLI::Range(1, 256));
  info->callback([options, format, given] {
    if (!given->empty()) options->format = *format;
    fmt::print("{}", DescribeData(PosixEnv(), *options, StopOnSignals()));
  });
}

}  // namespace

void AddDataCommand(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "Make data files, or look into them");
  data->require_subcommand(1);
  AddGen(data);
  AddInfo(data);
}

}  // namespace terrace
