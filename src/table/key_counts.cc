#include "table/key_counts.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"

namespace terrace {
namespace {

constexpr int kMinFingerprintBits = 12;
constexpr size_t kAhead = 16;  // keys whose lines are on their way

// Bit i: word i of the line is `value` within `mask`.
uint32_t Match16(const std::byte* line, uint32_t value, uint32_t mask) {
#if defined(__SSE2__)
  const auto* const from = reinterpret_cast<const __m128i*>(line);
  const __m128i values = _mm_set1_epi16(static_cast<int16_t>(value));
  const __m128i masks = _mm_set1_epi16(static_cast<int16_t>(mask));
  const auto equal = [&](int i) {
    return _mm_cmpeq_epi16(_mm_and_si128(_mm_load_si128(from + i), masks), values);
  };
  const int low = _mm_movemask_epi8(_mm_packs_epi16(equal(0), equal(1)));
  const int high = _mm_movemask_epi8(_mm_packs_epi16(equal(2), equal(3)));
  return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << 16;
#else
  uint16_t words[32];
  std::memcpy(words, line, sizeof(words));
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= uint32_t{(words[i] & mask & 0xffff) == value} << i;
  return bits;
#endif
}

uint32_t Match32(const std::byte* line, uint32_t value, uint32_t mask) {
#if defined(__SSE2__)
  const auto* const from = reinterpret_cast<const __m128i*>(line);
  const __m128i values = _mm_set1_epi32(static_cast<int32_t>(value));
  const __m128i masks = _mm_set1_epi32(static_cast<int32_t>(mask));
  const auto equal = [&](int i) {
    return _mm_cmpeq_epi32(_mm_and_si128(_mm_load_si128(from + i), masks), values);
  };
  const __m128i low = _mm_packs_epi32(equal(0), equal(1));
  const __m128i high = _mm_packs_epi32(equal(2), equal(3));
  return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
#else
  uint32_t words[16];
  std::memcpy(words, line, sizeof(words));
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= uint32_t{(words[i] & mask) == value} << i;
  return bits;
#endif
}

template <typename Word>
Word LoadWord(const std::byte* line, int word) {
  Word value;
  std::memcpy(&value, line + static_cast<size_t>(word) * sizeof(Word), sizeof(Word));
  return value;
}

template <typename Word>
void StoreWord(std::byte* line, int word, Word value) {
  std::memcpy(line + static_cast<size_t>(word) * sizeof(Word), &value, sizeof(Word));
}

// The word of a fingerprint, or else the first empty one; 32: there is neither. One expression for
// both: whether a key is new is too random to branch on. Empty words come last, so the first match
// of either kind is the right one.
template <typename Word>
int Locate(const std::byte* line, uint32_t value, uint32_t mask) {
  if constexpr (sizeof(Word) == 2)
    return std::countr_zero(Match16(line, value, mask) | Match16(line, 0, ~0u));
  else
    return std::countr_zero(Match32(line, value, mask) | Match32(line, 0, ~0u));
}

}  // namespace

void SpilledCounts::Set(uint64_t hash, uint32_t count) {
  // Only a new entry makes it grow, so that its size is a function of its entries.
  if (Get(hash) == 0 && 4 * ++size_ > 3 * entries_.size()) {
    Array<Entry> old(std::max<size_t>(16, 2 * entries_.size()), Entry{0, 0});
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.count != 0) entries_[Slot(entry.hash)] = entry;
  }
  entries_[Slot(hash)] = {hash, count};
}

Array<SpilledCounts::Entry> SpilledCounts::Sorted() const {
  Array<Entry> sorted;
  sorted.reserve(size_);
  for (const Entry& entry : entries_)
    if (entry.count != 0) sorted.push_back(entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const Entry& a, const Entry& b) { return a.hash < b.hash; });
  return sorted;
}

KeyCounts::KeyCounts(int word_bits, uint32_t limit)
    : limit_(limit),
      word_bits_(word_bits),
      count_bits_(std::bit_width(limit)),
      fingerprint_bits_(word_bits - count_bits_) {}

KeyCounts::KeyCounts(uint64_t keys, uint32_t limit, bool exact)
    : KeyCounts(exact && limit <= 15 ? 16 : 32, limit) {
  TERRACE_CHECK(limit > 0 && limit <= kMaxLimit);
  lines_.assign(std::max<uint64_t>(1, (keys + keys_per_line() - 1) / keys_per_line()), Line{});
}

template <typename Word>
uint32_t KeyCounts::GetAs(uint64_t hash) const {
  const std::byte* const line = lines_[LineOf(hash)].bytes;
  const uint32_t mask = ~uint32_t{0} << count_bits_;
  const int word = Locate<Word>(line, FingerprintOf(hash) << count_bits_, mask);
  return word == 32 ? spilled_.Get(hash) : LoadWord<Word>(line, word) & ~mask;
}

uint32_t KeyCounts::Get(uint64_t hash) const {
  return word_bits_ == 16 ? GetAs<uint16_t>(hash) : GetAs<uint32_t>(hash);
}

void KeyCounts::RaiseToCounts(std::span<const uint64_t> hashes, uint32_t* counts) const {
  for (size_t i = 0; i < std::min(kAhead, hashes.size()); ++i) Prefetch(hashes[i]);
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) Prefetch(hashes[i + kAhead]);
    counts[i] = std::max(counts[i], Get(hashes[i]));
  }
}

template <typename Word>
size_t KeyCounts::AddAs(std::span<const uint64_t> hashes, const uint32_t* units,
                        const uint32_t* least, uint8_t* at_limit) {
  const uint32_t mask = ~uint32_t{0} << count_bits_;
  const uint64_t capacity = this->capacity();
  for (size_t i = 0; i < std::min(kAhead, hashes.size()); ++i) Prefetch(hashes[i]);
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) Prefetch(hashes[i + kAhead]);
    const uint64_t hash = hashes[i];
    std::byte* const line = lines_[LineOf(hash)].bytes;
    const uint32_t value = FingerprintOf(hash) << count_bits_;
    const int word = Locate<Word>(line, value, mask);
    const uint32_t before = word == 32 ? spilled_.Get(hash) : LoadWord<Word>(line, word) & ~mask;
    const uint32_t after =
        std::min(limit_, std::max(before, least == nullptr ? 0 : least[i]) + units[i]);
    if (word < 32)  // an empty word stays 0 where nothing was counted
      StoreWord(line, word, static_cast<Word>(after == 0 ? 0 : value | after));
    else if (after != before)
      spilled_.Set(hash, after);
    at_limit[i] = after == limit_;
    keys_ += static_cast<uint64_t>(before == 0) & static_cast<uint64_t>(after != 0);
    if (keys_ > capacity) return i + 1;
  }
  return hashes.size();
}

size_t KeyCounts::Add(std::span<const uint64_t> hashes, const uint32_t* units,
                      const uint32_t* least, uint8_t* at_limit) {
  return word_bits_ == 16 ? AddAs<uint16_t>(hashes, units, least, at_limit)
                          : AddAs<uint32_t>(hashes, units, least, at_limit);
}

bool KeyCounts::Double() {
  if (fingerprint_bits_ <= kMinFingerprintBits) return false;
  KeyCounts twice;
  twice.limit_ = limit_;
  twice.word_bits_ = word_bits_;
  twice.count_bits_ = count_bits_;
  twice.fingerprint_bits_ = fingerprint_bits_ - 1;
  twice.lines_.assign(2 * lines_.size(), Line{});
  const uint32_t top = uint32_t{1} << (fingerprint_bits_ - 1 + count_bits_);
  for (uint64_t line = 0; line < lines_.size(); ++line) {
    int used[2] = {0, 0};
    for (int word = 0, n = Used(line); word < n; ++word) {
      const uint32_t value = WordAt(line, word);
      const int half = (value & top) != 0;
      twice.SetWord(2 * line + static_cast<uint64_t>(half), used[half]++, value & ~top);
    }
  }
  twice.keys_ = keys_ - spilled_.size();
  for (const SpilledCounts::Entry& entry : spilled_.Sorted()) {
    // The larger one of two that were aside and now share a count.
    const uint32_t no_units = 0;
    uint8_t unused;
    twice.Add({&entry.hash, 1}, &no_units, &entry.count, &unused);
  }
  *this = std::move(twice);
  return true;
}

// Word bits, fingerprint bits, lines, keys aside; for each line the used words; then keys aside.
void KeyCounts::Save(std::string* to) const {
  const Array<SpilledCounts::Entry> spilled = spilled_.Sorted();
  AppendValue(to, static_cast<uint32_t>(word_bits_));
  AppendValue(to, static_cast<uint32_t>(fingerprint_bits_));
  AppendValue(to, uint64_t{lines_.size()});
  AppendValue(to, uint64_t{spilled.size()});
  for (uint64_t line = 0; line < lines_.size(); ++line) {
    const int used = Used(line);
    AppendValue(to, static_cast<uint8_t>(used));
    to->append(reinterpret_cast<const char*>(lines_[line].bytes),
               static_cast<size_t>(used * word_bits_ / 8));
  }
  for (const SpilledCounts::Entry& entry : spilled) {
    AppendValue(to, entry.hash);
    AppendValue(to, entry.count);
  }
}

KeyCounts KeyCounts::Load(std::string_view* from, uint32_t limit) {
  const auto check = [](bool good, const char* what) {
    if (!good)
      throw Error(ErrorCode::kCorruption, std::string("admission state: ") + what +
                                              "; the state is damaged: restore an older snapshot");
  };
  const auto word_bits = TakeValue<uint32_t>(from), fingerprint_bits = TakeValue<uint32_t>(from);
  check(word_bits == 32 || (word_bits == 16 && limit <= 15), "words of a wrong size");
  KeyCounts counts(static_cast<int>(word_bits), limit);
  check(fingerprint_bits >= kMinFingerprintBits &&
            fingerprint_bits <= static_cast<uint32_t>(counts.fingerprint_bits_),
        "fingerprints of a wrong size");
  counts.fingerprint_bits_ = static_cast<int>(fingerprint_bits);
  const auto lines = TakeValue<uint64_t>(from), spilled = TakeValue<uint64_t>(from);
  // A line takes a byte or more, so hostile numbers cannot ask for more than 64 times the input.
  check(lines > 0 && lines <= from->size(), "more lines than bytes");
  counts.lines_.assign(lines, Line{});
  for (uint64_t line = 0; line < lines; ++line) {
    const int used = TakeValue<uint8_t>(from);
    check(used <= counts.words_per_line(), "too many words in a line");
    const std::string_view words = TakeBytes(from, static_cast<size_t>(used) * word_bits / 8);
    std::memcpy(counts.lines_[line].bytes, words.data(), words.size());
    for (int word = 0; word < used; ++word) {
      const uint32_t value = counts.WordAt(line, word);
      const uint32_t count = value & ((uint32_t{1} << counts.count_bits_) - 1);
      check(count > 0 && count <= limit, "a count out of range");
      check(uint64_t{value} >> (counts.count_bits_ + counts.fingerprint_bits_) == 0,
            "a fingerprint out of range");
    }
    counts.keys_ += static_cast<uint64_t>(used);
  }
  for (uint64_t i = 0; i < spilled; ++i) {
    const auto hash = TakeValue<uint64_t>(from);
    const auto count = TakeValue<uint32_t>(from);
    check(count > 0 && count <= limit, "a count out of range");
    counts.spilled_.Set(hash, count);
  }
  check(counts.spilled_.size() == spilled, "a key is there twice");
  counts.keys_ += spilled;
  return counts;
}

uint32_t KeyCounts::WordAt(uint64_t line, int word) const {
  const std::byte* const bytes = lines_[line].bytes;
  return word_bits_ == 16 ? LoadWord<uint16_t>(bytes, word) : LoadWord<uint32_t>(bytes, word);
}

void KeyCounts::SetWord(uint64_t line, int word, uint32_t value) {
  std::byte* const bytes = lines_[line].bytes;
  if (word_bits_ == 16)
    StoreWord(bytes, word, static_cast<uint16_t>(value));
  else
    StoreWord(bytes, word, value);
}

int KeyCounts::Used(uint64_t line) const {
  const std::byte* const bytes = lines_[line].bytes;
  const uint32_t empty = word_bits_ == 16 ? Match16(bytes, 0, ~0u) : Match32(bytes, 0, ~0u);
  return std::min(std::countr_zero(empty), words_per_line());
}

}  // namespace terrace
