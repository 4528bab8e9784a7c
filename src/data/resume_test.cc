// A stream that is resumed at a position goes on as if it had not been interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "data/compress_testing.h"
#include "data/data_testing.h"

namespace terrace {
namespace {

using ::testing::HasSubstr;

// A random config with the files it names.
struct Case {
  MemoryEnv env;
  DataConfig config;
  OpenDataOptions options;
  int64_t batch = 1;
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed, 0) {}
  // Of [0, n).
  int64_t Below(int64_t n) {
    return static_cast<int64_t>(BelowN(random_.Next(), static_cast<uint64_t>(n)));
  }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Below(static_cast<int64_t>(values.size()))];
  }

 private:
  RandomStream random_;
};

std::string Row(DataFormat format, int64_t number, Draw* draw) {
  const std::string label = draw->OneOf<std::string>({"0", "1"});
  const std::string n = std::to_string(number);
  switch (format) {
    case DataFormat::kCriteo: {
      std::string row = label + "\t" + n;
      for (int i = 0; i < 12; ++i) row += "\t";
      for (int i = 0; i < 26; ++i) row += "\t" + std::to_string(draw->Below(9));
      return row;
    }
    case DataFormat::kCsv:
      return label + ",u" + n + ",\"a|b\"," + n;
    case DataFormat::kTsv:
      return label + "\tu" + n + "\t" + std::string(draw->Below(9), 'z') + "\t" + n;
    case DataFormat::kLibsvm:
      return label + " " + n + ":0.5 7:" + n;
    default:
      return label + " 0:" + n + ":1 1:5:0.25";
  }
}

std::string File(DataFormat format, bool bad_rows, Draw* draw) {
  if (draw->Below(6) == 0) return "";
  const std::string line_end = draw->OneOf<std::string>({"\n", "\r\n"});
  std::string text;
  if (draw->Below(4) == 0) text += "\xef\xbb\xbf";
  // Each file may have its columns in another order.
  const bool swapped = draw->Below(2) == 0;
  if (format == DataFormat::kCsv)
    text += (swapped ? "label,tags,user,x" : "label,user,tags,x") + line_end;
  if (format == DataFormat::kTsv)
    text += (swapped ? "label\ttags\tuser\tx" : "label\tuser\ttags\tx") + line_end;
  for (int64_t rows = draw->Below(200), i = 0; i < rows; ++i) {
    const int64_t what = draw->Below(40);
    if (what == 0) text += line_end;
    if (bad_rows && what < 4) text += "junk" + line_end;
    if (bad_rows && what == 5) text += std::string(draw->Below(5000), 'x') + line_end;
    text += Row(format, i, draw) + line_end;
  }
  if (bad_rows && draw->Below(3) == 0)
    for (int i = 0; i < 40; ++i) text += "junk at the end" + line_end;
  if (draw->Below(3) == 0 && !text.empty()) text.resize(text.size() - line_end.size());
  return text;
}

constexpr const char* kColumns =
    "slots = ['user', {name='tags', separator='|', missing='skip'}]\ndense = ['x']\n";

Case MakeCase(uint64_t seed) {
  Draw draw(seed);
  Case c;
  const bool bad_rows = draw.Below(2) == 0;
  std::string toml = "max_line_bytes = 200\n";
  if (bad_rows) toml += "on_bad_row = 'skip'\n";
  const auto format = static_cast<DataFormat>(draw.Below(6));
  const char* const part = draw.Below(5) == 0 ? "test" : "train";
  if (format == DataFormat::kCriteo) toml += "format = 'criteo'\n";
  if (format == DataFormat::kCsv) toml += std::string("format = 'csv'\n") + kColumns;
  if (format == DataFormat::kTsv) toml += std::string("format = 'tsv'\n") + kColumns;
  if (format == DataFormat::kLibsvm) toml += "format = 'libsvm'\n";
  if (format == DataFormat::kLibffm) toml += "format = 'libffm'\nfields = 2\n";
  if (format == DataFormat::kSynthetic) {
    toml += "format = 'synthetic'\nsynthetic = {slots = 1, features = 50, dense = 1, ";
    toml += "train_examples = 9000, test_examples = 5000}\n";
  } else if (draw.Below(6) == 0) {
    toml += std::string(part) + " = '-'\n";
    c.env.files["-"] = File(format, bad_rows, &draw);
  } else {
    toml += std::string(part) + " = ['first', 'd/*']\n";
    c.env.files["first"] = File(format, bad_rows, &draw);
    for (int64_t files = 1 + draw.Below(4), i = 0; i < files; ++i)
      c.env.files["d/" + std::to_string(i)] = File(format, bad_rows, &draw);
  }
  for (auto& [path, text] : c.env.files) {
    const int64_t kind = draw.Below(4);
    if (kind == 0) text = Gzip(text);
    if (kind == 1) text = Zstd(text);
  }
  c.config = DataConfigFrom(toml);
  c.config.threads = 1 + draw.Below(4);
  c.config.shuffle = draw.OneOf<int64_t>({0, 1, 10, 64, 100, 10'000});
  c.options.part = part == std::string("test") ? DataPart::kTest : DataPart::kTrain;
  c.options.seed = static_cast<uint64_t>(draw.Below(3));
  if (!c.env.files.contains("-")) c.options.epoch = draw.Below(3);
  if (draw.Below(4) == 0) c.options.max_examples = draw.Below(300);
  c.options.block_bytes = draw.OneOf<size_t>({1, 300, 1000, 1 << 20});
  c.batch = draw.OneOf<int64_t>({1, 7, 50, 100, 1000});
  if (format == DataFormat::kSynthetic) {
    c.config.shuffle *= 50;
    c.batch = draw.OneOf<int64_t>({500, 2048, 20'000});
  }
  return c;
}

struct Step {
  bool more = false;
  Batch batch;
  std::string position;
  double progress = 0;
  int64_t skipped_rows = 0;
};

Step Next(DataStream& stream, int64_t size) {
  Step step;
  step.more = stream.Next(size, &step.batch);
  step.position = stream.position();
  step.progress = stream.progress();
  step.skipped_rows = stream.skipped_rows();
  return step;
}

// Up to the first call of Next that has nothing left; the batch before the first is empty.
std::vector<Step> ReadSteps(DataStream& stream, int64_t size) {
  std::vector<Step> steps(1);
  steps[0].position = stream.position();
  steps[0].progress = stream.progress();
  do {
    steps.push_back(Next(stream, size));
  } while (steps.back().more);
  return steps;
}

void ExpectSame(const Step& is, const Step& expected, bool same_blocks) {
  EXPECT_EQ(is.more, expected.more);
  EXPECT_TRUE(SameExamples(is.batch, expected.batch));
  if (!same_blocks) return;
  EXPECT_EQ(is.skipped_rows, expected.skipped_rows);
  EXPECT_EQ(is.progress, expected.progress);
  EXPECT_EQ(is.position, expected.position);
}

TEST(Resume, IsAsIfThereHadBeenNoInterruption) {
  for (uint64_t seed = 0; seed < 150 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Case c = MakeCase(seed);
    const FeatureSpec spec = FeatureSpec::Resolve(c.config);
    const auto whole = OpenData(c.env, c.config, spec, c.options);
    const std::vector<Step> expected = ReadSteps(*whole, c.batch);
    Draw draw(seed + 1000);
    const size_t stride = 1 + expected.size() / 8;
    for (size_t begin = 0; begin < expected.size(); begin += stride) {
      SCOPED_TRACE(begin);
      std::string position = expected[begin].position;
      // Resumed, and after some batches resumed again.
      bool same_blocks = true;
      size_t at = begin;
      while (at < expected.size()) {
        DataConfig config = c.config;
        config.threads = 1 + draw.Below(4);
        OpenDataOptions options = c.options;
        options.position = position;
        if (draw.Below(4) == 0) {
          options.block_bytes = 1 + draw.Below(2000);
          same_blocks = false;
        }
        const auto stream = OpenData(c.env, config, spec, options);
        if (same_blocks) {
          EXPECT_EQ(stream->skipped_rows(), expected[at].skipped_rows);
          EXPECT_EQ(stream->progress(), expected[at].progress);
          EXPECT_EQ(stream->position(), expected[at].position);
        }
        for (int64_t steps = 1 + draw.Below(20); steps > 0 && ++at < expected.size(); --steps) {
          const Step step = Next(*stream, c.batch);
          ExpectSame(step, expected[at], same_blocks);
          position = step.position;
        }
        if (at >= expected.size() && options.max_examples < 0) {
          EXPECT_EQ(stream->skipped_rows(), expected.back().skipped_rows);
        }
      }
    }
  }
}

// Small files with a position somewhere in the second one.
class ResumeErrors : public ::testing::Test {
 protected:
  ResumeErrors() {
    for (const char* path : {"d/1", "d/2", "d/3"}) {
      env_.files[path] = "label,user,tags,x\n";
      for (int i = 0; i < 50; ++i) env_.files[path] += "1,u" + std::to_string(i) + ",t,2\n";
    }
    config_ = DataConfigFrom(std::string("format = 'csv'\nmax_line_bytes = 30\ntrain = 'd/*'\n") +
                             kColumns);
    options_.block_bytes = 100;
    const auto stream = Open();
    Batch batch;
    stream->Next(85, &batch);
    options_.position = stream->position();
  }

  std::unique_ptr<DataStream> Open() {
    return OpenData(env_, config_, FeatureSpec::Resolve(config_), options_);
  }
  // Of opening; checks that the code is kUsage.
  std::string Refusal() {
    EXPECT_EQ(CodeOf([&] { Open(); }), ErrorCode::kUsage);
    return ErrorOf([&] { Open(); });
  }

  MemoryEnv env_;
  DataConfig config_;
  OpenDataOptions options_;
};

TEST_F(ResumeErrors, FilesReadSoFarMustBeTheSame) {
  env_.files["d/0"] = env_.files["d/1"];
  EXPECT_THAT(Refusal(),
              HasSubstr("data.train has changed since the position was saved: file 1 was "
                        "d/1, is d/0"));
  env_.files.erase("d/0");
  env_.files["d/11"] = env_.files["d/1"];
  EXPECT_THAT(Refusal(), HasSubstr("file 2 was d/2, is d/11"));
  env_.files.erase("d/11");
  env_.files.erase("d/2");
  EXPECT_THAT(Refusal(), HasSubstr("file 2 was d/2, is d/3"));
  env_.files.erase("d/3");
  EXPECT_THAT(Refusal(), HasSubstr("file 2 was d/2, and there are only 1 now"));
}

TEST_F(ResumeErrors, FilesMustNotBeShorterOrOthers) {
  const std::string before = env_.files["d/2"];
  env_.files["d/2"].pop_back();
  EXPECT_THAT(Refusal(), HasSubstr("file 2, d/2, had "));
  env_.files["d/2"] = before + "1,u,t,2\n";
  EXPECT_EQ(CodeOf([&] { Open(); }), ErrorCode::kInternal);  // none
  env_.files["d/2"] = "x" + before;
  EXPECT_THAT(Refusal(), HasSubstr("d/2 has changed since the position was saved: no line starts"));
  env_.files["d/2"] = "label,user,tags,x\n" + std::string(before.size(), ' ');
  EXPECT_THAT(Refusal(), HasSubstr("no line starts"));
  env_.files["d/2"] = "label,user,tags,x\n" + std::string(before.size(), '\n');
  env_.files["d/3"] = "";
  EXPECT_THAT(Refusal(), HasSubstr("it has fewer examples"));
  config_ = DataConfigFrom(std::string("format = 'csv'\ntrain = '-'\n") + kColumns);
  env_.files["-"] = before;
  EXPECT_THAT(Refusal(), HasSubstr("file 1 was d/1, is -"));
}

TEST_F(ResumeErrors, TheOrderMustBeTheSame) {
  const OpenDataOptions options = options_;
  options_.seed = 4;
  EXPECT_THAT(Refusal(), HasSubstr("seed was 0 when the position was saved, is 4"));
  options_ = options;
  options_.epoch = 1;
  EXPECT_THAT(Refusal(), HasSubstr("the epoch was 0 when the position was saved, is 1"));
  options_ = options;
  config_.shuffle = 10;
  EXPECT_THAT(Refusal(), HasSubstr("data.shuffle was 0 when the position was saved, is 10"));
  config_.shuffle = 0;
  options_.part = DataPart::kTest;
  config_.test = {"d/*"};
  EXPECT_THAT(Refusal(), HasSubstr("the position was saved of data.train, but is given for"));
  options_ = options;
  config_.format = DataFormat::kTsv;
  EXPECT_THAT(Refusal(), HasSubstr("data.format is another one"));
}

TEST_F(ResumeErrors, ADamagedPositionIsRefused) {
  const std::string good = options_.position;
  EXPECT_LT(good.size(), 200U);
  for (size_t size = 1; size < good.size(); ++size) {
    options_.position = good.substr(0, size);
    EXPECT_EQ(CodeOf([&] { Open(); }), ErrorCode::kCorruption);
  }
  for (size_t i = 0; i < good.size(); ++i) {
    options_.position = good;
    options_.position[i] ^= 1;
    EXPECT_EQ(CodeOf([&] { Open(); }), ErrorCode::kCorruption);
  }
  options_.position = good + "x";
  EXPECT_THAT(ErrorOf([&] { Open(); }), HasSubstr("the saved position of the data is damaged"));
}

TEST_F(ResumeErrors, MessagesNameTheSameLines) {
  env_.files["d/2"] += "1,u,t,junk\n";
  const auto failure = [&] {
    return ErrorOf([&] {
      const auto stream = Open();
      Batch batch;
      while (stream->Next(4, &batch)) {
      }
    });
  };
  EXPECT_THAT(failure(), HasSubstr("d/2:52: column 4 (x): found \"junk\""));
  env_.fail_after = 200;
  EXPECT_THAT(failure(), HasSubstr("d/2: cannot read: Input/output error"));
}

// Also where the last block was short because the data ended.
TEST(Resume, FilesThatWereAddedComeAfterTheOthers) {
  for (const int64_t shuffle : {0, 16, 64, 1000}) {
    MemoryEnv env;
    DataConfig config =
        DataConfigFrom("format = 'libsvm'\ntrain = 'd/*'\nmax_line_bytes = 30\nthreads = 2");
    config.shuffle = shuffle;
    int64_t next = 0;
    const auto add = [&](const std::string& path, int64_t rows) {
      for (int64_t i = 0; i < rows; ++i) env.files[path] += "1 " + std::to_string(next++) + ":1\n";
    };
    add("d/1", 50);
    add("d/2", 50);
    const FeatureSpec spec = FeatureSpec::Resolve(config);
    OpenDataOptions options{.seed = 1, .block_bytes = 64};
    Batch all = MakeBatch(spec.shape);
    Batch batch;
    const auto stream = OpenData(env, config, spec, options);
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(stream->Next(12, &batch));
      AppendExamples(batch, 0, batch.examples, &all);
    }
    options.position = stream->position();
    add("d/2", 20);
    add("d/3", 30);
    const auto resumed = OpenData(env, config, spec, options);
    while (resumed->Next(12, &batch)) AppendExamples(batch, 0, batch.examples, &all);
    // Each example once.
    EXPECT_EQ(all.examples, 150);
    std::vector<uint64_t> keys = all.groups[0].keys;
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(std::unique(keys.begin(), keys.end()) - keys.begin(), 150) << shuffle;
  }
}

}  // namespace
}  // namespace terrace
