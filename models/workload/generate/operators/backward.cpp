// Backward, in the order of PyTorch's engine (torch/csrc/autograd/engine.cpp): of the nodes that are ready, the one
// that was recorded last runs first; a parameter's accumulation runs at once. Of a node that has run, first the
// gradients it was given go, then what it had saved; then its results go on.
#include <algorithm>
#include <cassert>
#include <queue>

#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/tape.h"

namespace memwall {

class BackwardRun {
 public:
  explicit BackwardRun(Tape& tape) : tape_(tape) {}
  void run(const Tensor& result, Tensor gradient);

 private:
  using Function = std::shared_ptr<GradientFunction>;
  struct Ready {
    Function function;
    std::uint64_t arrival;
  };
  struct Later {
    bool operator()(const Ready& a, const Ready& b) const {
      return a.function->sequence != b.function->sequence ? a.function->sequence < b.function->sequence
                                                          : a.arrival > b.arrival;
    }
  };

  void count_dependencies(const Function& root);
  void evaluate(const Function& function);
  void fit(GradientFunction& function, Tensors& gradients);
  void accumulate(Parameter& parameter, Tensor gradient);
  void give(GradientFunction::Edge edge, Tensor gradient);
  void push(const Function& function) { ready_.push({function, arrivals_++}); }

  Tape& tape_;
  std::priority_queue<Ready, std::vector<Ready>, Later> ready_;
  std::uint64_t arrivals_ = 0;
};

void Tape::backward(const Tensor& result, Tensor gradient) {
  assert(result.function);
  const NoGradientScope no_gradient(*this);
  const Phase before = phase;
  const StringId module_before = module;
  phase = Phase::backward;
  mark("loss");
  BackwardRun(*this).run(result, std::move(gradient));
  for (const auto& ended : backward_ended) ended();
  phase = before;
  module = module_before;
}

void BackwardRun::run(const Tensor& result, Tensor gradient) {
  // The caller of Python's backward() holds the ones until it returns.
  Tensor ones;
  if (!gradient) gradient = ones = fill(tape_, "aten::ones_like", result.shape, result.type);
  count_dependencies(result.function);
  result.function->buffer[static_cast<std::size_t>(result.output)] = std::move(gradient);
  push(result.function);
  while (!ready_.empty()) {
    const Function next = ready_.top().function;
    ready_.pop();
    evaluate(next);
  }
  tape_.running = nullptr;
  tape_.module = 0;
}

void BackwardRun::count_dependencies(const Function& root) {
  std::vector<GradientFunction*> open{root.get()};
  const auto reach = [](GradientFunction& f) {
    f.reached = true;
    f.dependencies = 0;
    f.buffer.assign(f.results.size(), Tensor());
  };
  reach(*root);
  while (!open.empty()) {
    GradientFunction* f = open.back();
    open.pop_back();
    for (const GradientFunction::Edge& edge : f->edges) {
      if (!edge.function) continue;
      if (!edge.function->reached) {
        reach(*edge.function);
        open.push_back(edge.function.get());
      }
      ++edge.function->dependencies;
    }
  }
}

void BackwardRun::evaluate(const Function& function) {
  function->reached = false;
  Tensors given = std::move(function->buffer);
  function->buffer.clear();
  if (function->leaf) {
    accumulate(*function->leaf, std::move(given.front()));
    return;
  }
  tape_.module = function->module;
  tape_.running = function.get();
  Tensors gradients = function->apply(tape_, *function, given);
  fit(*function, gradients);
  for (Tensor& t : given) t.reset();
  for (SavedTensor& saved : function->saved) {
    saved.tensor.reset();
    saved.packed.reset();
  }
  const auto edges = std::move(function->edges);
  for (std::size_t i = 0; i < edges.size(); ++i) give(edges[i], std::move(gradients[i]));
}

// A gradient takes the shape and the type of what it is the gradient of (validate_outputs).
void BackwardRun::fit(GradientFunction& function, Tensors& gradients) {
  assert(gradients.size() == function.edges.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& edge = function.edges[i];
    if (!edge.function || !gradients[i]) continue;
    const auto& wanted = edge.function->results[static_cast<std::size_t>(edge.input)];
    if (gradients[i].shape != wanted.shape) gradients[i] = sum_to(tape_, gradients[i], wanted.shape);
    if (gradients[i].type != wanted.type) gradients[i] = cast(tape_, gradients[i], wanted.type);
  }
}

void BackwardRun::give(GradientFunction::Edge edge, Tensor gradient) {
  if (!edge.function) return;
  Tensor& slot = edge.function->buffer[static_cast<std::size_t>(edge.input)];
  if (gradient && !slot) {
    slot = std::move(gradient);
  } else if (gradient) {
    const bool in_place = tape_.sums_in_place && LiveStorage::is_held_once(slot.storage) && !slot.storage->permanent() &&
                          slot.bytes() == slot.touched_bytes();
    if (in_place)
      add_in_place(tape_, slot, gradient);
    else
      slot = add(tape_, slot, gradient);
  }
  gradient.reset();
  if (--edge.function->dependencies == 0) push(edge.function);
}

// torch/csrc/autograd/functions/accumulate_grad.h: the first gradient is taken as it is if nobody else holds it and
// it lies in memory as the parameter does; later ones are added to it.
void BackwardRun::accumulate(Parameter& parameter, Tensor gradient) {
  if (!gradient) {  // products have added it to the parameter's buffer
    if (parameter.products_add_up && parameter.accumulated) parameter.accumulated(parameter);
    return;
  }
  if (parameter.gradient) {
    add_in_place(tape_, parameter.gradient, gradient);
  } else if (LiveStorage::is_held_once(gradient.storage) && gradient.strides == parameter.value.strides) {
    parameter.gradient = std::move(gradient);
  } else {
    parameter.gradient = copy_of(tape_, gradient, "aten::clone");
  }
  Storage& storage = tape_.trace().storages[parameter.gradient.storage->id()];
  storage.kind = StorageKind::gradient;
  storage.label = tape_.trace().strings.intern(parameter.name + ".grad");
  gradient.reset();
  if (parameter.accumulated) parameter.accumulated(parameter);
}

}  // namespace memwall
