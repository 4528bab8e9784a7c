#include "data/data_config.h"

namespace terrace {

void SlotConfig::Visit(ConfigVisitor& v) {
  v.String("name", &name, "Name of the slot, or a range such as \"C1..C26\"");
  v.String("column", &column, "Column of the file; empty: the one with the slot's name");
  v.String("table", &table, "Table that holds the rows of this slot's keys");
  v.String("linear_table", &linear_table,
           "Table of dim 0 that holds the keys' linear weights; empty: they are in `table`");
  v.String("separator", &separator, "Character between the values of a cell; empty: one value");
  v.Enum("pooling", &pooling, {"sum", "mean"}, "How the vectors of several values are joined");
  v.Enum("missing", &missing, {"key", "skip"},
         "An empty cell is a key of its own, or gives no key (csv, tsv, criteo)");
  v.String("same_keys_as", &same_keys_as, "Slot of the same table whose rows this one shares");
  v.Enum("bucket", &bucket, {"none", "log", "boundaries"},
         "Turns numbers into keys: floor(ln(x)^2), or the place among `boundaries`");
  v.Doubles("boundaries", &boundaries, "Ascending bounds for bucket = \"boundaries\"");
}

void DenseConfig::Visit(ConfigVisitor& v) {
  v.String("name", &name, "Name of the dense column, or a range such as \"I1..I13\"");
  v.String("column", &column, "Column of the file; empty: the one with this name");
  v.Bool("log", &log, "First x becomes sign(x) * ln(1 + |x|)");
  v.Bool("standardise", &standardise,
         "Then (x - mean) / std, measured on the first rows of the training data");
  v.Doubles("clip", &clip, "Then clipped to [low, high]; empty: not clipped");
  v.Double("missing", &missing, {}, "What an empty cell becomes, after all of that");
}

void SyntheticConfig::Visit(ConfigVisitor& v) {
  v.Int("train_examples", &train_examples, {.min = 0}, "Examples of the training data");
  v.Int("test_examples", &test_examples, {.min = 0}, "Examples of the test data");
  v.Int("slots", &slots, {.min = 1, .max = 10'000}, "Slots s0, s1, ...");
  v.Int("features", &features, {.min = 1}, "Distinct values of a slot");
  v.Double("zipf", &zipf, {.min = 0, .max = 10},
           "Exponent of each slot's popularity; 0: all values alike");
  v.Double("one_off", &one_off, {.min = 0, .max = 1},
           "Share of draws that give a value of their own, seen once");
  v.Int("drift", &drift, {.min = 0, .max = 1'000'000'000'000},
        "Examples after which another value has taken a value's place; 0: never");
  v.Int("values_per_slot", &values_per_slot, {.min = 1, .max = 10'000},
        "Values of a slot in one example, on average");
  v.Int("dense", &dense, {.min = 0, .max = 10'000}, "Dense columns d0, d1, ...");
  v.Int("factors", &factors, {.min = 0, .max = 256}, "Rank of the hidden model's interactions");
  v.Double("linear_scale", &linear_scale, {.min = 0, .max = 100},
           "Standard deviation of the linear part of the hidden logit");
  v.Double("interaction_scale", &interaction_scale, {.min = 0, .max = 100},
           "Standard deviation of its pairwise part");
  v.Double("label_rate", &label_rate, {.min = 1e-6, .max = 1 - 1e-6}, "Share of clicks");
  v.Int("seed", &seed, {.min = 0}, "Of the hidden model and the examples, not of training");
}

void DataConfig::Visit(ConfigVisitor& v) {
  v.Enum("format", &format, {"criteo", "csv", "tsv", "libsvm", "libffm", "synthetic"},
         "What the files hold; gzip and zstd are recognised by content");
  v.Strings("train", &train, "Files or patterns of the training data; \"-\" is standard input");
  v.Strings("test", &test, "Files or patterns of the test data");
  v.String("label", &label, "Column of the label, a number in [0, 1]");
  v.String("weight", &weight, "Column of the example's weight; empty: every weight is 1");
  v.String("timestamp", &timestamp, "Column of the time, an integer; empty: none");
  v.String("group", &group, "Column by which GAUC groups examples (libsvm: \"qid\"); empty: none");
  v.List("slots", &slots,
         "Slots; criteo: C1..C26 unless given, libsvm: one slot, libffm: one for each field");
  v.List("dense", &dense, "Dense columns; criteo: those of I1..I13 that no slot uses, with log");
  v.Int("fields", &fields, {.min = 0, .max = 1'000'000}, "libffm: fields are 0 .. fields - 1");
  v.String("delimiter", &delimiter,
           "Character between columns; empty: a comma for csv, a tab for tsv");
  v.Int("threads", &threads, {.min = 1, .max = 256}, "Threads that parse");
  v.Int("shuffle", &shuffle, {.min = 0, .max = 1'000'000'000},
        "Examples that are read ahead and put in a seeded order; 0: the order of the files");
  v.Enum("on_bad_row", &on_bad_row, {"error", "skip"},
         "Stop at a row that cannot be read, or leave it out and count it");
  v.Bytes("max_line_bytes", &max_line_bytes, "A longer line is a bad row");
  v.Int("standardise_rows", &standardise_rows, {.min = 1},
        "Rows on which dense columns with standardise = true are measured");
  v.Table("synthetic", &synthetic, "The generator behind format = \"synthetic\"");
}

}  // namespace terrace
