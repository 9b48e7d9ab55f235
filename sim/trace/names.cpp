// The words for the enumerations of a trace, in one place: files, tables and JSON use them.
#include "sim/trace/op.h"
#include "sim/word_of.h"
#include "sim/trace/storage.h"
#include "sim/trace/trace.h"

namespace memwall {
std::string_view to_string(StorageKind kind) {
  static constexpr std::string_view words[] = {"unknown",    "parameter", "gradient",  "optimizer_state",
                                               "activation", "input",     "workspace", "communication_buffer"};
  return word_of(words, kind);
}

std::string_view to_string(OpKind kind) {
  static constexpr std::string_view words[] = {"kernel",       "memset",      "copy",      "collective",   "storage_io",
                                               "graph_launch", "alloc",       "free",      "event_record", "event_wait",
                                               "host_work",    "synchronize", "hand_over", "mark"};
  return word_of(words, kind);
}

std::string_view to_string(Phase phase) {
  static constexpr std::string_view words[] = {"unknown", "forward", "recompute", "backward", "optimizer"};
  return word_of(words, phase);
}

std::string_view to_string(Origin origin) {
  static constexpr std::string_view words[] = {"measured", "transferred", "modelled"};
  return word_of(words, origin);
}

std::string_view to_string(OperatorClass c) {
  static constexpr std::string_view words[] = {"other",       "gemm",      "convolution", "attention", "normalization",
                                               "elementwise", "reduction", "optimizer",   "embedding", "memory"};
  return word_of(words, c);
}

std::string_view to_string(DataType t) {
  static constexpr std::string_view words[] = {"unknown", "fp64", "fp32",  "tf32",  "fp16", "bf16",
                                               "fp8",     "int8", "int32", "int64", "bool"};
  return word_of(words, t);
}

std::string_view to_string(CollectiveKind k) {
  static constexpr std::string_view words[] = {"none",       "all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                               "all_to_all", "reduce",     "send_receive",   "barrier"};
  return word_of(words, k);
}

std::string_view to_string(Completeness completeness) {
  static constexpr std::string_view words[] = {"complete", "gaps", "not a replay", "gaps"};
  return word_of(words, completeness);
}

std::string_view to_string(StreamRole role) {
  static constexpr std::string_view words[] = {"compute", "copy", "communication", "storage"};
  return word_of(words, role);
}

std::string_view to_string(Dispatch dispatch) {
  static constexpr std::string_view words[] = {"native", "eager", "compiled"};
  return word_of(words, dispatch);
}

}  // namespace memwall
