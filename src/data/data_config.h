// [data] of the config: which files, what is in them, and how each column becomes features.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"

namespace terrace {

enum class DataFormat { kCriteo, kCsv, kTsv, kLibsvm, kLibffm, kSynthetic };
enum class OnBadRow { kError, kSkip };
enum class Pooling { kSum, kMean };
enum class MissingKey { kKey, kSkip };  // an empty cell is a key of its own / gives no key
enum class Bucketing { kNone, kLog, kBoundaries };

// One element of data.slots: "name", "C1..C26", or a table.
struct SlotConfig {
  std::string name;
  std::string column;  // of the file; default: the name
  std::string table = "main";
  std::string linear_table;  // of the keys' linear weights; empty: they are in the rows of `table`
  std::string separator;     // several values in a cell; empty: one
  Pooling pooling = Pooling::kSum;
  MissingKey missing = MissingKey::kKey;
  std::string same_keys_as;  // hash values as this slot does, so that both find the same rows
  Bucketing bucket = Bucketing::kNone;  // numbers into keys
  std::vector<double> boundaries;       // for bucket = "boundaries", ascending

  void Visit(ConfigVisitor& v);
};

// One element of data.dense: "name", "I1..I13", or a table. Order: log, standardise, clip.
struct DenseConfig {
  std::string name;
  std::string column;
  bool log = false;          // sign(x) * log(1 + |x|)
  bool standardise = false;  // (x - mean) / std, measured on the first rows of the training data
  std::vector<double> clip;  // [low, high], after the rest
  double missing = 0;        // what an empty cell becomes, after the rest

  void Visit(ConfigVisitor& v);
};

// [data.synthetic]: see data/synthetic.h.
struct SyntheticConfig {
  int64_t train_examples = 1'000'000;
  int64_t test_examples = 100'000;
  int64_t slots = 26;
  int64_t features = 100'000;   // distinct values a slot, up to 2^63 - 1
  double zipf = 1.05;           // exponent of each slot's popularity; 0: uniform
  double one_off = 0;           // share of draws that give a value never seen before or again
  int64_t drift = 0;            // examples after which a rank has another value; 0: never
  int64_t values_per_slot = 1;  // multi-hot: drawn from 1 .. 2 * this - 1, this on average
  int64_t dense = 13;
  int64_t factors = 2;             // rank of the hidden model's interactions
  double linear_scale = 0.8;       // standard deviation of the linear part of the hidden logit
  double interaction_scale = 1.7;  // standard deviation of its pairwise part
  double label_rate = 0.25;
  int64_t seed = 1;

  void Visit(ConfigVisitor& v);
};

struct DataConfig {
  DataFormat format = DataFormat::kCriteo;
  std::vector<std::string> train;  // paths or globs; "-" is standard input
  std::vector<std::string> test;
  std::string label = "label";
  std::string weight;  // column names; empty: none
  std::string timestamp;
  std::string group;
  std::vector<SlotConfig> slots;
  std::vector<DenseConfig> dense;
  int64_t fields = 0;     // libffm: fields are 0 .. fields - 1
  std::string delimiter;  // csv: "," and tsv: tab unless given
  int64_t threads = 2;    // that parse
  int64_t shuffle = 0;    // examples that are read ahead and put in seeded order; 0: file order
  OnBadRow on_bad_row = OnBadRow::kError;
  int64_t max_line_bytes = 1 << 20;
  int64_t standardise_rows = 100'000;
  SyntheticConfig synthetic;

  void Visit(ConfigVisitor& v);
};

}  // namespace terrace
