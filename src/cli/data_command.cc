// terrace data gen | info
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/data_gen.h"
#include "cli/data_info.h"
#include "data/zipf.h"

namespace terrace {
namespace {

constexpr const char* kGenHelp =
    R"(Each slot draws its values by a power law, and labels are drawn from a hidden model: a
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
    R"(The format is guessed from the first rows: 40 columns between tabs are criteo, a line of
index:value pairs is libsvm, of field:index:value triples libffm; otherwise the first line is a
header and a csv or tsv follows. There, a column of numbers of which some have a decimal point is
dense, any other one is a slot; a cell such as Action|Comedy holds many values. With --config the
[data] section of a training config tells instead.

Distinct keys are exact up to a few million, then estimated within about 1 % (shown as ~).
Rows that cannot be read are left out and counted. The last table shows how few keys make most of
the occurrences: what a cache of that many rows would hit.

Examples:
  terrace data info train.tsv.gz
  terrace data info 'day_*.csv.gz' --examples 1000000
  terrace data info --config examples/criteo/deepfm.toml train.tsv.gz)";

template <typename T>
using Names = std::vector<std::pair<std::string, T>>;

const Names<DataFormat> kFormats = {{"criteo", DataFormat::kCriteo},
                                    {"csv", DataFormat::kCsv},
                                    {"tsv", DataFormat::kTsv},
                                    {"libsvm", DataFormat::kLibsvm},
                                    {"libffm", DataFormat::kLibffm}};
const Names<Compression> kCompressions = {
    {"none", Compression::kNone}, {"gzip", Compression::kGzip}, {"zstd", Compression::kZstd}};
const Names<DataPart> kParts = {{"train", DataPart::kTrain}, {"test", DataPart::kTest}};

// An option whose value is one of the names.
template <typename T>
CLI::Option* AddChoice(CLI::App* command, const char* flag, T* value, const Names<T>& names,
                       const char* help) {
  std::string list;
  for (const auto& [name, unused] : names) list += (list.empty() ? "" : "|") + name;
  const auto choose = [value, &names](const std::string& given) {
    for (const auto& [name, meaning] : names) {
      if (name != given) continue;
      *value = meaning;
      return true;
    }
    return false;
  };
  return command
      ->add_option_function<std::string>(
          flag, [choose](const std::string& name) { choose(name); }, help)
      ->check([choose, list](const std::string& name) {
        return choose(name) ? "" : fmt::format("found {}, expected {}", name, list);
      })
      ->type_name(list);
}

// An option whose value is a number in [min, max].
template <typename T>
CLI::Option* AddNumber(CLI::App* command, const char* flag, T* value, T min, T max,
                       const char* help) {
  return command->add_option(flag, *value, help)
      ->check(CLI::Range(min, max).description(""))
      ->type_name("N");
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
  CLI::App* gen = data->add_subcommand("gen", "Write synthetic clicks with a known best AUC");
  gen->footer(kGenHelp);
  gen->add_option("out", o.path, "the file to write; - is standard output")
      ->required()
      ->type_name("");
  args->format = AddChoice(gen, "--format", &o.format, kFormats,
                           "default: by the ending (.csv, .libsvm, .libffm), else criteo");
  args->compression = AddChoice(gen, "--compress", &o.compression, kCompressions,
                                "default: by the ending (.gz, .zst)");
  AddChoice(gen, "--part", &o.part, kParts, "default: train");
  constexpr int64_t kOne = 1;
  constexpr int64_t kAny = INT64_MAX;
  for (CLI::Option* option :
       {AddNumber(gen, "--examples", &o.examples, kOne, kAny, "rows to write"),
        AddNumber(gen, "--slots", &s.slots, kOne, int64_t{10'000}, "slots"),
        AddNumber(gen, "--features", &s.features, kOne, kAny, "distinct values of a slot"),
        AddNumber(gen, "--values-per-slot", &s.values_per_slot, kOne, int64_t{10'000},
                  "values of a slot in one row, on average"),
        AddNumber(gen, "--dense", &s.dense, int64_t{0}, int64_t{10'000}, "dense columns"),
        AddNumber(gen, "--zipf", &s.zipf, 0.0, ZipfSampler::kMaxExponent,
                  "exponent of the values' popularity; 0: all alike"),
        AddNumber(gen, "--label-rate", &s.label_rate, 1e-6, 1 - 1e-6, "share of clicks"),
        AddNumber(gen, "--seed", &s.seed, int64_t{0}, kAny, "of the hidden model and the rows")})
    option->capture_default_str();
  AddNumber(gen, "--threads", &o.threads, 1, 256, "default: all cores");
  gen->callback([args] { RunGen(*args); });
}

void AddInfo(CLI::App* data) {
  auto options = std::make_shared<InfoOptions>();
  options->threads = AvailableCores();
  CLI::App* info =
      data->add_subcommand("info", "Show what data files hold: labels, keys, missing values, skew");
  info->footer(kInfoHelp);
  info->add_option("files", options->files, "files or patterns; - is standard input")
      ->type_name("");
  auto format = std::make_shared<DataFormat>();
  CLI::Option* given =
      AddChoice(info, "--format", format.get(), kFormats, "default: guessed from the first rows");
  info->add_option("--config", options->config, "use the [data] section of a training config")
      ->type_name("TOML")
      ->excludes(given);
  info->add_option("--label", options->label, "csv, tsv: the column of the label")
      ->type_name("NAME")
      ->capture_default_str();
  AddNumber(info, "--examples", &options->max_examples, int64_t{1}, int64_t{INT64_MAX},
            "look only at so many; default: all");
  AddNumber(info, "--threads", &options->threads, 1, 256, "default: all cores");
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
