// Which parameters two models of one kind have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"

namespace terrace {

// Of each parameter of `to`, the one of `from` that belongs to the same: the same block, and on
// each of its axes the same column (of a slot, a dense column, a pair of vectors) or the same
// number. -1: `from` has none.
std::vector<int64_t> MatchParams(const Model& from, const Model& to);

}  // namespace terrace
