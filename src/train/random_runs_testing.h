// Random runs for the tests of exactness: data, models, optimizers, codecs, the life of rows, and
// what must not change results: tiers, windows, threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/model_state.h"
#include "train/run_config.h"

namespace terrace {

struct TierCase {
  // Of the data: text, because to generate examples takes longer than to train on them.
  uint64_t examples = 0, test_examples = 0;
  uint64_t features = 0;           // of a slot
  uint64_t values = 1;             // of a cell, at most
  bool uneven = false;             // some stretches use few rows, and others than the rest
  std::vector<std::string> model;  // --set of both runs
  std::vector<std::string> tiers;  // --set of the run through the tiers
  double spare = 0;                // rows in memory beyond the smallest number, as a share of it
  size_t index_bytes = 0;          // of the store: little makes it merge often
  size_t page_bytes = 0;
};

// Drawn from its number.
TierCase MakeCase(uint64_t number);
// The examples of a case, in files of `dir`; adds to its settings where they are.
void WriteData(uint64_t number, const std::string& dir, TierCase* c);
// The most rows of one table that a batch uses: fewer cannot be in memory.
int64_t MostRowsOfABatch(const RunConfig& config);
// Opens the case's stores; it outlives the function.
ModelState::OpenStore StoreOf(const TierCase& c);
std::vector<std::string> Joined(std::vector<std::string> a, const std::vector<std::string>& b);

}  // namespace terrace
