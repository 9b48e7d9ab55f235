// The mark behind a pass of a pipeline's program, before its messages: the pass is what stands between its forward or
// backward mark (pipeline_chunk.h) and this. Of generated programs of torch.distributed.pipelining.
#pragma once

#include <string_view>

namespace memwall {

inline constexpr std::string_view kPassEndMark = "end of the pass";

}  // namespace memwall
