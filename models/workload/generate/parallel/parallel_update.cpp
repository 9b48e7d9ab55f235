#include "models/workload/generate/parallel/parallel_update.h"

#include <algorithm>

#include "models/workload/generate/gradient_scaler.h"
#include "models/workload/generate/multi_tensor.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/optimizer_step.h"

namespace memwall {
namespace {

Tensors values_of(const std::vector<Parameter*>& parameters) {
  Tensors list;
  for (const Parameter* p : parameters) list.push_back(p->value.detached());
  return list;
}

const Tensor& gradient_of(const Parameter& p) { return p.main_gradient ? p.main_gradient : p.gradient; }

bool is_low(const Tensor& value) { return bytes_of(value.type) < bytes_of(DataType::fp32); }

Bytes all_bytes(const Tensors& tensors) {
  Bytes sum = 0;
  for (const Tensor& t : tensors) sum += t.bytes();
  return sum;
}

std::int64_t elements_of(const Tensors& tensors, DataType type) {
  std::int64_t sum = 0;
  for (const Tensor& t : tensors) sum += t.type == type ? t.elements() : 0;
  return sum;
}

}  // namespace

ParallelUpdate::ParallelUpdate(Tape& tape, const ParallelJob& job, RankGroups groups, GradientBuffers& gradients,
                               std::vector<Parameter*> parameters)
    : tape_(tape), job_(job), groups_(groups), gradients_(gradients), parameters_(std::move(parameters)) {
  if (job.recipe.optimizer == OptimizerKind::none) return;
  if (updates_each_parameter(job.recipe)) {
    make_optimizer_states(tape, job.recipe);
    return;
  }
  const bool sharded = gradients.is_sharded();
  const std::int64_t parts = job.recipe.parallel.distributed_optimizer || sharded ? groups_.data.ranks() : 1;
  const std::int64_t share = (gradients.elements() + parts - 1) / parts;
  const auto state = [&](const char* name) {
    return tape.permanent(name, {share}, DataType::fp32, StorageKind::optimizer_state);
  };
  if (sharded)
    main_ = tape.permanent("parameter shares", {share}, DataType::fp32, StorageKind::parameter);
  else if (is_low(parameters_.front()->value))
    main_ = state("main parameters");
  if (sharded) gradients.set_shares(main_);
  // DeepSpeed's are made before the first step (initialize_optimizer_states), others by that step.
  const bool ahead = job.recipe.parallel.framework == ParallelFramework::deepspeed;
  first_ = state(ahead ? "exp_avg of a partition" : "exp_avg");
  second_ = state(ahead ? "exp_avg_sq of a partition" : "exp_avg_sq");
}

std::uint32_t ParallelUpdate::meeting(std::uint32_t number) const {
  return groups_.first_rendezvous == kNoRendezvous ? kNoRendezvous : groups_.first_rendezvous + number;
}

// Gradients of parameters that saw this rank's tokens alone, in one tensor (_allreduce_layernorm_grads).
void ParallelUpdate::sum_by_tokens() {
  if (gradients_.sums_by_tokens()) return;
  Tensors flat;
  std::vector<const Tensor*> gradients;
  for (const Parameter* p : parameters_) {
    if (!p->by_tokens || !gradient_of(*p)) continue;
    gradients.push_back(&gradient_of(*p));
    flat.push_back(tape_.view(*gradients.back(), {gradients.back()->elements()}, {1}));
  }
  if (flat.empty()) return;
  const Tensor all = cat(tape_, flat, 0);
  groups_.tensor.all_reduce(all);
  TapeKernel work;
  work.name = "aten::copy_";
  work.operator_class = OperatorClass::memory;
  work.type = all.type;
  for (const Tensor* gradient : gradients) {
    work.shape = {gradient->elements()};
    work.bytes = 2 * gradient->bytes();
    tape_.kernel(work, {&all}, {gradient});
  }
}

void ParallelUpdate::sum_tied() {
  if (!groups_.tied) return;
  for (const Parameter* p : parameters_)
    if ((p->name == "words.weight" || p->name == "head.weight") && gradient_of(*p))
      groups_.tied->all_reduce(gradient_of(*p), meeting(0));
}

// fp16: gradients are divided by the scale and checked; all ranks agree, and the host reads whether to go on.
void ParallelUpdate::check_scaled() {
  if (!GradientScaler::scales(job_.recipe)) return;
  const Tensors gradients = gradients_.for_update();
  const Tensor found = fill(tape_, "aten::zeros", {1}, DataType::fp32);
  const Tensors flag{found};
  list_kernel(tape_, {"aten::_amp_foreach_non_finite_check_and_unscale_"}, {&gradients}, {&gradients, &flag});
  groups_.world.all_reduce(found, meeting(1));
  read_on_host(tape_, found);
}

// Of a buffer in 16 bits the part that this rank updates is cast up first (_copy_model_grads_to_main_grads).
void ParallelUpdate::cast_up() {
  if (!gradients_.in_buffers() || gradients_.is_sharded() || !main_) return;
  const Tensors parts = gradients_.for_update();
  if (!is_low(parts.front())) return;
  for (const Tensor& part : parts) {
    cast_.push_back(tape_.make("aten::_to_copy", part.shape, DataType::fp32));
    kernel_into(tape_, "aten::_to_copy", OperatorClass::memory, {&part}, cast_.back());
  }
}

// clip_grad_norm_fp32
void ParallelUpdate::clip() {
  if (!job_.recipe.parallel.clip_gradients) return;
  const Tensors gradients = to_update();
  const Tensor norm = tape_.make("megatron::multi_tensor_l2norm", {1}, DataType::fp32);
  const Tensors result{norm};
  list_kernel(tape_, {.name = "megatron::multi_tensor_l2norm", .flops_per_element = 2}, {&gradients}, {&result});
  groups_.world.all_reduce(norm, meeting(2));
  if (!gradients_.in_buffers()) read_on_host(tape_, norm);  // before kernels took the norm from the device
  list_kernel(tape_, {.name = "megatron::multi_tensor_scale", .lists = 2}, {&gradients}, {&gradients});
}

// torch.nn.utils.get_total_norm and clip_grads_with_norm_: the norms of all gradients are one tensor, which DTensor
// sums over each dimension of the mesh that the gradients are divided over, here that of ranks that share layers.
void ParallelUpdate::clip_each() {
  if (!job_.recipe.parallel.clip_gradients) return;
  const Tensors gradients = trained_gradients(tape_);
  const Tensors norms{tape_.make("aten::_foreach_norm", {static_cast<std::int64_t>(gradients.size())}, DataType::fp32)};
  list_kernel(tape_, {.name = "aten::_foreach_norm", .flops_per_element = 2}, {&gradients}, {&norms});
  groups_.tensor.all_reduce(norms.front());
  const Tensors total{tape_.make("aten::linalg_vector_norm", {1}, DataType::fp32)};
  kernel_into(tape_, "aten::linalg_vector_norm", OperatorClass::reduction, {&norms.front()}, total.front());
  list_kernel(tape_, {.name = "aten::_foreach_mul_", .lists = 2}, {&gradients, &total}, {&gradients});
}

// As a program on one GPU does it (optimizer_step.h).
void ParallelUpdate::update_each() {
  clip_each();
  GradientScaler scaler(tape_, {});
  optimizer_step(tape_, job_.recipe, scaler);
  zero_gradients(tape_, job_.recipe);
}

// Of stage 1 what this rank updates is one tensor before it is cast up (flatten_dense_tensors_aligned).
Tensors ParallelUpdate::flattened(const Tensors& gradients) {
  Tensors flat{tape_.make("deepspeed::flat_gradients", main_.shape, gradients.front().type)};
  TapeKernel work;
  work.name = "aten::cat";
  work.operator_class = OperatorClass::memory;
  work.type = gradients.front().type;
  work.shape = {main_.elements()};
  work.bytes = 2 * flat.front().bytes();
  std::vector<const Tensor*> reads;
  for (const Tensor& g : gradients) reads.push_back(&g);
  const Tensor* const writes[] = {&flat.front()};
  tape_.kernel(work, reads, writes);
  return flat;
}

void ParallelUpdate::update() {
  Tensors gradients = to_update();
  // Gradients in 16 bits: a copy in fp32 of what this rank updates. DeepSpeed's FP16_Optimizer casts all of them first,
  // then flattens what it has cast.
  if (!gradients_.in_buffers() && main_) {
    const ModelParallel& p = job_.recipe.parallel;
    if (p.framework == ParallelFramework::deepspeed && !p.distributed_optimizer) {
      const Tensors casts{tape_.make("aten::_to_copy", main_.shape, DataType::fp32)};
      list_kernel(
          tape_,
          {.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 2},
          {&gradients}, {&casts});
      gradients = casts;
    }
    if (p.framework == ParallelFramework::deepspeed && p.distributed_optimizer) {
      gradients = flattened(gradients);
      for (Parameter* parameter : parameters_) parameter->gradient.reset();
    }
    const Tensor copy = tape_.make("aten::_to_copy", main_.shape, DataType::fp32);
    const Tensors one{copy};
    list_kernel(
        tape_,
        {.name = "aten::_foreach_copy_", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 2},
        {&gradients}, {&one});
    gradients = one;
  }
  const Tensors values = values_of(parameters_);
  const Tensors held = main_ ? Tensors{main_} : values;
  const Tensors first{first_}, second{second_};
  const bool decay = job_.recipe.optimizer == OptimizerKind::adamw;
  // Two moments, the corrections, the step, the decay: 16 operations per element, as of optimizer_step.cpp.
  list_kernel(tape_,
              {.name = decay ? "aten::_fused_adamw_" : "aten::_fused_adam_", .flops_per_element = 16, .lists = 4},
              {&first, &gradients, &second, &held}, {&first, &second, &held});
  if (!main_ || gradients_.is_sharded()) return;  // shares are cast where they are gathered
  cast_.clear();
  write_parameters(values);
}

// This rank's share of the parameters, cast. Those in fp8 need scales, on which all agree who share the optimizer
// (transformer_engine/pytorch/tensor/utils.py, cast_master_weights_to_fp8): with current scaling of what is cast.
void ParallelUpdate::write_parameters(const Tensors& values) {
  std::int64_t elements = 0;
  for (const Tensor& v : values) elements += v.elements();
  const std::int64_t in_fp8 = elements_of(values, DataType::fp8);
  const double share = static_cast<double>(main_.elements()) / static_cast<double>(elements);
  const auto tensors =
      std::count_if(values.begin(), values.end(), [](const Tensor& v) { return v.type == DataType::fp8; });
  if (in_fp8 > 0) {
    const Tensor largest = tape_.make("transformer_engine::amax", {tensors}, DataType::fp32);
    if (job_.recipe.fp8_recipe == Fp8Recipe::tensorwise) {
      TapeKernel work;
      work.name = "transformer_engine::multi_tensor_amax";
      work.operator_class = OperatorClass::reduction;
      work.type = DataType::fp32;
      work.shape = {
          tensors, std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(in_fp8)) / tensors)};
      work.bytes = static_cast<Bytes>(share * static_cast<double>(in_fp8)) * bytes_of(DataType::fp32);
      tape_.kernel(work, {&main_}, {&largest});
    }
    groups_.data.all_reduce(largest);
  }
  TapeKernel work;
  work.name = "megatron::multi_tensor_copy";
  work.operator_class = OperatorClass::memory;
  work.type = values.front().type;
  work.shape = {main_.elements()};
  work.bytes =
      main_.elements() * bytes_of(DataType::fp32) + static_cast<Bytes>(share * static_cast<double>(all_bytes(values)));
  std::vector<const Tensor*> writes;
  for (const Tensor& v : values) writes.push_back(&v);
  const Tensor* const reads[] = {&main_};
  tape_.kernel(work, reads, writes);
}

void ParallelUpdate::gather() {
  const Tensors values = values_of(parameters_);
  std::vector<const Tensor*> all;
  Bytes bytes = 0;
  for (const Tensor& v : values) {
    all.push_back(&v);
    bytes += v.bytes();
  }
  groups_.data.start({CollectiveKind::all_gather, "c10d::_allgather_base_", bytes, values.front().type}, all, all);
  groups_.data.wait();
}

void ParallelUpdate::run() {
  tape_.phase = Phase::backward;
  gradients_.finish();
  sum_by_tokens();
  sum_tied();
  tape_.phase = Phase::optimizer;
  if (job_.recipe.optimizer == OptimizerKind::none) return;
  if (updates_each_parameter(job_.recipe)) return update_each();
  check_scaled();
  cast_up();
  clip();
  update();
  const ModelParallel& p = job_.recipe.parallel;
  if (p.distributed_optimizer && groups_.data.ranks() > 1 && !p.overlap_param_gather) gather();
  // Megatron-LM's train_step: all ranks agree that the update was made.
  if (groups_.world.ranks() == 1 || p.framework != ParallelFramework::megatron) return;
  const Tensor success = fill(tape_, "aten::ones", {1}, DataType::fp32);
  groups_.world.all_reduce(success, meeting(3));
  read_on_host(tape_, success);
}

}  // namespace memwall
