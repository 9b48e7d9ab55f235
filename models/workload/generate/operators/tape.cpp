#include "models/workload/generate/operators/tape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kMostBytes = Bytes{1} << 50;  // of one storage: what the readers of captures take, too

// Bytes of a dense tensor. Throws UsageError where no machine could hold it.
Bytes checked_bytes(std::string_view label, const Shape& shape, DataType type) {
  Bytes bytes = bytes_of(type);
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMostBytes)
      throw UsageError(
          fmt::format("{} would be a tensor of [{}] elements; expected no more than {} bytes in one. Make "
                      "the model or the batch smaller.",
                      label, fmt::join(shape, ", "), kMostBytes));
  return bytes;
}

}  // namespace

Tape::Tape(std::string_view name) {
  trace().name = name;
  trace().place("hbm");
  builder_.add_thread("python");
  builder_.add_stream("stream 0", StreamRole::compute);
}

Tensor Tape::permanent(std::string_view label, const Shape& shape, DataType type, StorageKind kind,
                       std::string_view place) {
  Tensor t;
  t.shape = shape;
  t.strides = contiguous_strides(shape);
  t.type = type;
  const StorageId id = builder_.add_storage(checked_bytes(label, shape, type), kind, place, label, true);
  trace().storages[id].shape = trace().shapes.intern(shape);
  trace().storages[id].pinned = place != "hbm";
  t.storage = std::make_shared<LiveStorage>(*this, id, true);
  return t;
}

Parameter& Tape::parameter(const std::string& name, const Shape& shape, DataType type, bool trained) {
  parameters_.push_back(std::make_unique<Parameter>());
  Parameter& p = *parameters_.back();
  p.name = name;
  if (parameters_are_gathered) {
    p.value.shape = shape;
    p.value.strides = contiguous_strides(shape);
    p.value.type = type;
  } else {
    p.value = permanent(name, shape, type, StorageKind::parameter);
  }
  if (!trained) return p;
  p.value.function = std::make_shared<GradientFunction>();
  p.value.function->sequence = std::numeric_limits<std::uint64_t>::max();  // runs as soon as it is ready
  p.value.function->leaf = &p;
  p.value.function->results.push_back({shape, type});
  return p;
}

void Tape::mark(std::string_view name) {
  Op op;
  op.kind = OpKind::mark;
  op.origin = Origin::modelled;
  op.phase = phase;
  op.name = trace().strings.intern(name);
  builder_.append(op);
}

void Tape::begin_step(std::string_view name) {
  assert(trace().steps.empty());
  trace().steps.push_back({std::string(name), static_cast<OpId>(trace().ops.size()), 0});
  mark(name);
}

Trace Tape::finish() && {
  assert(!trace().steps.empty());
  Trace& t = trace();
  finished_ = true;  // what the program still holds at its end stays alive: no `free`
  t.steps.back().last = static_cast<OpId>(t.ops.size());
  t.knowledge.allocations = t.knowledge.dataflow = t.knowledge.modules = t.knowledge.shapes = true;
  return std::move(builder_).finish();
}

Tensor Tape::make(std::string_view label, const Shape& shape, DataType type, Shape strides) {
  return make_at("hbm", 0, label, shape, type, std::move(strides));
}

Tensor Tape::make_at(std::string_view place, std::uint16_t stream, std::string_view label, const Shape& shape,
                     DataType type, Shape strides) {
  const Bytes bytes = checked_bytes(label, shape, type);
  const bool forward = phase == Phase::forward || phase == Phase::recompute;
  const StorageId id =
      builder_.add_storage(bytes, forward ? StorageKind::activation : StorageKind::workspace, place, label);
  Storage& storage = trace().storages[id];
  storage.shape = trace().shapes.intern(shape.empty() ? Shape{1} : shape);
  storage.stream = stream;
  storage.pinned = place != "hbm";
  if (lives != nullptr) {
    note_change(id, true);
  } else {
    Op op = common(OpKind::alloc, "");
    op.target = id;
    op.stream = stream;
    builder_.append(op);
  }
  Tensor t;
  t.shape = shape;
  t.strides = strides.empty() ? contiguous_strides(shape) : std::move(strides);
  t.type = type;
  t.storage = std::make_shared<LiveStorage>(*this, id, false);
  return t;
}

void Tape::note_change(StorageId storage, bool begins) {
  lives->push_back({storage, begins});
  ++allocator_calls_;
}

void Tape::free(StorageId storage) {
  if (finished_) return;
  if (lives != nullptr) return note_change(storage, false);
  Op op = common(OpKind::free, "");
  op.target = storage;
  op.stream = trace().storages[storage].stream;
  builder_.append(op);
}

void Tape::unreferenced(StorageId storage) {
  if (finished_ || phase != Phase::forward || trace().ops.empty()) return;
  trace().storages[storage].last_referenced = static_cast<OpId>(trace().ops.size() - 1);
}

Tensor Tape::view(const Tensor& tensor, const Shape& shape, const Shape& strides) {
  ++calls_;
  Tensor t = tensor.detached();
  t.shape = shape;
  t.strides = strides;
  return t;
}

Op Tape::common(OpKind kind, std::string_view name) {
  Op op;
  op.kind = kind;
  op.phase = phase;
  op.origin = Origin::modelled;
  op.module = module;
  op.name = op.operator_name = trace().strings.intern(name);
  op.dispatch = dispatch;
  return op;
}

void Tape::collect_uses(Refs reads, Refs writes) {
  seen_.resize(trace().storages.size(), 0);
  for (const Access access : {Access::read, Access::write}) {
    ++collection_;
    for (const Tensor* t : access == Access::read ? reads : writes) {
      if (!*t || seen_[t->storage->id()] == collection_) continue;
      seen_[t->storage->id()] = collection_;
      uses_.push_back({t->storage->id(), access == Access::read ? TraceBuilder::kLatest : 0, access});
    }
  }
  if (uses_.size() > kMostUsesOfAnOp)
    throw UsageError(
        fmt::format("One operator would use {} storages; expected no more than {}. The model has too many "
                    "parameters for an optimizer that takes them as one list.",
                    uses_.size(), kMostUsesOfAnOp));
}

OpId Tape::append(Op op, std::string_view name, Refs reads, Refs writes) {
  const Op fields = common(op.kind, name);
  op.phase = fields.phase;
  op.origin = fields.origin;
  op.module = fields.module;
  op.name = op.operator_name = fields.name;
  op.dispatch = fields.dispatch;
  if (runs_on_device(op.kind)) {
    op.framework_calls = dispatch == Dispatch::eager ? static_cast<std::uint16_t>(std::min(calls_ + 1, 0xffff)) : 0;
    calls_ = 0;
  }
  // What a region's second run repeats: kernels, and numbers that the host reads.
  const bool counted = op.kind == OpKind::kernel || (op.kind == OpKind::copy && op.wait_for == WaitFor::own_op);
  if (counted && phase == Phase::recompute && repeated && repeated_count < repeated->size())
    op.source = (*repeated)[repeated_count++];
  uses_.clear();
  if (lives == nullptr) collect_uses(reads, writes);
  const OpId id = builder_.append(op, uses_);
  if (allocator_calls_ > 0) allocator_calls.push_back({id, std::exchange(allocator_calls_, 0)});
  if (counted && noted) noted->push_back(id);
  return id;
}

OpId Tape::kernel(const TapeKernel& work, Refs reads, Refs writes) {
  Op op;
  op.kind = OpKind::kernel;
  op.operator_class = work.operator_class;
  op.data_type = work.type;
  op.flops = work.flops;
  op.shape = trace().shapes.intern(work.shape);
  op.kernels = static_cast<std::uint16_t>(std::min(work.kernels, 0xffff));
  op.bytes = work.bytes;
  if (work.bytes < 0) {
    op.bytes = 0;
    for (const Tensor* t : reads) op.bytes += *t ? t->touched_bytes() : 0;
    for (const Tensor* t : writes) op.bytes += *t ? t->touched_bytes() : 0;
  }
  return append(op, work.name, reads, writes);
}

OpId Tape::kernel(const TapeKernel& work, std::initializer_list<const Tensor*> reads,
                  std::initializer_list<const Tensor*> writes) {
  return kernel(work, Refs(reads.begin(), reads.size()), Refs(writes.begin(), writes.size()));
}

// --- history

SavedTensor Tape::pack(const Tensor& tensor) {
  SavedTensor saved;
  if (!tensor) return saved;
  if (!hooks.empty()) saved.packed = hooks.back()->pack(*this, tensor);
  if (saved.packed) return saved;
  saved.tensor = tensor.detached();
  saved.tensor.storage = tensor.storage->kept();
  return saved;
}

Tape::Function Tape::record(Refs inputs, Tensors saved, GradientFunction::Apply apply) {
  if (!gradients_enabled) return nullptr;
  const auto needed = [](const Tensor* t) { return t->requires_gradient(); };
  if (std::none_of(inputs.begin(), inputs.end(), needed)) return nullptr;
  auto function = std::make_shared<GradientFunction>();
  function->sequence = next_sequence_++;
  function->module = module;
  function->apply = std::move(apply);
  for (const Tensor* t : inputs) function->edges.push_back({t->function, t->output});
  for (const Tensor& t : saved) function->saved.push_back(pack(t));
  return function;
}

Tape::Function Tape::record(std::initializer_list<const Tensor*> inputs, Tensors saved, GradientFunction::Apply apply) {
  return record(Refs(inputs.begin(), inputs.size()), std::move(saved), std::move(apply));
}

void Tape::result(const Function& function, Tensor& output) {
  if (!function) return;
  output.function = function;
  output.output = static_cast<int>(function->results.size());
  function->results.push_back({output.shape, output.type});
}

void Tape::save(const Function& function, const Tensor& tensor) {
  if (function) function->saved.push_back(pack(tensor));
}

Tensor GradientFunction::take_saved(Tape& tape, std::size_t index) {
  SavedTensor& s = saved[index];
  return s.packed ? s.packed->unpack(tape) : s.tensor;
}

// --- scopes

ModuleScope::ModuleScope(Tape& tape, std::string_view name)
    : tape_(tape), length_(tape.module_path.size()), before_(tape.module) {
  if (length_ != 0) tape.module_path += '.';
  tape.module_path += name;
  tape.module = tape.trace().strings.intern(tape.module_path);
}

ModuleScope::~ModuleScope() {
  tape_.module_path.resize(length_);
  tape_.module = before_;
}

AutocastScope::~AutocastScope() {
  tape_.autocast.reset();
  auto casts = std::move(tape_.cast_cache);
  tape_.cast_cache.clear();
  for (auto& [storage, tensor] : casts) tensor.reset();
}

}  // namespace memwall
