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

// Sentences, one per storage that is freed while a collective still uses it for which neither the stream of its pool
// nor the program's first stream has waited, whether or not something is made in its memory meanwhile. (FSDP2 of
// replicas gives back gradients of its reduction's pool once the compute stream has waited for their all-reduce; what
// is made in their memory waits for that stream.) At most `limit`.
std::vector<std::string> early_frees(const Trace& trace, std::size_t limit = 10);

}  // namespace memwall
