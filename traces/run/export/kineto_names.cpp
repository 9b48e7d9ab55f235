#include "traces/run/export/kineto_names.h"

#include <fmt/format.h>

#include "traces/run/export/export_lanes.h"

namespace memwall {
namespace {

std::string_view nccl_word(CollectiveKind kind) {
  static constexpr std::string_view words[] = {"Generic",  "AllReduce", "ReduceScatter", "AllGather", "Broadcast",
                                               "AllToAll", "Reduce",    "SendRecv",      "Barrier"};
  return words[static_cast<std::size_t>(kind)];
}

std::string copy_name(const Run& run, const Op& op) {
  const auto is_device = [&](std::uint8_t place) {
    const int tier = run.machine.one.tier(run.trace->places[place]);
    return tier >= 0 && run.machine.one.tiers[static_cast<std::size_t>(tier)].tier_class == TierClass::device;
  };
  const bool from = is_device(op.from), to = is_device(op.to);
  const char* const host = op.pageable ? "Pageable" : "Pinned";
  if (from && to) return op.from == op.to ? "Memcpy DtoD (Device -> Device)" : "Memcpy PtoP (Device -> Device)";
  return from ? fmt::format("Memcpy DtoH (Device -> {})", host)
         : to ? fmt::format("Memcpy HtoD ({} -> Device)", host)
              : fmt::format("Memcpy HtoH ({0} -> {0})", host);
}

}  // namespace

std::string call_name(const Trace& trace, const Op& op) {
  const std::string& own = trace.strings[op.name];
  const bool is_named = own.starts_with("cuda") || own.starts_with("cu") || own.starts_with("hip");
  switch (op.kind) {
    case OpKind::kernel:
    case OpKind::collective:
      return "cudaLaunchKernel";
    case OpKind::memset:
      return "cudaMemsetAsync";
    case OpKind::copy:
      return "cudaMemcpyAsync";
    case OpKind::graph_launch:
      return "cudaGraphLaunch";
    case OpKind::event_record:
      return "cudaEventRecord";
    case OpKind::event_wait:
      return "cudaStreamWaitEvent";
    case OpKind::synchronize:
      return op.wait_for == WaitFor::stream  ? "cudaStreamSynchronize"
             : op.wait_for == WaitFor::event ? "cudaEventSynchronize"
                                             : "cudaDeviceSynchronize";
    case OpKind::alloc:
      return "cudaMalloc";
    case OpKind::host_work:
      return is_named ? own : "";
    default:
      return "";
  }
}

std::string work_name(const Run& run, const Op& op) {
  const Trace& trace = run.trace;
  const std::string& own = trace.strings[op.name];
  if (op.kind == OpKind::collective)
    return own.starts_with("nccl") ? own : fmt::format("ncclDevKernel_{}", nccl_word(op.collective));
  if (op.kind == OpKind::memset) return own.starts_with("Memset") ? own : "Memset (Device)";
  if (op.kind != OpKind::copy) return display_name(trace, op);
  return own.starts_with("Memcpy") ? own : copy_name(run, op);
}

}  // namespace memwall
