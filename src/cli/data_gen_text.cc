#include "cli/data_gen_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/features.h"

namespace terrace {
namespace {

constexpr int64_t kCriteoSlots = 26;
constexpr int64_t kCriteoDense = 13;
// No feature takes more: " field:index:value" with numbers of 5, 20 and 7 characters.
constexpr size_t kMaxFeatureBytes = 40;
constexpr size_t kMaxLabelBytes = 4;  // with the line's end

char* WriteNumber(uint64_t number, char* p) { return std::to_chars(p, p + 20, number).ptr; }

// Four decimals, of a number below 1000.
char* WriteDecimal(float x, char* p) {
  const int64_t scaled = std::llround(static_cast<double>(x) * 10'000);
  uint64_t size = static_cast<uint64_t>(std::abs(scaled));
  if (scaled < 0) *p++ = '-';
  p = WriteNumber(size / 10'000, p);
  size %= 10'000;
  *p++ = '.';
  for (const uint64_t unit : {1000u, 100u, 10u, 1u})
    *p++ = static_cast<char>('0' + size / unit % 10);
  return p;
}

void CheckShape(DataFormat format, const SyntheticConfig& config) {
  if (format == DataFormat::kCriteo &&
      (config.slots != kCriteoSlots || config.dense != kCriteoDense || config.values_per_slot != 1))
    throw Error(ErrorCode::kUsage,
                fmt::format("the criteo format has 26 slots of one value and 13 dense columns; "
                            "found {} slots of {}, {} dense. Use --format csv for other shapes",
                            config.slots, config.values_per_slot, config.dense));
  const int64_t max_features =
      (std::numeric_limits<int64_t>::max() - config.dense) / std::max<int64_t>(config.slots, 1);
  if (format == DataFormat::kLibsvm && config.features >= max_features)
    throw Error(ErrorCode::kUsage,
                fmt::format("libsvm numbers the values of all slots from 1 on: --slots {} leaves "
                            "room for --features {}, found {}. Use fewer, or another format",
                            config.slots, max_features - 1, config.features));
}

}  // namespace

ExampleText::ExampleText(DataFormat format, const SyntheticConfig& config)
    : format_(format),
      slots_(config.slots),
      dense_(config.dense),
      features_(static_cast<uint64_t>(config.features)),
      many_values_(config.values_per_slot > 1) {
  CheckShape(format, config);
}

std::string ExampleText::Header() const {
  if (format_ != DataFormat::kCsv && format_ != DataFormat::kTsv) return "";
  const char delimiter = format_ == DataFormat::kCsv ? ',' : '\t';
  std::string line = "label";
  for (int64_t j = 0; j < slots_; ++j) line += fmt::format("{}s{}", delimiter, j);
  for (int64_t d = 0; d < dense_; ++d) line += fmt::format("{}d{}", delimiter, d);
  return line + "\n";
}

void ExampleText::Append(const Batch& batch, std::string* out) const {
  TERRACE_CHECK(batch.groups.size() == 1 && batch.groups[0].slots == slots_);
  const std::vector<uint32_t>& bags = batch.groups[0].offsets;
  std::string line;
  for (int64_t e = 0; e < batch.examples; ++e) {
    const size_t features = bags[(e + 1) * slots_] - bags[e * slots_] + static_cast<size_t>(dense_);
    if (line.size() < features * kMaxFeatureBytes + kMaxLabelBytes)
      line.resize(features * kMaxFeatureBytes + kMaxLabelBytes);
    char* p = line.data();
    *p++ = batch.labels[e] != 0 ? '1' : '0';
    switch (format_) {
      case DataFormat::kCriteo:
        p = WriteCriteo(batch, e, p);
        break;
      case DataFormat::kCsv:
      case DataFormat::kTsv:
        p = WriteDelimited(batch, e, p);
        break;
      default:
        p = WriteSparse(batch, e, p);
    }
    *p++ = '\n';
    out->append(line.data(), p);
  }
}

char* ExampleText::WriteCriteo(const Batch& batch, int64_t example, char* p) const {
  for (int64_t d = 0; d < dense_; ++d) {
    *p++ = '\t';
    const double count = std::exp(static_cast<double>(batch.dense[example * dense_ + d]) + 3) - 1;
    p = WriteNumber(static_cast<uint64_t>(std::llround(std::max(count, 0.0))), p);
  }
  const KeyGroup& group = batch.groups[0];
  for (uint32_t i = group.offsets[example * slots_]; i < group.offsets[(example + 1) * slots_];
       ++i) {
    *p++ = '\t';
    p = WriteNumber(group.keys[i], p);
  }
  return p;
}

char* ExampleText::WriteDelimited(const Batch& batch, int64_t example, char* p) const {
  const char delimiter = format_ == DataFormat::kCsv ? ',' : '\t';
  const KeyGroup& group = batch.groups[0];
  const uint32_t* bags = group.offsets.data() + example * slots_;
  for (int64_t j = 0; j < slots_; ++j) {
    char before = delimiter;
    for (uint32_t i = bags[j]; i < bags[j + 1]; ++i) {
      *p++ = before;
      p = WriteNumber(group.keys[i], p);
      before = '|';
    }
  }
  for (int64_t d = 0; d < dense_; ++d) {
    *p++ = delimiter;
    p = WriteDecimal(batch.dense[example * dense_ + d], p);
  }
  return p;
}

char* ExampleText::WriteSparse(const Batch& batch, int64_t example, char* p) const {
  const bool fields = format_ == DataFormat::kLibffm;
  const KeyGroup& group = batch.groups[0];
  const uint32_t* bags = group.offsets.data() + example * slots_;
  // " field:index:" of libffm, " index:" of libsvm.
  const auto write_name = [&](uint64_t field, uint64_t index, uint64_t global_index) {
    *p++ = ' ';
    if (fields) {
      p = WriteNumber(field, p);
      *p++ = ':';
    }
    p = WriteNumber(fields ? index : global_index, p);
    *p++ = ':';
  };
  for (int64_t j = 0; j < slots_; ++j) {
    const uint64_t slot = static_cast<uint64_t>(j);
    for (uint32_t i = bags[j]; i < bags[j + 1]; ++i) {
      write_name(slot, group.keys[i], slot * features_ + group.keys[i] + 1);
      *p++ = '1';
    }
  }
  const uint64_t slots = static_cast<uint64_t>(slots_);
  for (int64_t d = 0; d < dense_; ++d) {
    const uint64_t column = static_cast<uint64_t>(d);
    write_name(slots + column, 0, slots * features_ + column + 1);
    p = WriteDecimal(batch.dense[example * dense_ + d], p);
  }
  return p;
}

std::string ExampleText::ReadingConfig() const {
  const auto range = [](char prefix, int64_t count) {
    return count == 1 ? fmt::format("{}0", prefix)
                      : fmt::format("{}0..{}{}", prefix, prefix, count - 1);
  };
  switch (format_) {
    case DataFormat::kCriteo:
      return "[data]\nformat = \"criteo\"\n";
    case DataFormat::kLibsvm:
      return "[data]\nformat = \"libsvm\"\n";
    case DataFormat::kLibffm:
      return fmt::format("[data]\nformat = \"libffm\"\nfields = {}\n", slots_ + dense_);
    default:
      break;
  }
  std::string config =
      fmt::format("[data]\nformat = \"{}\"\n", format_ == DataFormat::kCsv ? "csv" : "tsv");
  config +=
      many_values_
          ? fmt::format("slots = [{{name = \"{}\", separator = \"|\", pooling = \"mean\"}}]\n",
                        range('s', slots_))
          : fmt::format("slots = [\"{}\"]\n", range('s', slots_));
  if (dense_ > 0) config += fmt::format("dense = [\"{}\"]\n", range('d', dense_));
  return config;
}

}  // namespace terrace
