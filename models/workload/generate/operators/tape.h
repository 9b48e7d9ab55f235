// An autograd that only knows shapes. Operators written on the tape become kernel ops of a trace; their
// results allocate storages and free them when the last reference goes; what they save for backward is
// held until backward has used it. The rules are PyTorch's (torch/csrc/autograd): docs/generators.md.
//
// One tape writes one training step:
//   Tape tape(name);  parameters;  tape.begin_step();  forward;  tape.backward(loss);  optimizer_step;
//   trace = std::move(tape).finish();
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/generate/configuration/recipe.h"
#include "models/workload/generate/operators/tensor.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// Something that a saved tensor was turned into (nothing at all under checkpointing, a host copy when offloaded).
struct PackedTensor {
  virtual ~PackedTensor() = default;
  virtual Tensor unpack(Tape& tape) = 0;
};

// torch.autograd.graph.saved_tensors_hooks. May return nothing: the tensor is then kept as it is.
struct SavedTensorHooks {
  virtual ~SavedTensorHooks() = default;
  virtual std::unique_ptr<PackedTensor> pack(Tape& tape, const Tensor& tensor) = 0;
};

struct SavedTensor {
  Tensor tensor;
  std::unique_ptr<PackedTensor> packed;
};

struct Parameter {
  std::string name;
  Tensor value;                                 // its function is the one that accumulates into `gradient`
  Tensor gradient;                              // empty before the first
  std::vector<Tensor> states;                   // of the optimizer
  std::function<void(Parameter&)> accumulated;  // called after a gradient has been added, if set
  // What gradients of all passes add up in, where that is not `gradient`; the products of weights then do so themselves
  // (gradient_accumulation_fusion), or `accumulated` does.
  Tensor main_gradient;
  bool products_add_up = false;
  bool by_tokens = false;  // whole on each rank of a tensor-parallel group, which shows it its own tokens or heads alone
};

// A node of the graph: computes the gradients of an operator's inputs from those of its results.
struct GradientFunction {
  struct Edge {
    std::shared_ptr<GradientFunction> function;  // nothing where no gradient is needed
    int input = 0;
  };
  struct Result {  // what the operator's result looked like: its gradient is summed and cast to that
    Shape shape;
    DataType type = DataType::unknown;
  };
  // Gradients of the inputs, in the order of the edges; empty where not needed. `gradients`: of the results.
  using Apply = std::function<Tensors(Tape&, GradientFunction&, Tensors& gradients)>;

  std::uint64_t sequence = 0;
  StringId module = 0;
  std::vector<Edge> edges;
  std::vector<Result> results;
  std::vector<SavedTensor> saved;  // freed in this order
  Apply apply;
  Parameter* leaf = nullptr;  // accumulates into this parameter instead

  // Used by backward().
  Tensors buffer;
  int dependencies = 0;
  bool reached = false;

  bool needs(std::size_t input) const { return edges[input].function != nullptr; }
  Tensor take_saved(Tape& tape, std::size_t index);  // the tensor itself, or what is unpacked anew
};

// What a kernel does, as Op has it. `bytes` < 0: all that its tensors touch.
struct TapeKernel {
  std::string_view name;  // "aten::mm"
  OperatorClass operator_class = OperatorClass::other;
  DataType type = DataType::unknown;
  double flops = 0;
  Shape shape;  // by operator class, see Op::shape
  Bytes bytes = -1;
  int kernels = 1;
};

class Tape {
 public:
  using Refs = std::span<const Tensor* const>;
  using Function = std::shared_ptr<GradientFunction>;

  explicit Tape(std::string_view name);
  ~Tape() { finished_ = true; }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // --- what lives before the step, and after it
  Parameter& parameter(const std::string& name, const Shape& shape, DataType type, bool trained = true);
  // `place`: "hbm", or "host" (page-locked).
  Tensor permanent(std::string_view label, const Shape& shape, DataType type, StorageKind kind,
                   std::string_view place = "hbm");
  const std::vector<std::unique_ptr<Parameter>>& parameters() const { return parameters_; }

  // --- the program
  void begin_step(std::string_view name);
  void mark(std::string_view name);
  Trace finish() &&;

  // A new tensor: its `alloc` now, its `free` with the last reference. No strides: contiguous.
  // Throws UsageError if it is larger than any machine could hold.
  Tensor make(std::string_view label, const Shape& shape, DataType type, Shape strides = {});
  // The same elsewhere: in another place ("host": page-locked), or from the pool of another stream.
  Tensor make_at(std::string_view place, std::uint16_t stream, std::string_view label, const Shape& shape,
                 DataType type, Shape strides = {});
  // A view: the same storage, seen otherwise. One framework call, no kernel, no history.
  Tensor view(const Tensor& tensor, const Shape& shape, const Shape& strides);
  OpId kernel(const TapeKernel& work, std::initializer_list<const Tensor*> reads,
              std::initializer_list<const Tensor*> writes);
  OpId kernel(const TapeKernel& work, Refs reads, Refs writes);
  // An op of any other kind (copy, collective, synchronize, host work): what it does is the caller's, phase, module
  // and uses are filled in.
  OpId append(Op op, std::string_view name, Refs reads, Refs writes);
  // Framework calls that the next op is going to stand for besides its own.
  void count_calls(int calls) { calls_ += calls; }

  // --- history
  // The node of an operator on `inputs`, or nothing if no gradient can be asked for. `saved` may hold empty tensors.
  // Call `result` for each output, in order.
  Function record(std::initializer_list<const Tensor*> inputs, Tensors saved, GradientFunction::Apply apply);
  Function record(Refs inputs, Tensors saved, GradientFunction::Apply apply);
  static void result(const Function& function, Tensor& output);
  // Keeps one more tensor (a result of the operator) for the backward of `function`, if there is one.
  void save(const Function& function, const Tensor& tensor);
  // What a node would keep of a tensor: what the hooks make of it, or the tensor itself.
  SavedTensor pack(const Tensor& tensor);
  // Runs the graph behind `result` in the order of PyTorch's engine, and drops it. `gradient`: of the result, which may
  // have lost its storage since; empty: ones, as of a loss.
  void backward(const Tensor& result, Tensor gradient = {});

  TraceBuilder& builder() { return builder_; }
  Trace& trace() { return builder_.trace(); }
  void free(StorageId storage);          // StorageLife's
  void unreferenced(StorageId storage);  // LiveStorage's: the program refers to it no more, autograd keeps it

  // --- state of the program; the scopes below change it
  Phase phase = Phase::forward;
  StringId module = 0;
  std::string module_path;
  bool gradients_enabled = true;
  // The engine adds to a gradient that nobody else holds (torch/csrc/autograd/input_buffer.cpp). It does not where
  // tensors are of a subclass, as under fake tensors: then the sum is a new tensor.
  bool sums_in_place = true;
  bool parameters_are_gathered = false;  // new parameters have no storage until somebody gives them one
  std::optional<DataType> autocast;
  std::vector<std::pair<StorageId, Tensor>> cast_cache;  // autocast's casts of parameters, until it ends
  std::vector<SavedTensorHooks*> hooks;                  // the last one applies
  std::vector<std::function<void()>> backward_ended;     // called at the end of backward()
  const GradientFunction* running = nullptr;             // the node that backward runs now
  Dispatch dispatch = Dispatch::eager;
  // Under recomputation: the ops that are repeated, in order, and how many of them have been.
  const std::vector<OpId>* repeated = nullptr;
  std::size_t repeated_count = 0;
  std::vector<OpId>* noted = nullptr;  // where a region's ops are written down, to be repeated later
  // Where the lives of storages are written down in place of `alloc` and `free` ops, for who asks of a program how long
  // it takes: ops then have no uses. nullptr: the trace has them.
  struct StorageChange {
    StorageId storage = kNoStorage;
    bool begins = false;
  };
  std::vector<StorageChange>* lives = nullptr;
  // Then: how many of these changes came before an op, which the host would have called the allocator for.
  struct AllocatorCalls {
    OpId before = 0;
    std::uint32_t calls = 0;
  };
  std::vector<AllocatorCalls> allocator_calls;  // where there were any; ascending
  bool omits_messages = false;  // PipelineMessages writes nothing: for who asks for lives alone

 private:
  friend class BackwardRun;
  Op common(OpKind kind, std::string_view name);
  void collect_uses(Refs reads, Refs writes);
  void note_change(StorageId storage, bool begins);

  TraceBuilder builder_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> seen_;  // per storage: the last collection that met it
  std::uint32_t collection_ = 0;
  std::uint64_t next_sequence_ = 0;
  int calls_ = 0;
  std::uint32_t allocator_calls_ = 0;  // with `lives`, since the last op
  bool finished_ = false;
};

// Module paths: "layers.3" within "" and "mlp" within that give "layers.3.mlp".
class ModuleScope {
 public:
  ModuleScope(Tape& tape, std::string_view name);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  Tape& tape_;
  std::size_t length_;
  StringId before_;
};

class NoGradientScope {
 public:
  explicit NoGradientScope(Tape& tape) : tape_(tape), before_(tape.gradients_enabled) {
    tape.gradients_enabled = false;
  }
  ~NoGradientScope() { tape_.gradients_enabled = before_; }
  NoGradientScope(const NoGradientScope&) = delete;
  NoGradientScope& operator=(const NoGradientScope&) = delete;

 private:
  Tape& tape_;
  bool before_;
};

// torch.autocast; its end drops the cached casts. Nothing without a type.
class AutocastScope {
 public:
  AutocastScope(Tape& tape, std::optional<DataType> type) : tape_(tape) { tape.autocast = type; }
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  Tape& tape_;
};

}  // namespace memwall
