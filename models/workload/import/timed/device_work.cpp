#include "models/workload/import/timed/device_work.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "models/workload/import/timed/captured_communication.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/operator_class.h"

namespace memwall {

using std::string_view;

StringId DeviceWorkWriter::string(StringId captured) {
  if (strings_[captured] == kUnmapped) strings_[captured] = builder_.trace().strings.intern(c_.text(captured));
  return strings_[captured];
}

void DeviceWorkWriter::describe_collective(Op& op, std::uint32_t device_op, std::uint32_t operator_index) {
  const CapturedDeviceOp& captured = c_.device_ops[device_op];
  op.kind = OpKind::collective;
  if (const CapturedBatch* batch = batch_of(j_.batches, device_op)) {
    op.collective = CollectiveKind::send_receive;
    op.bytes = batch_bytes(c_, *batch);
    return;
  }
  const std::uint32_t range = communication_range(c_, operator_index);
  const CapturedCommunication* communication = communication_of(c_, device_op, operator_index);
  if (communication != nullptr) op.collective = collective_kind_by_name(c_.text(communication->collective));
  if (op.collective == CollectiveKind::none)
    op.collective = collective_kind(c_.text(captured.name), range == kNoIndex ? "" : c_.text(c_.operators[range].name));
  const CapturedMessage message = c_.message(captured);
  std::int64_t elements = message.elements, ranks = message.group_size;
  std::string type = c_.text(message.type);
  if (elements < 0 && communication != nullptr && communication->elements >= 0) {
    elements = communication->elements;
    type = c_.text(communication->message_type);
  }
  if (elements < 0 && range != kNoIndex) {
    elements = first_tensor_elements(c_.text(c_.operators[range].input_dims));
    type = first_tensor_type(c_.text(c_.operators[range].input_types));
  }
  if (ranks <= 0 && communication != nullptr) ranks = communication->group_size;
  if (ranks <= 0) ranks = c_.world_size;
  if (elements > 0 && elements < std::int64_t{1} << 42)
    op.bytes = wire_bytes(op.collective, elements * element_size(type), std::min<std::int64_t>(ranks, 1 << 16));
}

void DeviceWorkWriter::describe_copy(Op& op, std::uint32_t device_op) {
  const CapturedDeviceOp& captured = c_.device_ops[device_op];
  const CopyDirection direction = copy_direction(c_.text(captured.name));
  const std::uint32_t call = j_.device_ops[device_op].call;
  op.kind = OpKind::copy;
  op.operator_class = OperatorClass::memory;
  op.pageable = direction.pageable;
  op.from = builder_.trace().place(direction.from_host ? "host" : "hbm");
  op.to = builder_.trace().place(direction.to_host ? "host" : direction.between_devices ? "peer_hbm" : "hbm");
  if (captured.bytes < 0 && call != kNoIndex) op.bytes = std::max<Bytes>(c_.calls[call].size, 0);
}

void DeviceWorkWriter::add_streams() {
  bool several = false;
  for (const JoinedStream& s : j_.streams) several = several || s.device_index > 0;
  for (const JoinedStream& s : j_.streams)
    builder_.add_stream(
        (several ? "device " + std::to_string(s.device) + " stream " : "stream ") + std::to_string(s.id), s.role,
        s.device_index);
}

Op DeviceWorkWriter::op(std::uint32_t device_op, std::uint32_t operator_index) {
  const CapturedDeviceOp& captured = c_.device_ops[device_op];
  const JoinedDeviceOp& joined = j_.device_ops[device_op];
  Op op;
  op.name = string(captured.name);
  op.stream = joined.stream;
  op.duration = captured.duration;
  op.waves = joined.waves;
  op.bytes = captured.work == DeviceWork::kernel ? 0 : std::max<Bytes>(captured.bytes, 0);
  if (operator_index != kNoIndex) op.operator_name = string(c_.operators[operator_index].name);
  if (captured.work == DeviceWork::memset) {
    op.kind = OpKind::memset;
    op.operator_class = OperatorClass::memory;
    ++summary_.trace_memsets;
  } else if (captured.work == DeviceWork::copy) {
    describe_copy(op, device_op);
    ++summary_.trace_copies;
  } else if (joined.collective) {
    describe_collective(op, device_op, operator_index);
    ++summary_.trace_collectives;
  } else {
    op.kind = OpKind::kernel;
    op.operator_class = operator_class(operator_index == kNoIndex ? "" : c_.text(c_.operators[operator_index].name),
                                       c_.text(captured.name));
    ++summary_.trace_kernels;
  }
  return op;
}

}  // namespace memwall
