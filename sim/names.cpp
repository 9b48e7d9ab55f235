// The words for every enumeration, in one place: files, tables and JSON use them.
#include "sim/op.h"
#include "sim/rewriter.h"
#include "sim/simulation.h"
#include "sim/storage.h"
#include "sim/trace.h"

namespace memwall {
namespace {
template <std::size_t N, class E>
std::string_view pick(const std::string_view (&words)[N], E value) {
  const auto i = static_cast<std::size_t>(value);
  return i < N ? words[i] : std::string_view("?");
}
}  // namespace

std::string_view to_string(StorageKind kind) {
  static constexpr std::string_view words[] = {"unknown",    "parameter", "gradient",  "optimizer_state",
                                               "activation", "input",     "workspace", "communication_buffer"};
  return pick(words, kind);
}

std::string_view to_string(OpKind kind) {
  static constexpr std::string_view words[] = {"kernel",       "memset",      "copy",      "collective",   "storage_io",
                                               "graph_launch", "alloc",       "free",      "event_record", "event_wait",
                                               "host_work",    "synchronize", "hand_over", "mark"};
  return pick(words, kind);
}

std::string_view to_string(Phase phase) {
  static constexpr std::string_view words[] = {"unknown", "forward", "recompute", "backward", "optimizer"};
  return pick(words, phase);
}

std::string_view to_string(Origin origin) {
  static constexpr std::string_view words[] = {"measured", "transferred", "modelled"};
  return pick(words, origin);
}

std::string_view to_string(OperatorClass c) {
  static constexpr std::string_view words[] = {"other",       "gemm",      "convolution", "attention", "normalization",
                                               "elementwise", "reduction", "optimizer",   "embedding", "memory"};
  return pick(words, c);
}

std::string_view to_string(DataType t) {
  static constexpr std::string_view words[] = {"unknown", "fp64", "fp32",  "tf32",  "fp16", "bf16",
                                               "fp8",     "int8", "int32", "int64", "bool"};
  return pick(words, t);
}

std::string_view to_string(CollectiveKind k) {
  static constexpr std::string_view words[] = {"none",       "all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                               "all_to_all", "reduce",     "send_receive",   "barrier"};
  return pick(words, k);
}

std::string_view to_string(StreamRole role) {
  static constexpr std::string_view words[] = {"compute", "copy", "communication", "storage"};
  return pick(words, role);
}

std::string_view to_string(Dispatch dispatch) {
  static constexpr std::string_view words[] = {"native", "eager", "compiled"};
  return pick(words, dispatch);
}

std::string_view to_string(RewriterKind kind) {
  static constexpr std::string_view words[] = {"precision", "batch",    "fusion",  "model_parallelism",
                                               "recompute", "sharding", "offload", "buckets"};
  return pick(words, kind);
}

std::string_view to_string(WaitReason reason) {
  static constexpr std::string_view words[] = {
      "none",         "program_order", "hand_over", "synchronize", "launch_queue", "memory", "launch",
      "stream_order", "event",         "occupancy", "copy_engine", "page_fault",   "peer"};
  return pick(words, reason);
}

}  // namespace memwall
