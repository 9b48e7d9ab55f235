#include "models/workload/import/timed/host_op_writer.h"

#include <algorithm>
#include <string>

namespace memwall {

void HostOpWriter::add_threads(const JoinedCapture& joined, Time origin) {
  thread_index_.assign(c_.threads.size(), 0);
  for (std::size_t t = 0; t < c_.threads.size(); ++t)
    if (joined.thread_kept[t]) thread_index_[t] = builder_.add_thread("thread " + std::to_string(c_.threads[t].id));
  if (builder_.trace().threads.empty()) builder_.add_thread("host");
  threads_.resize(builder_.trace().threads.size());
  for (Thread& thread : threads_) thread.cursor = origin;
}

void HostOpWriter::reserve(std::size_t ops) {
  builder_.trace().ops.reserve(ops);
  result_.operator_of_op.reserve(ops);
  result_.device_of_op.reserve(ops);
  if (keeps_memory_) result_.memory_of_op.reserve(ops);
  times_.reserve(ops);
}

OpId HostOpWriter::append(const Op& op, std::uint32_t operator_index, std::uint32_t device, std::uint32_t memory) {
  const OpId id = builder_.append(op);
  result_.operator_of_op.push_back(operator_index);
  result_.device_of_op.push_back(device);
  if (keeps_memory_) result_.memory_of_op.push_back(memory);
  times_.append(device == kNoIndex ? nullptr : &c_.device_ops[device]);
  return id;
}

OpId HostOpWriter::append_host(Op op, std::uint16_t thread, Time start, Time end, std::uint32_t operator_index,
                               std::uint32_t device, std::uint32_t memory) {
  Thread& state = threads_[thread];
  op.thread = thread;
  op.host_gap = std::max(start - state.cursor, Duration{});
  state.cursor = std::max({state.cursor, start, end});
  return state.last_op = append(op, operator_index, device, memory);
}

OpId HostOpWriter::append_mark(std::uint16_t thread, Time time) {
  Op mark;
  mark.kind = OpKind::mark;
  return append_host(mark, thread, time, time, kNoIndex);
}

void HostOpWriter::describe(Op& op, std::uint16_t captured_thread, Time time, std::uint32_t operator_index) {
  op.phase = phases_.phase(captured_thread, time, operator_index);
  if (operator_index == kNoIndex) return;
  op.operator_name = work_.string(c_.operators[operator_index].name);
  const std::uint32_t module = modules_.of_operator[operator_index];
  if (module == kNoIndex) return;
  if (module_name_[module] == kUnmapped) module_name_[module] = builder_.trace().strings.intern(modules_.paths[module]);
  op.module = module_name_[module];
  builder_.trace().knowledge.modules = true;
}

}  // namespace memwall
