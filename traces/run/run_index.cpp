#include "traces/run/run_index.h"

namespace memwall {
std::string_view to_string(RunLaneKind) { return ""; }
std::string_view to_string(SpanWord) { return ""; }
SpanWord work_word(OpKind, Phase) { return SpanWord::compute; }
SpanWord call_word(OpKind, WaitFor) { return SpanWord::host; }
RunIndex build_run_index(const Run&) { return {}; }
}  // namespace memwall
