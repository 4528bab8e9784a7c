// The models, each as a function that adds its layers.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/cross_layer.h"
#include "model/dot_layer.h"
#include "model/dropout_layer.h"
#include "model/fm_layer.h"
#include "model/logit_layer.h"
#include "model/model.h"
#include "model/model_builder.h"
#include "model/pad_layer.h"

namespace terrace {
namespace {

const std::vector<const char*>& KindNames() {
  static const std::vector<const char*> names = {"lr", "fm", "widedeep", "deepfm", "dcnv2", "dlrm"};
  return names;
}

const char* NameOf(ModelKind kind) { return KindNames()[static_cast<int>(kind)]; }

std::string SlotName(const ModelInputs& inputs, size_t slot) {
  return slot < inputs.slot_names.size() ? inputs.slot_names[slot] : fmt::format("#{}", slot);
}

// The vectors that an example's slots have, all of one dim.
struct SlotVectors {
  LayerInput columns;
  int count = 0;
  int dim = 0;
};

// Slots of dim 0 have no vector; where dims differ, the shorter ones are padded.
SlotVectors AddSlotVectors(ModelBuilder& b, ModelKind kind, const ModelInputs& inputs) {
  if (inputs.slot_dims.empty())
    throw Error(ErrorCode::kUsage,
                fmt::format("model.kind = \"{}\" multiplies the vectors of slots, but data.slots "
                            "names none; name slots or choose \"lr\"",
                            NameOf(kind)));
  SlotVectors vectors{.columns = b.vectors()};
  std::vector<PadLayer::Run> runs;
  for (const int dim : inputs.slot_dims) {
    if (dim == 0) continue;
    if (runs.empty() || runs.back().dim != dim) runs.push_back({.dim = dim});
    ++runs.back().count;
    ++vectors.count;
    vectors.dim = std::max(vectors.dim, dim);
  }
  if (vectors.count == 0)
    throw Error(ErrorCode::kUsage,
                fmt::format("model.kind = \"{}\" multiplies the vectors of slots, but the tables "
                            "of all slots have dim 0; give one a dim, or choose \"lr\"",
                            NameOf(kind)));
  if (runs.size() == 1) return vectors;
  const TensorId padded = b.NewTensor(int64_t{vectors.count} * vectors.dim);
  b.Add<PadLayer>(b.vectors(), std::move(runs), vectors.dim, padded);
  vectors.columns = b.All(padded);
  return vectors;
}

void NeedVectors(ModelKind kind, const ModelInputs& inputs) {
  for (size_t s = 0; s < inputs.slot_dims.size(); ++s)
    if (inputs.slot_dims[s] == 0)
      throw Error(ErrorCode::kUsage,
                  fmt::format("model.kind = \"{}\" has no linear weights, so slot {}, whose table "
                              "has dim 0, has no part in it; give the table a dim, or choose "
                              "\"deepfm\" or \"widedeep\"",
                              NameOf(kind), SlotName(inputs, s)));
}

void NeedColumns(ModelKind kind, const ModelBuilder& b) {
  if (b.input().cols > 0) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("model.kind = \"{}\" has no input: name slots with vectors or dense "
                          "columns",
                          NameOf(kind)));
}

void NeedHidden(const ModelConfig& config) {
  if (!config.hidden.empty()) return;
  throw Error(ErrorCode::kUsage,
              fmt::format("model.hidden is empty, but model.kind = \"{}\" has a deep part; give at "
                          "least one width, or choose \"lr\" or \"fm\"",
                          NameOf(config.kind)));
}

// Hidden layers, each with its activation and dropout. Without layers: the inputs themselves.
std::vector<LayerInput> AddMlp(ModelBuilder& b, const ModelConfig& config, const char* name,
                               std::vector<LayerInput> inputs, const std::vector<int64_t>& widths) {
  for (size_t i = 0; i < widths.size(); ++i) {
    LayerInput out = b.AddLinear({.name = fmt::format("{}.{}", name, i),
                                  .inputs = inputs,
                                  .width = widths[i],
                                  .activation = config.activation});
    if (config.dropout > 0) {
      const TensorId kept = b.NewTensor(widths[i]);
      b.Add<DropoutLayer>(out, kept, config.dropout);
      out = b.All(kept);
    }
    inputs = {out};
  }
  return inputs;
}

// One column from all of the inputs.
LayerInput AddHead(ModelBuilder& b, const std::vector<LayerInput>& inputs) {
  return b.AddLinear({.name = "head", .inputs = inputs, .bias = false});
}

// The last layer of the kinds without a wide part.
void AddLogit(ModelBuilder& b, const std::vector<LayerInput>& inputs) {
  b.AddLinear({.name = "logit", .inputs = inputs, .output = SliceRun::kLogit});
}

// logit = bias + linear weights of the rows + dense . w + parts
void AddWideLogit(ModelBuilder& b, std::vector<LayerInput> parts) {
  parts.insert(parts.begin(), b.linear());
  if (b.dense().cols > 0)
    parts.push_back(
        b.AddLinear({.name = "wide", .inputs = {b.dense()}, .bias = false, .zero_init = true}));
  b.Add<LogitLayer>(parts, SliceRun::kLogit, b.NewParams(1));
}

LayerInput AddFm(ModelBuilder& b, ModelKind kind, const ModelInputs& inputs) {
  const SlotVectors vectors = AddSlotVectors(b, kind, inputs);
  const TensorId pooled = b.NewTensor(1);
  b.Add<FmLayer>(vectors.columns, vectors.count, vectors.dim, pooled);
  return b.All(pooled);
}

LayerInput AddDeepHead(ModelBuilder& b, const ModelConfig& config) {
  NeedColumns(config.kind, b);
  NeedHidden(config);
  return AddHead(b, AddMlp(b, config, "deep", {b.input()}, config.hidden));
}

void BuildWideDeep(ModelBuilder& b, const ModelConfig& config) {
  AddWideLogit(b, {AddDeepHead(b, config)});
}

// FM comes after the deep part, so that in the backward pass it writes the gradient of the vectors
// and the big product adds to it; the other way round the vectors' gradient is passed over twice.
void BuildDeepFm(ModelBuilder& b, const ModelConfig& config, const ModelInputs& inputs) {
  const LayerInput deep = AddDeepHead(b, config);
  AddWideLogit(b, {AddFm(b, config.kind, inputs), deep});
}

LayerInput AddCrossLayers(ModelBuilder& b, const ModelConfig& config) {
  const LayerInput x0 = b.input();
  LayerInput xl = x0;
  for (int64_t l = 0; l < config.cross_layers; ++l) {
    CrossLayer::Options cross{
        .name = fmt::format("cross.{}", l), .x0 = x0, .xl = xl, .rank = config.cross_rank};
    if (cross.rank > 0) cross.low = b.NewScratch(cross.rank);
    cross.unit = b.NewScratch(x0.cols);
    cross.output = b.NewTensor(x0.cols);
    cross.first_param = b.NewParams(CrossLayer::ParamCount(x0.cols, cross.rank));
    b.Add<CrossLayer>(cross);
    xl = b.All(cross.output);
  }
  return xl;
}

// Parallel: both parts read the input, the logit reads both outputs. Stacked: one after the other.
// Without hidden layers: the cross layers alone.
void BuildDcnV2(ModelBuilder& b, const ModelConfig& config) {
  NeedColumns(config.kind, b);
  const LayerInput crossed = AddCrossLayers(b, config);
  if (config.hidden.empty() || config.cross_structure == CrossStructure::kStacked)
    return AddLogit(b, AddMlp(b, config, "deep", {crossed}, config.hidden));
  std::vector<LayerInput> last = AddMlp(b, config, "deep", {b.input()}, config.hidden);
  last.insert(last.begin(), crossed);
  AddLogit(b, last);
}

// Dense columns go through the bottom MLP to one more vector, as in the paper, and the top MLP
// reads [that vector, dots]. Without dense columns the top would see products of vectors only,
// which are all near zero at the start: it reads [dots, all vectors] instead.
void BuildDlrm(ModelBuilder& b, const ModelConfig& config, const ModelInputs& inputs) {
  const SlotVectors slots = AddSlotVectors(b, config.kind, inputs);
  DotLayer::Options dots{.has_first = inputs.dense_columns > 0,
                         .slots = slots.columns,
                         .slot_count = slots.count,
                         .dim = slots.dim};
  const int64_t vectors = dots.slot_count + (dots.has_first ? 1 : 0);
  if (vectors < 2)
    throw Error(ErrorCode::kUsage,
                "model.kind = \"dlrm\" multiplies pairs of vectors, but there is only one slot and "
                "no dense column; add slots, or choose another kind");
  if (dots.has_first) {
    std::vector<int64_t> widths = config.bottom;
    widths.push_back(slots.dim);
    dots.first = AddMlp(b, config, "bottom", {b.dense()}, widths)[0];
  }
  dots.output = b.NewTensor(DotLayer::Width(vectors));
  b.Add<DotLayer>(dots);
  const LayerInput products = b.All(dots.output);
  const std::vector<LayerInput> top = dots.has_first
                                          ? std::vector<LayerInput>{dots.first, products}
                                          : std::vector<LayerInput>{products, b.vectors()};
  AddLogit(b, AddMlp(b, config, "top", top, config.hidden));
}

}  // namespace

bool UsesLinear(ModelKind kind) { return kind != ModelKind::kDcnV2 && kind != ModelKind::kDlrm; }
bool UsesVectors(ModelKind kind) { return kind != ModelKind::kLr; }

std::unique_ptr<Model> Model::Make(const ModelConfig& config, const ModelInputs& inputs,
                                   Device* device) {
  if (!UsesLinear(config.kind)) NeedVectors(config.kind, inputs);
  ModelBuilder b(inputs, UsesLinear(config.kind), device);
  switch (config.kind) {
    case ModelKind::kLr:
      AddWideLogit(b, {});
      break;
    case ModelKind::kFm:
      AddWideLogit(b, {AddFm(b, config.kind, inputs)});
      break;
    case ModelKind::kWideDeep:
      BuildWideDeep(b, config);
      break;
    case ModelKind::kDeepFm:
      BuildDeepFm(b, config, inputs);
      break;
    case ModelKind::kDcnV2:
      BuildDcnV2(b, config);
      break;
    case ModelKind::kDlrm:
      BuildDlrm(b, config, inputs);
      break;
  }
  return b.Finish();
}

void ModelConfig::Visit(ConfigVisitor& v) {
  constexpr IntRange kWidth{1, 1 << 16};
  v.Enum("kind", &kind, KindNames(), "which model");
  v.Ints("hidden", &hidden, kWidth,
         "widths of the hidden layers of the deep part (dlrm: of the top)");
  v.Ints("bottom", &bottom, kWidth,
         "dlrm: widths of the layers between the dense columns and their vector");
  v.Enum("activation", &activation, {"relu", "tanh", "sigmoid"}, "of every hidden layer");
  v.Double("dropout", &dropout, {0, 0.99}, "share of hidden units that a training step drops");
  v.Int("cross_layers", &cross_layers, {1, 64}, "dcnv2: number of cross layers");
  v.Int("cross_rank", &cross_rank, {0, 1 << 16}, "dcnv2: rank of the cross matrices; 0: full");
  v.Enum("cross_structure", &cross_structure, {"parallel", "stacked"},
         "dcnv2: the deep part reads the input, or what the cross layers give");
}

}  // namespace terrace
