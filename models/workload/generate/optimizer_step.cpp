#include "models/workload/generate/optimizer_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/generate/multi_tensor.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/optimizer_8bit.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Parameters = std::vector<Parameter*>;

bool has_master(const Recipe& recipe) {
  return has_master_parameters(recipe) &&
         (recipe.precision == Precision::fp16 || recipe.precision == Precision::bf16 ||
          recipe.precision == Precision::fp8 || recipe.precision == Precision::fp8_transformer_engine);
}

Parameters trained(Tape& tape) {
  Parameters list;
  for (const auto& p : tape.parameters())
    if (p->value.function) list.push_back(p.get());
  return list;
}

// Which of Parameter::states is what; -1 = the optimizer has none.
struct StateOrder {
  int master = -1, first = -1, second = -1, step = -1;
  int count = 0;
};

StateOrder state_order(const Recipe& recipe) {
  StateOrder order;
  if (has_master(recipe)) order.master = order.count++;
  if (recipe.optimizer == OptimizerKind::none) return order;
  order.first = order.count++;
  if (recipe.optimizer == OptimizerKind::sgd) return order;
  order.second = order.count++;
  if (recipe.optimizer_kernels == OptimizerKernels::fused) order.step = order.count++;  // else a number on the host
  return order;
}

void make_states(Tape& tape, const Recipe& recipe, Parameter& p) {
  const StateOrder order = state_order(recipe);
  const DataType type = has_master(recipe) ? DataType::fp32 : p.value.type;
  const auto state = [&](const char* name, const Shape& shape, DataType t) {
    p.states.push_back(tape.permanent(p.name + "." + name, shape, t, StorageKind::optimizer_state));
  };
  if (order.master >= 0) state("main", p.value.shape, DataType::fp32);
  if (order.first >= 0) state(order.second >= 0 ? "exp_avg" : "momentum_buffer", p.value.shape, type);
  if (order.second >= 0) state("exp_avg_sq", p.value.shape, type);
  if (order.step >= 0) state("step", {}, DataType::fp32);
}

// What one update works on, list by list.
struct Lists {
  Tensors values, gradients, first, second, steps;
};

// CPython empties a list from its end.
void drop_from_the_end(Tensors& list) {
  while (!list.empty()) list.pop_back();
}

// What adam_foreach() makes, under the names of its variables: they go when the next group of parameters takes their
// names, or the function ends.
struct ForeachTemporaries {
  Tensors roots, denominators;
};

// torch/optim/adam.py, _multi_tensor_adam: the counters of steps are on the host, one by one.
void adam_foreach(Tape& tape, const Recipe& recipe, const Lists& l, ForeachTemporaries& kept) {
  const bool decay = recipe.optimizer == OptimizerKind::adamw;
  tape.count_calls(static_cast<int>(l.values.size()) + 1);  // each counter's add_, and the 1 as a tensor
  if (decay) list_kernel(tape, {"aten::_foreach_mul_"}, {&l.values}, {&l.values});
  list_kernel(tape, {.name = "aten::_foreach_lerp_", .lists = 2}, {&l.first, &l.gradients}, {&l.first});
  list_kernel(tape, {"aten::_foreach_mul_"}, {&l.second}, {&l.second});
  list_kernel(tape, {.name = "aten::_foreach_addcmul_", .lists = 3}, {&l.second, &l.gradients, &l.gradients},
              {&l.second});
  Tensors roots;
  for (const Tensor& t : l.second) roots.push_back(tape.make("aten::_foreach_sqrt", t.shape, t.type));
  tape.count_calls(2 * static_cast<int>(l.values.size()));  // the counters are read for the bias corrections
  list_kernel(tape, {.name = "aten::_foreach_sqrt", .lists = 2}, {&l.second}, {&roots});
  drop_from_the_end(kept.roots);
  kept.roots = std::move(roots);
  list_kernel(tape, {"aten::_foreach_div_"}, {&kept.roots}, {&kept.roots});
  const bool copies = recipe.optimizer_kernels == OptimizerKernels::foreach_with_copies;
  if (copies) {
    Tensors sums;
    for (const Tensor& t : kept.roots) sums.push_back(tape.make("aten::_foreach_add", t.shape, t.type));
    list_kernel(tape, {.name = "aten::_foreach_add", .lists = 2}, {&kept.roots}, {&sums});
    drop_from_the_end(kept.denominators);
    kept.denominators = std::move(sums);
  } else {
    list_kernel(tape, {"aten::_foreach_add_"}, {&kept.roots}, {&kept.roots});
  }
  const Tensors& denominators = copies ? kept.denominators : kept.roots;
  list_kernel(tape, {.name = "aten::_foreach_addcdiv_", .lists = 3}, {&l.values, &l.first, &denominators}, {&l.values});
}

// A group for each type of data, in the order in which they come (_group_tensors_by_device_and_dtype).
std::vector<Lists> groups_by_type(const Lists& all) {
  std::vector<Lists> groups;
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    const auto same = [&](const Lists& group) { return group.values.front().type == all.values[i].type; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.emplace(groups.end());
    group->values.push_back(all.values[i]);
    group->gradients.push_back(all.gradients[i]);
    group->first.push_back(all.first[i]);
    group->second.push_back(all.second[i]);
  }
  return groups;
}

void adam_foreach_by_type(Tape& tape, const Recipe& recipe, const Lists& all) {
  ForeachTemporaries kept;
  for (const Lists& group : groups_by_type(all)) adam_foreach(tape, recipe, group, kept);
  drop_from_the_end(kept.roots);
  drop_from_the_end(kept.denominators);
}

// _fused_adam: all in one, the counters on the device. `scaling`: the two numbers of a scaler, or nothing; with them
// the unscaled gradients are written back, and the counters corrected where there was an infinity.
void adam_fused(Tape& tape, bool decay, const Lists& l, const Tensors& scaling) {
  list_kernel(tape, {"aten::_foreach_add_"}, {&l.steps}, {&l.steps});
  // Two moments, the corrections, the step, the decay: 16 operations per element.
  const ListWork work{
      .name = decay ? "aten::_fused_adamw_" : "aten::_fused_adam_", .flops_per_element = 16, .lists = 5};
  if (scaling.empty()) {
    list_kernel(tape, work, {&l.values, &l.gradients, &l.first, &l.second, &l.steps}, {&l.values, &l.first, &l.second});
    return;
  }
  list_kernel(tape, work, {&l.values, &l.gradients, &l.first, &l.second, &l.steps, &scaling},
              {&l.values, &l.gradients, &l.first, &l.second});
  const Tensors found(l.steps.size(), scaling.front());
  list_kernel(tape, {.name = "aten::_foreach_sub_", .lists = 2}, {&l.steps, &found}, {&l.steps});
}

void sgd_foreach(Tape& tape, const Lists& l) {
  list_kernel(tape, {"aten::_foreach_mul_"}, {&l.first}, {&l.first});
  list_kernel(tape, {.name = "aten::_foreach_add_", .lists = 2}, {&l.first, &l.gradients}, {&l.first});
  list_kernel(tape, {.name = "aten::_foreach_add_", .lists = 2}, {&l.values, &l.first}, {&l.values});
}

void sgd_fused(Tape& tape, const Lists& l, const Tensors& scaling) {
  const ListWork work{.name = "aten::_fused_sgd_", .flops_per_element = 4, .lists = 3};
  if (scaling.empty())
    list_kernel(tape, work, {&l.values, &l.gradients, &l.first}, {&l.values, &l.first});
  else
    list_kernel(tape, work, {&l.values, &l.gradients, &l.first, &scaling}, {&l.values, &l.gradients, &l.first});
}

void update(Tape& tape, const Recipe& recipe, const Lists& lists, GradientScaler& scaler) {
  const bool decay = recipe.optimizer == OptimizerKind::adamw, sgd = recipe.optimizer == OptimizerKind::sgd;
  if (recipe.optimizer_kernels == OptimizerKernels::fused) {
    const Tensors scaling = scaler.enabled() ? scaler.check(lists.gradients) : Tensors();
    return sgd ? sgd_fused(tape, lists, scaling) : adam_fused(tape, decay, lists, scaling);
  }
  if (scaler.enabled()) scaler.unscale(lists.gradients);
  sgd ? sgd_foreach(tape, lists) : adam_foreach_by_type(tape, recipe, lists);
}

Lists lists_of(Tape& tape, const Recipe& recipe, const Parameters& parameters) {
  const StateOrder order = state_order(recipe);
  Lists lists;
  const auto add = [](Tensors& list, const Parameter& p, int state) {
    if (state >= 0) list.push_back(p.states[static_cast<std::size_t>(state)]);
  };
  for (const Parameter* p : parameters) {
    if (order.master < 0) lists.values.push_back(p->value.detached());
    add(lists.values, *p, order.master);
    // Gradients of main parameters are copies in fp32 (Megatron-LM's float16 optimizer).
    lists.gradients.push_back(order.master < 0 ? p->gradient : cast(tape, p->gradient.detached(), DataType::fp32));
    add(lists.first, *p, order.first);
    add(lists.second, *p, order.second);
    add(lists.steps, *p, order.step);
  }
  return lists;
}

// The 16-bit parameters take the values of the main ones.
void copy_main_values(Tape& tape, const Parameters& parameters, const Lists& lists) {
  Tensors low;
  for (const Parameter* p : parameters) low.push_back(p->value.detached());
  const ListWork work{
      .name = "aten::_foreach_copy_", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 2};
  list_kernel(tape, work, {&lists.values}, {&low});
}

void step(Tape& tape, const Recipe& recipe, const Parameters& parameters, GradientScaler& scaler) {
  if (parameters.empty() || recipe.optimizer == OptimizerKind::none) return;
  if (recipe.optimizer == OptimizerKind::adamw_8bit) {
    if (scaler.enabled()) scaler.unscale(trained_gradients(tape));
    for (Parameter* p : parameters) update_8bit(tape, *p);
    return;
  }
  const Lists lists = lists_of(tape, recipe, parameters);
  update(tape, recipe, lists, scaler);
  if (has_master(recipe)) copy_main_values(tape, parameters, lists);
}

void require_optimizer_combination(const Recipe& recipe) {
  if (recipe.optimizer_in_backward && recipe.accumulation > 1)
    throw UsageError(
        "recipe.optimizer_in_backward: a gradient is used up as soon as it is there, so recipe.accumulation must be "
        "1.");
  if (recipe.optimizer_in_backward && GradientScaler::scales(recipe))
    throw UsageError(
        "recipe.optimizer_in_backward with gradients that are scaled (precision amp_fp16, fp16) is not implemented.");
  if (recipe.optimizer_in_backward && !recipe.set_to_none)
    throw UsageError("recipe.optimizer_in_backward frees gradients; expected recipe.set_to_none: true.");
  if (recipe.optimizer == OptimizerKind::adamw_8bit && has_master_parameters(recipe))
    throw UsageError("recipe.master_parameters with recipe.optimizer adamw_8bit is not implemented.");
}

}  // namespace

void make_optimizer_states(Tape& tape, const Recipe& recipe) {
  require_optimizer_combination(recipe);
  Optimizer8bit shared;
  if (recipe.optimizer == OptimizerKind::adamw_8bit) shared = make_optimizer_8bit(tape, recipe);
  for (Parameter* p : trained(tape)) {
    recipe.optimizer == OptimizerKind::adamw_8bit ? make_states_8bit(tape, recipe, *p, shared)
                                                  : make_states(tape, recipe, *p);
    if (!recipe.set_to_none)
      p->gradient = tape.permanent(p->name + ".grad", p->value.shape, p->value.type, StorageKind::gradient);
    if (!recipe.optimizer_in_backward) continue;
    p->accumulated = [&tape, &recipe](Parameter& parameter) {
      const Phase before = tape.phase;
      tape.phase = Phase::optimizer;
      GradientScaler none(tape, {});
      step(tape, recipe, {&parameter}, none);
      parameter.gradient.reset();
      tape.phase = before;
    };
  }
}

void optimizer_step(Tape& tape, const Recipe& recipe, GradientScaler& scaler) {
  if (!recipe.optimizer_in_backward) step(tape, recipe, trained(tape), scaler);
  scaler.adapt();
}

Tensors trained_gradients(Tape& tape) {
  Tensors gradients;
  for (const Parameter* p : trained(tape))
    if (p->gradient) gradients.push_back(p->gradient);
  return gradients;
}

// One kernel for all gradients where the optimizer is fused, else one for each (Optimizer.zero_grad).
void zero_gradients(Tape& tape, const Recipe& recipe) {
  if (recipe.set_to_none) {
    for (Parameter* p : trained(tape)) p->gradient.reset();
    return;
  }
  const Tensors gradients = trained_gradients(tape);
  ListWork work{.name = "aten::_foreach_zero_", .operator_class = OperatorClass::memory, .flops_per_element = 0};
  if (recipe.optimizer_kernels == OptimizerKernels::fused) {
    if (!gradients.empty()) list_kernel(tape, work, {}, {&gradients});
    return;
  }
  work.name = "aten::zero_";
  for (const Tensor& gradient : gradients) {
    const Tensors one{gradient};
    list_kernel(tape, work, {}, {&one});
  }
}

}  // namespace memwall
