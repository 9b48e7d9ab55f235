// A capture and an ExecutionTrace of the same small program, written operator by operator.
//
// For tests of the join: begin() and end() put an operator into both, in between kernel(), alloc()
// and free() stand for what the capture saw while it was open.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/workload/import/execution_trace/execution_trace_join.h"
#include "sim/trace/trace_check.h"

namespace memwall {

// A tensor of `floats` elements in the storage that the ExecutionTrace calls `id`.
struct SceneTensor {
  std::int64_t id = 0, floats = 0;
};
using SceneArguments = std::vector<std::vector<SceneTensor>>;  // an argument is one tensor or a list

class Scene {
 public:
  explicit Scene(bool with_memory = true) {
    capture.path = "scene.json";
    execution.path = "scene.et.json";
    capture.threads.push_back({1, 1});
    imported.trace.threads.push_back({"host"});
    imported.trace.streams.push_back({"compute", 0, StreamRole::compute});
    imported.trace.place("hbm");
    imported.trace.place("host");
    imported.trace.knowledge.allocations = with_memory;
    imported.trace.untracked_bytes = with_memory ? 1'000'000 : 0;
  }

  void begin(const std::string& name, const std::string& schema = "", const SceneArguments& inputs = {},
             const SceneArguments& outputs = {}) {
    CapturedOperator op;
    op.name = capture.strings.intern(name);
    op.start = microseconds(++clock_);
    op.parent = open_.empty() ? kNoIndex : open_.back();
    open_.push_back(static_cast<std::uint32_t>(capture.operators.size()));
    capture.operators.push_back(op);
    ExecutionNode node;
    node.id = static_cast<std::int64_t>(open_.back()) + 10;
    node.parent = op.parent == kNoIndex ? 1 : op.parent + 10;
    node.record_function_id = node.id;
    node.thread = 1;
    node.name = execution.strings.intern(name);
    node.schema = execution.strings.intern(schema);
    add(inputs, node.first_input, node.input_count);
    add(outputs, node.first_output, node.output_count);
    execution.nodes.push_back(node);
  }

  // The open operator makes this node of autograd's graph, or runs its function in backward. `in_capture`: the profile
  // lists it, too.
  void number(std::int64_t sequence, bool runs = false, bool in_capture = true) {
    ExecutionNode& node = execution.nodes[open_.back()];
    node.sequence_number = sequence;
    node.forward_thread = runs ? 1 : 0;
    if (!in_capture) return;
    capture.operators[open_.back()].sequence_number = sequence;
    capture.operators[open_.back()].forward_thread = runs ? 1 : 0;
  }

  void end() {
    capture.operators[open_.back()].duration = microseconds(++clock_) - capture.operators[open_.back()].start;
    open_.pop_back();
  }

  OpId kernel(Phase phase = Phase::forward, OpKind kind = OpKind::kernel) {
    Op op;
    op.kind = kind;
    op.phase = phase;
    op.duration = microseconds(10);
    return append(op);
  }

  StorageId alloc(Bytes bytes) {
    Storage storage;
    storage.bytes = bytes;
    imported.trace.storages.push_back(storage);
    Op op;
    op.kind = OpKind::alloc;
    op.target = static_cast<StorageId>(imported.trace.storages.size() - 1);
    append(op);
    return op.target;
  }

  void free(StorageId storage) {
    Op op;
    op.kind = OpKind::free;
    op.target = storage;
    append(op);
  }

  // What a capture frees without having allocated it.
  StorageId older(Bytes bytes) {
    Storage storage;
    storage.bytes = bytes;
    storage.preexisting = true;
    imported.trace.storages.push_back(storage);
    return static_cast<StorageId>(imported.trace.storages.size() - 1);
  }

  JoinReport join() {
    const JoinReport report = join_execution_trace(imported, capture, execution);
    EXPECT_EQ(check(imported.trace), std::vector<std::string>());
    return report;
  }

  // "r0v1 w2v1": the uses of an op; `only_saved`: those that autograd keeps.
  std::string uses(OpId id, bool only_saved = false) const {
    std::string text;
    for (const Use& use : imported.trace.uses_of(imported.trace.ops[id]))
      if (use.saved || !only_saved)
        text += (text.empty() ? "" : " ") + std::string(use.access == Access::read ? "r" : "w") +
                std::to_string(use.storage) + "v" + std::to_string(use.version);
    return text;
  }

  StorageKind kind(StorageId s) const { return imported.trace.storages[s].kind; }
  const std::string& label(StorageId s) const { return imported.trace.strings[imported.trace.storages[s].label]; }

  TimedCapture capture;
  ExecutionTrace execution;
  ImportedTrace imported;

 private:
  OpId append(const Op& op) {
    imported.trace.ops.push_back(op);
    imported.operator_of_op.push_back(open_.empty() ? kNoIndex : open_.back());
    imported.memory_of_op.push_back(kNoIndex);
    return static_cast<OpId>(imported.trace.ops.size() - 1);
  }

  void add(const SceneArguments& arguments, std::uint32_t& first, std::uint32_t& count) {
    first = static_cast<std::uint32_t>(execution.tensors.size());
    std::uint16_t position = 0;
    for (const auto& argument : arguments) {
      for (const SceneTensor& t : argument) {
        TensorUse use;
        use.tensor = use.storage = t.id;
        use.elements = t.floats;
        use.element_bytes = 4;
        use.type = DataType::fp32;
        use.on_device = true;
        use.argument = position;
        execution.tensors.push_back(use);
        ++count;
      }
      ++position;
    }
  }

  std::vector<std::uint32_t> open_;
  std::int64_t clock_ = 0;
};

}  // namespace memwall
