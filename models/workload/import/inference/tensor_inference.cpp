#include "models/workload/import/inference/tensor_inference.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "models/workload/import/inference/input_search.h"
#include "models/workload/import/inference/older_storages.h"
#include "models/workload/import/inference/operator_rules.h"
#include "models/workload/import/inference/optimizer_lists.h"
#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/import/inference/walk_frame.h"

namespace memwall {
namespace {

using std::string_view;

constexpr double kSmall = 1024;  // bytes; what is smaller decides nothing

class Walk {
 public:
  Walk(const ImportedTrace& imported, const TimedCapture& capture)
      : imported_(imported),
        c_(capture),
        facts_(imported, capture),
        search_(capture, facts_, out_.table, bytes_at_start(imported.trace, capture)),
        optimizer_(capture, facts_, out_.table, search_),
        threads_(capture.threads.size()),
        behind_(capture.threads.size()),
        storage_of_id_(imported.trace.storages.size(), kNoIndex),
        last_use_(0) {
    out_.calls.resize(capture.operators.size());
    out_.whole.assign(capture.operators.size(), true);
  }

  TensorInference run() && {
    std::uint32_t memory = 0;
    for (std::uint32_t k = 0; k < c_.operators.size(); ++k) {
      for (; memory < c_.memory.size() && c_.memory[memory].time < c_.operators[k].start; ++memory) remember(memory);
      begin(k);  // times may be whole microseconds: what it does at once comes behind its beginning
    }
    for (; memory < c_.memory.size(); ++memory) remember(memory);
    for (std::vector<WalkFrame>& stack : threads_)
      while (!stack.empty()) end(stack);
    last_use_.resize(out_.table.storages.size());
    adopt_freed(imported_, facts_, last_use_, out_.table);
    out_.parameters = optimizer_.parameters_with_gradient();
    return std::move(out_);
  }

 private:
  void begin(std::uint32_t k);
  void take_inputs(std::vector<WalkFrame>& stack);
  void take_input(std::vector<WalkFrame>& stack, const WantedTensor& wanted, std::uint16_t argument);
  void take_optimizer(WalkFrame& frame, const ListOperator& lists);
  void leave_out(std::uint32_t k, const Shape& shape);
  void end(std::vector<WalkFrame>& stack);
  void make_views(WalkFrame& frame);
  void write_first(WalkFrame& frame);
  void pass_through(WalkFrame& frame);
  void hand_up(std::vector<WalkFrame>& stack, const WalkFrame& frame);
  void remember(std::uint32_t memory);
  void born(std::uint32_t memory, StorageId id);
  void close_others(std::uint16_t thread, Time time);
  void close_to(std::vector<WalkFrame>& stack, std::uint32_t op);
  const WalkFrame* behind(const std::vector<WalkFrame>& stack) const {
    const std::uint16_t thread = c_.operators[stack.back().op].thread;
    return facts_.is_backward_thread(thread) && stack.front().kind == FrameKind::operation &&
                   behind_[thread].op != kNoIndex
               ? &behind_[thread]
               : nullptr;
  }
  void note_use(std::uint32_t storage, std::uint32_t op) {
    last_use_.resize(out_.table.storages.size());
    last_use_[storage] = c_.operators[op].start;
  }
  TensorId gradient_so_far(const WantedTensor& wanted, const WalkFrame& accumulate) {
    return accumulate.inputs.empty() ? kNoTensor : optimizer_.gradient_so_far(wanted, accumulate.inputs.front());
  }
  bool is_host_argument(std::uint32_t k, std::size_t position) const;
  string_view name(std::uint32_t k) const { return c_.text(c_.operators[k].name); }
  RecordedCall call(std::uint32_t k) { return {name(k), OperatorClass::other, facts_.arguments(k)}; }

  const ImportedTrace& imported_;
  const TimedCapture& c_;
  TensorInference out_;
  ProfileFacts facts_;
  InputSearch search_;
  OptimizerLists optimizer_;
  std::vector<std::vector<WalkFrame>> threads_;
  std::vector<WalkFrame> behind_;             // by thread: the last function that no entry of the engine is around
  std::vector<std::uint32_t> storage_of_id_;  // by storage of the trace: that of the table
  std::vector<Time> last_use_;                // by storage of the table
};

// --- order

void Walk::close_others(std::uint16_t thread, Time time) {
  for (std::size_t t = 0; t < threads_.size(); ++t)
    while (t != thread && !threads_[t].empty() && c_.operators[threads_[t].back().op].end() <= time) end(threads_[t]);
}

void Walk::close_to(std::vector<WalkFrame>& stack, std::uint32_t op) {
  while (!stack.empty() && stack.back().op != op) end(stack);
}

void Walk::begin(std::uint32_t k) {
  const CapturedOperator& op = c_.operators[k];
  close_others(op.thread, op.start);
  std::vector<WalkFrame>& stack = threads_[op.thread];
  close_to(stack, op.parent);
  WalkFrame frame;
  frame.op = k;
  frame.kind = facts_.kind(k);
  frame.sequence = op.sequence_number >= 0 || stack.empty() ? op.sequence_number : stack.back().sequence;
  if (frame.kind == FrameKind::range && name(k).starts_with("ProfilerStep")) search_.begin_step();
  stack.push_back(std::move(frame));
  take_inputs(stack);
}

// --- inputs

// Copies name both sides, and which is on the host the direction says.
bool Walk::is_host_argument(std::uint32_t k, std::size_t position) const {
  const bool writes = name(k).ends_with("copy_");
  if (facts_.from_host(k)) return writes ? position == 1 : position == 0;
  return facts_.to_host(k) && writes && position == 0;
}

void Walk::take_inputs(std::vector<WalkFrame>& stack) {
  const std::uint32_t k = stack.back().op;
  const FrameKind kind = stack.back().kind;
  if (kind == FrameKind::range || kind == FrameKind::engine) return;
  const bool view = is_view(name(k)) || may_be_view(name(k));
  if (kind == FrameKind::operation && !facts_.on_device(k) && !view) return;
  const std::vector<RecordedArgument>& arguments = facts_.arguments(k);
  out_.calls[k].out_argument = facts_.out_argument(k);
  if (optimizer_.is_list_operator(k)) return take_optimizer(stack.back(), optimizer_.take(k));
  if (optimizer_.is_single_operator(k))
    if (const ListOperator single = optimizer_.take_single(k); single.unknown == 0)
      return take_optimizer(stack.back(), single);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const RecordedArgument& a = arguments[i];
    if (is_host_argument(k, i)) continue;
    if (a.list && a.tensors.empty() && facts_.launched(k) > 0) {
      ++out_.counts.lists;
      out_.whole[k] = false;
    }
    for (const Shape& shape : a.tensors) {
      // A list does not say its type.
      const int bytes = a.list ? out_.table.element_bytes_of(shape) : a.type.bytes;
      if (element_count(shape) == 0) continue;
      if (bytes > 0)
        take_input(stack, {shape, bytes}, static_cast<std::uint16_t>(std::min<std::size_t>(i, 0xffff)));
      else if (facts_.launched(k) > 0)
        leave_out(k, shape);
    }
  }
}

// Of an unknown type, or a number that the file lists like a tensor.
void Walk::leave_out(std::uint32_t k, const Shape& shape) {
  if (shape.empty()) return;
  ++out_.counts.left_out;
  out_.whole[k] = false;
}

void Walk::take_optimizer(WalkFrame& frame, const ListOperator& lists) {
  const std::uint32_t k = frame.op;
  out_.counts.lists += lists.unknown;
  out_.calls[k].of_lists = optimizer_.is_list_operator(k);
  if (lists.unknown > 0) out_.whole[k] = false;
  for (const auto& [tensor, argument] : lists.inputs) {
    const KnownTensor& t = out_.table.tensors[tensor];
    out_.calls[k].inputs.push_back({tensor, argument, {t.shape, t.element_bytes}});
    frame.inputs.push_back(tensor);
    note_use(t.storage, k);
    ++out_.counts.assumed;
    out_.counts.assumed_bytes += WantedTensor{t.shape, t.element_bytes}.bytes();
  }
}

void Walk::take_input(std::vector<WalkFrame>& stack, const WantedTensor& wanted, std::uint16_t argument) {
  WalkFrame& frame = stack.back();
  const std::uint32_t k = frame.op;
  const bool written = (argument == 0 && is_in_place(name(k))) || argument == facts_.out_argument(k);
  const InputQuestion question{wanted, argument, name(k), written};
  FoundTensor found;
  if (question.written && stack.size() > 1 && stack[stack.size() - 2].kind == FrameKind::accumulate)
    found.tensor = gradient_so_far(wanted, stack[stack.size() - 2]);
  if (written && facts_.in_zero_grad(k) && stack[stack.size() - 2].kind == FrameKind::range)
    found.tensor = optimizer_.zeroed(wanted);
  if (found.tensor == kNoTensor) found = search_.find(question, stack, behind(stack));
  // A number that was given as an argument is wrapped in a tensor of the host, without extents.
  const bool may_be_number = wanted.shape.empty() && argument > 0;
  const bool counts = facts_.launched(k) > 0 && !(may_be_number && found.tensor == kNoTensor);
  InferenceCounts& n = out_.counts;
  if (found.tensor == kNoTensor) {
    n.left_out += counts;
    n.left_out_bytes += counts ? wanted.bytes() : 0;
    n.beyond_total += counts && found.beyond_total;
    if (wanted.bytes() >= kSmall) out_.whole[k] = false;
    return;
  }
  (found.certain ? n.certain : n.assumed) += counts;
  (found.certain ? n.certain_bytes : n.assumed_bytes) += counts ? wanted.bytes() : 0;
  out_.table.learn(found.tensor, wanted);
  KnownTensor& tensor = out_.table.tensors[found.tensor];
  // A view for an operator's own use leaves what it returns unread.
  const bool looks = stack.size() > 1 && stack[stack.size() - 2].kind == FrameKind::operation && is_view(name(k));
  if (!looks && tensor.reads++ == 0) tensor.first_reader = frame.sequence;
  note_use(tensor.storage, k);
  frame.inputs.push_back(found.tensor);
  for (WalkFrame& around : std::span(stack).first(stack.size() - 1))
    if (around.kind != FrameKind::range) around.taken.push_back(found.tensor);
  out_.calls[k].inputs.push_back({found.tensor, argument, wanted});
  if (frame.kind == FrameKind::accumulate) optimizer_.accumulate(found.tensor);
}

// --- results

void Walk::end(std::vector<WalkFrame>& stack) {
  WalkFrame frame = std::move(stack.back());
  stack.pop_back();
  if (frame.kind == FrameKind::operation) {
    make_views(frame);
    write_first(frame);
  } else if (frame.kind == FrameKind::function) {
    pass_through(frame);
  }
  const bool optimizer_step = frame.kind == FrameKind::range && name(frame.op).starts_with("Optimizer.step");
  if (optimizer_step) {
    search_.begin_step();
    optimizer_.end_step();
  }
  std::vector<TensorId>& made = frame.made;
  std::erase_if(made, [&](TensorId t) {
    return !out_.table.storages[out_.table.tensors[t].storage].alive || !out_.table.tensors[t].alive;
  });
  // Who reads a view reads what it is a view of.
  if (frame.kind == FrameKind::operation)
    for (std::size_t i = 0; i < made.size(); ++i)
      for (std::size_t later = i + 1; later < made.size() && out_.table.tensors[made[i]].reads == 0; ++later)
        if (out_.table.tensors[made[later]].storage == out_.table.tensors[made[i]].storage)
          out_.table.tensors[made[i]].reads += out_.table.tensors[made[later]].reads > 0;
  const std::int64_t own_sequence = c_.operators[frame.op].sequence_number;
  if (own_sequence >= 0 && frame.kind == FrameKind::operation && !facts_.in_backward(frame.op)) {
    for (const TensorId t : frame.inputs) search_.save(own_sequence, t, false);
    for (const TensorId t : made) search_.save(own_sequence, t, true);
  }
  if (frame.kind != FrameKind::range)
    for (const TensorId t : made) {
      const KnownTensor& tensor = out_.table.tensors[t];
      out_.calls[frame.op].outputs.push_back({t, 0, {tensor.shape, tensor.element_bytes}});
    }
  hand_up(stack, frame);
}

void Walk::make_views(WalkFrame& frame) {
  const string_view n = name(frame.op);
  const bool view = is_view(n) || may_be_view(n);
  if (!view || frame.inputs.empty() || !frame.made.empty()) return;
  const KnownTensor& of = out_.table.tensors[frame.inputs.front()];
  KnownTensor result;
  result.storage = of.storage;
  result.element_bytes = of.element_bytes;
  result.backward = facts_.in_backward(frame.op);
  if (const auto shape = result_shape(call(frame.op))) {
    result.shape = *shape;
    result.shaped = true;
  }
  frame.made.push_back(out_.table.add(std::move(result)));
}

// What was written is another content: who reads it from now on reads it for the first time.
void Walk::write_first(WalkFrame& frame) {
  if (!is_in_place(name(frame.op)) || frame.inputs.empty() || facts_.in_optimizer(frame.op)) return;
  const TensorId first = frame.inputs.front();
  for (const TensorId t : frame.made)
    if (out_.table.tensors[t].storage == out_.table.tensors[first].storage) return;  // an operator inside did it
  KnownTensor result = out_.table.tensors[first];
  out_.table.tensors[first].alive = out_.table.storages[result.storage].older;
  result.alive = true;
  result.reads = 0;
  result.first_reader = -1;
  result.backward = facts_.in_backward(frame.op);
  frame.made.push_back(out_.table.add(std::move(result)));
}

// A function that makes nothing hands on the gradient that it got, to all inputs of its forward operator of that shape.
void Walk::pass_through(WalkFrame& frame) {
  if (!frame.made.empty() || frame.inputs.empty() || facts_.on_device(frame.op)) return;
  const KnownTensor gradient = out_.table.tensors[frame.inputs.front()];
  for (const TensorId t : search_.saved_inputs(frame.sequence)) {
    if (out_.table.tensors[t].shape != gradient.shape || frame.made.size() > 8) continue;
    KnownTensor same = gradient;
    same.alive = true;
    same.reads = 0;
    same.backward = true;
    frame.made.push_back(out_.table.add(std::move(same)));
  }
}

// Views that an operator makes for itself end with it; what it allocated and what it wrote stay.
void Walk::hand_up(std::vector<WalkFrame>& stack, const WalkFrame& frame) {
  for (const TensorId t : frame.made) {
    KnownTensor& tensor = out_.table.tensors[t];
    const bool base = out_.table.storages[tensor.storage].first == t;
    // What AccumulateGrad keeps is no gradient that anybody waits for.
    if (!base && (frame.kind == FrameKind::accumulate || (tensor.reads > 0 && frame.kind == FrameKind::operation))) {
      tensor.alive = false;
      continue;
    }
    if (!stack.empty() && stack.back().kind != FrameKind::range) stack.back().made.push_back(t);
  }
  if (frame.kind == FrameKind::function && !stack.empty() && stack.back().kind == FrameKind::engine)
    stack.back().inputs = frame.inputs;
  const std::uint16_t thread = c_.operators[frame.op].thread;
  if (frame.kind == FrameKind::function && stack.empty()) behind_[thread] = frame;
  if (frame.kind == FrameKind::operation && stack.empty() && behind_[thread].op != kNoIndex)
    behind_[thread].made.insert(behind_[thread].made.end(), frame.made.begin(), frame.made.end());
}

// --- memory

void Walk::remember(std::uint32_t memory) {
  const StorageId id = facts_.storage_of_memory(memory);
  if (id == kNoStorage) return;
  const CapturedMemory& event = c_.memory[memory];
  close_others(event.thread, event.time);
  std::vector<WalkFrame>& stack = threads_[event.thread];
  const std::uint32_t op = facts_.operator_of_memory(memory);
  if (op == kNoIndex) {
    while (!stack.empty() && c_.operators[stack.back().op].end() <= event.time) end(stack);
  } else {
    if (std::any_of(stack.begin(), stack.end(), [&](const WalkFrame& f) { return f.op == op; })) close_to(stack, op);
  }
  if (event.bytes > 0) return born(memory, id);
  if (storage_of_id_[id] != kNoIndex) out_.table.free(storage_of_id_[id]);
}

void Walk::born(std::uint32_t memory, StorageId id) {
  const std::uint32_t op = facts_.operator_of_memory(memory);
  KnownStorage storage;
  storage.id = id;
  storage.bytes = rounded_size(imported_.trace.storages[id].bytes);
  storage.maker = op;
  KnownTensor tensor;
  tensor.storage = storage_of_id_[id] = out_.table.add_storage(storage);
  tensor.backward = op != kNoIndex && facts_.in_backward(op);
  if (op != kNoIndex) {
    const std::vector<RecordedArgument>& arguments = facts_.arguments(op);
    const int bytes = arguments.empty() ? 0 : arguments.front().type.bytes;
    if (const auto shape = result_shape(call(op)); shape && bytes > 0) {
      const Bytes wanted = rounded_size(static_cast<Bytes>(element_count(*shape)) * bytes);
      if (wanted == storage.bytes) {
        tensor.shape = *shape;
        tensor.element_bytes = bytes;
        tensor.shaped = true;
      }
    }
  }
  const TensorId t = out_.table.add(std::move(tensor));
  const std::uint16_t thread = c_.memory[memory].thread;
  std::vector<WalkFrame>& stack = threads_[thread];
  if (out_.table.tensors[t].backward) {
    std::int64_t function = behind_[thread].sequence;
    if (!stack.empty() && stack.back().sequence >= 0) function = stack.back().sequence;
    out_.table.storages[storage_of_id_[id]].function = function;
  }
  if (!stack.empty() && stack.back().kind != FrameKind::range) stack.back().made.push_back(t);
}

}  // namespace

TensorInference infer_tensors(const ImportedTrace& imported, const TimedCapture& capture) {
  return Walk(imported, capture).run();
}

}  // namespace memwall
