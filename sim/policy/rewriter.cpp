#include "sim/policy/rewriter.h"

#include "sim/word_of.h"

namespace memwall {

std::string_view to_string(RewriterKind kind) {
  static constexpr std::string_view words[] = {"precision", "batch",    "fusion",  "model_parallelism",
                                               "recompute", "sharding", "offload", "buckets"};
  return word_of(words, kind);
}

}  // namespace memwall
