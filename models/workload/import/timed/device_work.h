// Device work of a capture as ops: everything about it except its place in the host program.
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/timed/joined_capture.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

class DeviceWorkWriter {
 public:
  // Keeps references to all three. Counts what it makes in the summary.
  DeviceWorkWriter(const JoinedCapture& joined, TraceBuilder& builder, ImportSummary& summary)
      : j_(joined), c_(*joined.capture), builder_(builder), summary_(summary), strings_(c_.strings.size(), kUnmapped) {}

  // Declares the capture's streams. Before any op.
  void add_streams();
  // Kind, name, stream, duration, bytes and class. `operator_index`: around the launch, or kNoIndex.
  Op op(std::uint32_t device_op, std::uint32_t operator_index);
  // A string of the capture in the trace.
  StringId string(StringId captured);

 private:
  static constexpr StringId kUnmapped = 0xffffffff;

  void describe_copy(Op& op, std::uint32_t device_op);
  void describe_collective(Op& op, std::uint32_t device_op, std::uint32_t operator_index);

  const JoinedCapture& j_;
  const TimedCapture& c_;
  TraceBuilder& builder_;
  ImportSummary& summary_;
  std::vector<StringId> strings_;  // by captured id
};

}  // namespace memwall
