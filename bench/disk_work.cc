#include "bench/disk_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace terrace {

ZipfLaw::ZipfLaw(uint64_t n, double s) : n_(static_cast<double>(n)), s_(s) {
  low_ = Integral(1.5) - 1;
  high_ = Integral(n_ + 0.5);
  accept_ = 2 - InverseIntegral(Integral(2.5) - std::pow(2, -s_));
}

double ZipfLaw::Integral(double x) const {
  const double log_x = std::log(x);
  const double a = (1 - s_) * log_x;
  return std::abs(a) < 1e-9 ? log_x : std::expm1(a) / (1 - s_);
}

double ZipfLaw::InverseIntegral(double y) const {
  const double a = (1 - s_) * y;
  return std::exp(std::abs(a) < 1e-9 ? y : std::log1p(a) / (1 - s_));
}

uint64_t ZipfLaw::Draw(RandomStream* random) const {
  while (true) {
    const double u = high_ + UnitDouble(random->Next()) * (low_ - high_);
    const double x = InverseIntegral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (k - x <= accept_ || u >= Integral(k + 0.5) - std::pow(k, -s_))
      return static_cast<uint64_t>(k);
  }
}

void TableKeys::ForEachBatch(size_t batch, bool sorted, const Sink& sink) const {
  // Sorted: one share of the key space after another, so that few keys are in memory at once.
  const int shares_log2 = sorted ? 5 : 0;
  std::vector<uint64_t> keys;
  const auto flush = [&](bool all) {
    size_t done = 0;
    for (; keys.size() - done >= batch || (all && done < keys.size());) {
      const size_t n = std::min(batch, keys.size() - done);
      sink(std::span(keys).subspan(done, n));
      done += n;
    }
    keys.erase(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(done));
  };
  for (uint64_t share = 0; share < (1u << shares_log2); ++share) {
    const size_t before = keys.size();
    for (uint64_t i = 0; i < rows_; ++i) {
      const uint64_t key = Key(i);
      if (sorted && key >> (64 - shares_log2) != share) continue;
      keys.push_back(key);
      if (!sorted && keys.size() == batch) flush(false);
    }
    std::sort(keys.begin() + static_cast<ptrdiff_t>(before), keys.end());
    flush(false);
  }
  flush(true);
}

namespace {

// Spreads ranks over the load order; no row count of use has a factor in common with it.
constexpr uint64_t kStep = 11'400'714'819'323'198'549u;

}  // namespace

BatchMaker::BatchMaker(uint64_t rows, const std::string& law, size_t size, uint64_t seed)
    : rows_(rows),
      size_(size),
      seed_(seed),
      absent_(law == "absent"),
      exponent_(law.starts_with("zipf:") ? std::stod(law.substr(5)) : 0),
      zipf_(rows, exponent_ > 0 ? exponent_ : 1) {
  TERRACE_CHECK(std::gcd(kStep, rows) == 1);
  if (exponent_ <= 0 && law != "uniform" && !absent_)
    throw Error(ErrorCode::kUsage,
                fmt::format("unknown law \"{}\"; take uniform, absent or zipf:EXPONENT", law));
}

void BatchMaker::Make(uint64_t number, std::vector<uint64_t>* keys) const {
  RandomStream random(seed_, number);
  keys->resize(size_);
  for (uint64_t& key : *keys) {
    if (exponent_ > 0) {
      const auto rank = static_cast<unsigned __int128>(zipf_.Draw(&random) - 1);
      key = static_cast<uint64_t>(rank * kStep % rows_);
    } else {
      key = BelowN(random.Next(), rows_);
    }
  }
  std::sort(keys->begin(), keys->end());
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  for (uint64_t& key : *keys) key = absent_ ? TableKeys::AbsentKey(key) : TableKeys::Key(key);
}

namespace {

uint64_t Tag(uint64_t key, uint64_t version) { return Mix64(key + Mix64(version)); }
constexpr uint64_t kWordStep = 0x9e3779b97f4a7c15u;

}  // namespace

void RowChecker::Fill(std::span<const uint64_t> keys, std::byte* rows) {
  ++version_;
  for (uint64_t key : keys) {
    uint64_t word = Tag(key, version_);
    std::memcpy(rows, &version_, 8);
    for (size_t i = 1; i < words_; ++i, word += kWordStep) std::memcpy(rows + i * 8, &word, 8);
    rows += words_ * 8;
    if (IsTracked(key)) last_[key] = version_;
  }
}

void RowChecker::Check(std::span<const uint64_t> keys, const std::byte* rows, const uint8_t* found,
                       bool present) const {
  for (size_t k = 0; k < keys.size(); ++k, rows += words_ * 8) {
    if ((found[k] != 0) != present)
      throw Error(ErrorCode::kCorruption,
                  fmt::format("key {:#x} is {}", keys[k], present ? "lost" : "found but absent"));
    if (!present) continue;
    uint64_t version;
    std::memcpy(&version, rows, 8);
    uint64_t word = Tag(keys[k], version);
    uint64_t wrong = 0;
    for (size_t i = 1; i < words_; ++i, word += kWordStep) {
      uint64_t read;
      std::memcpy(&read, rows + i * 8, 8);
      wrong |= read ^ word;
    }
    if (wrong != 0)
      throw Error(ErrorCode::kCorruption,
                  fmt::format("the row of key {:#x} (version {}) is damaged", keys[k], version));
    if (!IsTracked(keys[k])) continue;
    const auto last = last_.find(keys[k]);
    if (last != last_.end() && last->second != version)
      throw Error(ErrorCode::kCorruption,
                  fmt::format("key {:#x} has version {}, not {} as last put", keys[k], version,
                              last->second));
  }
}

}  // namespace terrace
