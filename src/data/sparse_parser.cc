#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/chunk_writer.h"
#include "data/number.h"
#include "data/row_parser.h"

namespace terrace {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

// Takes the next word off the line; empty at the end.
std::string_view TakeWord(std::string_view* line) {
  size_t begin = 0;
  while (begin < line->size() && IsBlank((*line)[begin])) ++begin;
  size_t end = begin;
  while (end < line->size() && !IsBlank((*line)[end])) ++end;
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

// Takes the digits before the next ':' off the word, and the ':'.
bool TakeNumber(std::string_view* word, uint64_t* number) {
  const size_t colon = word->find(':');
  if (colon == std::string_view::npos) return false;
  uint32_t small;
  if (ParseUpTo8Digits(word->data(), colon, &small))
    *number = small;
  else if (!ParseUint64(word->substr(0, colon), number))
    return false;
  word->remove_prefix(colon + 1);
  return true;
}

struct Feature {
  uint32_t slot;  // place among the spec's slots
  float value;
  uint64_t key;
};

class SparseParser : public RowParser {
 public:
  SparseParser(const DataConfig& config, const FeatureSpec& spec, bool labels)
      : spec_(spec),
        labels_(labels),
        has_fields_(config.format == DataFormat::kLibffm),
        wants_qid_(config.group == "qid"),
        max_line_bytes_(config.max_line_bytes),
        qid_seed_(SlotSeed("qid")),
        expected_(has_fields_ ? "field:index:value with a field below " +
                                    std::to_string(spec.slots.size()) + " and a finite value"
                              : "index:value with a finite value") {}

  void Parse(const TextBlock& block, BadRowPolicy* bad_rows, Batch* chunk) const override {
    ChunkWriter writer(spec_.shape, block.lines, chunk);
    std::vector<Feature> features;
    std::string_view rest = block.text();
    for (int64_t number = block.first_line; !rest.empty(); ++number) {
      const size_t end = rest.find('\n');
      std::string_view line = WithoutCr(rest.substr(0, end));
      rest.remove_prefix(end + 1);
      BadRow bad;
      if (!CheckLine(line, max_line_bytes_, &bad)) {
        bad_rows->Handle(*block.file, number, bad);
        if (!labels_) writer.CommitNone();
        continue;
      }
      line = line.substr(0, line.find('#'));
      const std::string_view label = TakeWord(&line);
      if (label.empty()) {
        if (!labels_) writer.CommitNone();
        continue;
      }
      if (ParseLabel(label, &writer.label(), &bad) &&
          ParseFeatures(line, &features, &writer, &bad)) {
        WriteKeys(features, &writer);
        writer.Commit();
      } else {
        bad_rows->Handle(*block.file, number, bad);
        if (!labels_) writer.CommitNone();
      }
    }
    writer.Finish();
  }

 private:
  bool ParseLabel(std::string_view text, float* label, BadRow* bad) const {
    double value;
    const bool number = ParseDouble(text, &value);
    if (number && (value == -1 || !labels_)) value = 0;
    if (!number || value < 0 || value > 1) {
      bad->found = text;
      bad->expected = labels_ ? "a label in [0, 1], or -1" : "a number where labels are: any";
      return false;
    }
    *label = static_cast<float>(value);
    return true;
  }

  // Reads the rest of a line; the group id goes straight to the row.
  bool ParseFeatures(std::string_view line, std::vector<Feature>* features, ChunkWriter* writer,
                     BadRow* bad) const {
    features->clear();
    bool has_qid = false;
    for (;;) {
      const std::string_view word = TakeWord(&line);
      if (word.empty()) break;
      if (!has_fields_ && features->empty() && word.starts_with("qid:")) {
        uint64_t qid;
        if (!ParseUint64(word.substr(4), &qid)) {
          bad->found = word;
          bad->expected = "qid: and an integer";
          return false;
        }
        has_qid = true;
        if (wants_qid_) writer->group_id() = IntegerKey(qid_seed_, qid);
      } else if (!ParseFeature(word, features)) {
        bad->feature = static_cast<int64_t>(features->size());
        bad->found = word;
        bad->expected = expected_;
        return false;
      }
    }
    if (wants_qid_ && !has_qid) {
      bad->found_what = "no qid";
      bad->expected = "qid:N after the label, as data.group = \"qid\" asks for";
      return false;
    }
    return true;
  }

  bool ParseFeature(std::string_view word, std::vector<Feature>* features) const {
    uint64_t slot = 0;
    uint64_t index;
    if (has_fields_ && (!TakeNumber(&word, &slot) || slot >= spec_.slots.size())) return false;
    if (!TakeNumber(&word, &index)) return false;
    float value = 1;
    if (word != "1") {
      double number;
      if (!ParseDouble(word, &number)) return false;
      value = static_cast<float>(number);
      if (!std::isfinite(value)) return false;
    }
    features->push_back(
        {static_cast<uint32_t>(slot), value, IntegerKey(spec_.slots[slot].seed, index)});
    return true;
  }

  // Puts the features in slot order, those of a slot in the order of the line.
  void WriteKeys(std::vector<Feature>& features, ChunkWriter* writer) const {
    const auto by_slot = [](const Feature& a, const Feature& b) { return a.slot < b.slot; };
    if (!std::is_sorted(features.begin(), features.end(), by_slot))
      std::stable_sort(features.begin(), features.end(), by_slot);
    // Slots of a group keep the config's order, so each group takes its features in one pass.
    for (size_t g = 0; g < writer->groups(); ++g) {
      ChunkWriter::Keys& keys = writer->Begin(g);
      keys.EnsureRoom(features.size());
      auto next = features.begin();
      for (const int slot : spec_.group_slots[g]) {
        while (next != features.end() && next->slot < static_cast<uint32_t>(slot)) ++next;
        for (; next != features.end() && next->slot == static_cast<uint32_t>(slot); ++next)
          keys.Add(next->key, next->value);
        keys.EndBag();
      }
    }
  }

  const FeatureSpec spec_;
  const bool labels_;
  const bool has_fields_;
  const bool wants_qid_;
  const int64_t max_line_bytes_;
  const uint64_t qid_seed_;
  const std::string expected_;
};

}  // namespace

std::unique_ptr<RowParser> MakeSparseParser(const DataConfig& config, const FeatureSpec& spec,
                                            bool labels) {
  return std::make_unique<SparseParser>(config, spec, labels);
}

}  // namespace terrace
