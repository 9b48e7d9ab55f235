// Does a trace's order on streams protect its memory? What runs on two streams is ordered only by
// events; a rewriter that forgets one produces a program that a GPU would run wrong, although the
// simulator would not notice.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Sentences, one per race: an op that uses what another stream wrote, or writes what another
// stream uses, without being ordered behind it; an op that uses memory which a stream's pool may have
// taken from a storage still in use. Host waits order everything after them. At most `limit`.
std::vector<std::string> races(const Trace& trace, std::size_t limit = 10);

}  // namespace memwall
