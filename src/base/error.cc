#include "base/error.h"

namespace terrace {

void CheckFailed(const char* condition, const char* file, int line) {
  throw Error(ErrorCode::kInternal, std::string("internal error: ") + condition +
                                        " does not hold (" + file + ":" + std::to_string(line) +
                                        "); please report this with the command that led to it");
}

}  // namespace terrace
