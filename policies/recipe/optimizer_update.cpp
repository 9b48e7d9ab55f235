#include "policies/recipe/optimizer_update.h"

#include <cassert>
#include <string>

namespace memwall {

// What one update works on, list by list.
struct UpdateLists {
  TensorList values, gradients, first, second, steps;
};

namespace {

constexpr double kFlopsOfFusedAdam = 16;  // two moments, the corrections, the step, the decay
constexpr double kFlopsOfFusedSgd = 4;
constexpr std::int64_t kBlock = 256;       // of an 8-bit state; bitsandbytes/optim/optimizer.py, since version 0.44
constexpr std::int64_t kMapEntries = 256;  // what a byte can stand for
constexpr std::int64_t kSmallest = 4096;   // min_8bit_size
constexpr std::int64_t kLeastPaged = 100'000;    // get_state_buffer
constexpr std::int64_t kWindow = 2 * (2 << 20);  // bytes: blocks of the driver's, one on its way in and one out
constexpr std::size_t kMoments = 2;

using Lists = UpdateLists;

// Makes states beside one parameter.
class StateMaker {
 public:
  StateMaker(TraceEdit& edit, const UpdatedParameter& p) : edit_(edit), p_(p) {}

  // Of the parameter's shape.
  ListedTensor like_it(const char* what, DataType type, const char* place = nullptr) {
    const Trace& base = edit_.base();
    const ShapeId shape = base.storages[p_.value].shape;
    return of_shape(what, shape == 0 ? Shape{p_.elements} : base.shapes[shape], p_.elements, type, place);
  }
  // Of pages: no state.
  ListedTensor window(const char* label, std::int64_t bytes) {
    const ListedTensor made_one = made(label, {bytes}, bytes, DataType::int8);
    edit_.tables().storages[made_one.storage].kind = StorageKind::workspace;
    return made_one;
  }
  ListedTensor number(const char* what) { return of_shape(what, {}, 1, DataType::fp32); }
  ListedTensor list(const char* what, std::int64_t elements) {
    return of_shape(what, {elements}, elements, DataType::fp32);
  }
  // Not the parameter's own.
  ListedTensor shared(const char* label, std::int64_t elements) {
    return made(label, {elements}, elements, DataType::fp32);
  }

 private:
  ListedTensor of_shape(const char* what, const Shape& shape, std::int64_t elements, DataType type,
                        const char* place = nullptr) {
    const Trace& base = edit_.base();
    return made(base.strings[base.storages[p_.value].label] + "." + what, shape, elements, type, place);
  }

  // `place`: where the parameter is, if not said.
  ListedTensor made(const std::string& label, const Shape& shape, std::int64_t elements, DataType type,
                    const char* other_place = nullptr) {
    Trace& tables = edit_.tables();
    const std::string place = other_place ? other_place : tables.places[tables.storages[p_.value].place];
    const StorageId id =
        edit_.builder().add_storage(elements * bytes_of(type), StorageKind::optimizer_state, place, label, true);
    tables.storages[id].shape = tables.shapes.intern(shape);
    tables.storages[id].pinned = other_place != nullptr;
    return {id, elements, type};
  }

  TraceEdit& edit_;
  const UpdatedParameter& p_;
};

TensorList states_of(StateMaker make, DataType type, bool sgd, bool counter) {
  if (sgd) return {make.like_it("momentum_buffer", type)};
  TensorList states{make.like_it("exp_avg", type), make.like_it("exp_avg_sq", type)};
  if (counter) states.push_back(make.number("step"));
  return states;
}

TensorList states_8bit(StateMaker make, std::int64_t elements, bool paged) {
  const DataType type = elements < kSmallest ? DataType::fp32 : DataType::int8;
  const char* const place = paged && elements >= kLeastPaged ? "host" : nullptr;
  TensorList states{make.like_it("state1", type, place), make.like_it("state2", type, place)};
  if (elements < kSmallest) return states;
  const std::int64_t blocks = (elements + kBlock - 1) / kBlock;
  states.push_back(make.list("absmax1", blocks));
  states.push_back(make.list("absmax2", blocks));
  return states;
}

void sgd_foreach(ListWriter& w, const Lists& l) {
  w.call({"aten::_foreach_mul_"}, {&l.first}, {&l.first});
  w.call({.name = "aten::_foreach_add_", .lists = 2}, {&l.first, &l.gradients}, {&l.first});
  w.call({.name = "aten::_foreach_add_", .lists = 2}, {&l.values, &l.first}, {&l.values});
}

void adam_foreach(ListWriter& w, bool decay, const Lists& l) {
  w.count_calls(l.values.size() + 1);  // the counters, on the host, one by one, and the 1 as a tensor
  if (decay) w.call({"aten::_foreach_mul_"}, {&l.values}, {&l.values});
  w.call({.name = "aten::_foreach_lerp_", .lists = 2}, {&l.first, &l.gradients}, {&l.first});
  w.call({"aten::_foreach_mul_"}, {&l.second}, {&l.second});
  w.call({.name = "aten::_foreach_addcmul_", .lists = 3}, {&l.second, &l.gradients, &l.gradients}, {&l.second});
  TensorList roots;
  for (const ListedTensor& t : l.second) roots.push_back(w.make("aten::_foreach_sqrt", t));
  w.count_calls(2 * l.values.size());  // the counters are read for the bias corrections
  w.call({.name = "aten::_foreach_sqrt", .lists = 2}, {&l.second}, {&roots});
  w.call({"aten::_foreach_div_"}, {&roots}, {&roots});
  w.call({"aten::_foreach_add_"}, {&roots}, {&roots});
  w.call({.name = "aten::_foreach_addcdiv_", .lists = 3}, {&l.values, &l.first, &roots}, {&l.values});
  for (; !roots.empty(); roots.pop_back()) w.drop(roots.back());  // CPython empties a list from its end
}

void sgd_fused(ListWriter& w, const Lists& l) {
  w.call({.name = "aten::_fused_sgd_", .flops_per_element = kFlopsOfFusedSgd, .lists = 3},
         {&l.values, &l.gradients, &l.first}, {&l.values, &l.first});
}

void adam_fused(ListWriter& w, bool decay, const Lists& l) {
  w.call({"aten::_foreach_add_"}, {&l.steps}, {&l.steps});
  w.call({.name = decay ? "aten::_fused_adamw_" : "aten::_fused_adam_",
          .flops_per_element = kFlopsOfFusedAdam,
          .lists = 5},
         {&l.values, &l.gradients, &l.first, &l.second, &l.steps}, {&l.values, &l.first, &l.second});
}

// One tensor, one kernel.
ListCall single(std::string_view name) {
  return {.name = name, .operator_class = OperatorClass::elementwise, .lists = 0};
}

void sgd_for_loop(ListWriter& w, const Lists& l) {
  for (std::size_t i = 0; i < l.values.size(); ++i) {
    const TensorList value{l.values[i]}, gradient{l.gradients[i]}, buffer{l.first[i]};
    w.call(single("aten::mul_"), {&buffer}, {&buffer});
    w.call(single("aten::add_"), {&buffer, &gradient}, {&buffer});
    w.call(single("aten::add_"), {&value, &buffer}, {&value});
  }
}

// The denominator is a variable: it goes once that of the next parameter is there.
void adam_for_loop(ListWriter& w, bool decay, const Lists& l) {
  TensorList before;
  for (std::size_t i = 0; i < l.values.size(); ++i) {
    const TensorList value{l.values[i]}, gradient{l.gradients[i]}, first{l.first[i]}, second{l.second[i]};
    w.count_calls(1);  // the counter, on the host
    if (decay) w.call(single("aten::mul_"), {&value}, {&value});
    w.call(single("aten::lerp_"), {&first, &gradient}, {&first});
    w.call(single("aten::mul_"), {&second}, {&second});
    w.call(single("aten::addcmul_"), {&second, &gradient, &gradient}, {&second});
    w.count_calls(1);  // and is read
    const TensorList root{w.make("aten::sqrt", second.front())};
    w.call(single("aten::sqrt"), {&second}, {&root});
    const TensorList denominator{w.make("aten::div", second.front())};
    w.call(single("aten::div"), {&root}, {&denominator});
    w.drop(root.front());
    w.call(single("aten::add_"), {&denominator}, {&denominator});
    if (!before.empty()) w.drop(before.front());
    w.call(single("aten::addcdiv_"), {&value, &first, &denominator}, {&value});
    before = denominator;
  }
  if (!before.empty()) w.drop(before.front());
}

// A gradient of the parameter's shape, whatever it is stored as.
ListedTensor cast_up(ListWriter& writer, const UpdatedParameter& p) {
  const TensorList from{{p.gradient, p.elements, p.type}};
  const TensorList to{writer.make("aten::_to_copy", {p.value, p.elements, DataType::fp32})};
  writer.call({.name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0},
              {&from}, {&to});
  return to.front();
}

}  // namespace

OptimizerUpdate::OptimizerUpdate(TraceEdit& edit, const std::vector<UpdatedParameter>& parameters, UpdateRule rule,
                                 UpdateKernels kernels, bool paged)
    : rule_(rule), kernels_(kernels), paged_(paged) {
  const bool of_8bit = rule == UpdateRule::adamw_8bit;
  if (of_8bit)
    for (const char* const map : {"qmap1", "qmap2"})
      maps_.push_back(StateMaker(edit, parameters.front()).shared(map, kMapEntries));
  if (paged) {
    window_.push_back(StateMaker(edit, parameters.front()).window("managed_pages", kWindow));
    evictions_ = edit.stream("evictions", StreamRole::copy);
  }
  for (const UpdatedParameter& p : parameters) {
    const StateMaker make(edit, p);
    states_.push_back(of_8bit ? states_8bit(make, p.elements, paged)
                              : states_of(make, p.master == kNoStorage ? p.type : DataType::fp32,
                                          rule == UpdateRule::sgd, kernels == UpdateKernels::fused));
  }
}

void OptimizerUpdate::write(ListWriter& writer, std::span<const UpdatedParameter> parameters, std::size_t first) const {
  assert(first + parameters.size() <= states_.size());
  rule_ == UpdateRule::adamw_8bit ? write_8bit(writer, parameters, first) : write_lists(writer, parameters, first);
}

void OptimizerUpdate::write_lists(ListWriter& writer, std::span<const UpdatedParameter> parameters,
                                  std::size_t first) const {
  Lists lists;
  TensorList low;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const UpdatedParameter& p = parameters[i];
    const ListedTensor value{p.value, p.elements, p.type}, gradient{p.gradient, p.elements, p.type};
    const bool master = p.master != kNoStorage;
    if (master) low.push_back(value);
    lists.values.push_back(master ? ListedTensor{p.master, p.elements, DataType::fp32} : value);
    lists.gradients.push_back(master ? cast_up(writer, p) : gradient);
    TensorList* const of_states[] = {&lists.first, &lists.second, &lists.steps};
    for (std::size_t k = 0; k < states_[first + i].size(); ++k) of_states[k]->push_back(states_[first + i][k]);
  }
  write_kernels(writer, lists);
  if (low.empty()) return;
  writer.call(
      {.name = "aten::_foreach_copy_", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 2},
      {&lists.values}, {&low});
  for (const ListedTensor& gradient : lists.gradients) writer.drop(gradient);
}

void OptimizerUpdate::write_kernels(ListWriter& writer, const Lists& lists) const {
  const bool sgd = rule_ == UpdateRule::sgd, decay = rule_ == UpdateRule::adamw;
  switch (kernels_) {
    case UpdateKernels::foreach:
      return sgd ? sgd_foreach(writer, lists) : adam_foreach(writer, decay, lists);
    case UpdateKernels::fused:
      return sgd ? sgd_fused(writer, lists) : adam_fused(writer, decay, lists);
    case UpdateKernels::for_loop:
      return sgd ? sgd_for_loop(writer, lists) : adam_for_loop(writer, decay, lists);
  }
}

void OptimizerUpdate::write_8bit(ListWriter& writer, std::span<const UpdatedParameter> parameters,
                                 std::size_t first) const {
  const TensorList no_maps;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const UpdatedParameter& p = parameters[i];
    const TensorList value{{p.value, p.elements, p.type}}, gradient{{p.gradient, p.elements, p.type}};
    const bool small = p.elements < kSmallest;
    if (paged_ && p.elements >= kLeastPaged) {
      write_paged(writer, value, gradient, states_[first + i]);
      continue;
    }
    writer.call(
        {.name = small ? "bitsandbytes::optimizer_update_32bit" : "bitsandbytes::optimizer_update_8bit_blockwise",
         .flops_per_element = kFlopsOfFusedAdam,
         .lists = 0},
        {&value, &gradient, &states_[first + i], small ? &no_maps : &maps_}, {&value, &states_[first + i]});
    writer.synchronize();
  }
}

// The moments come in before the kernel, and leave beside the prefetches of the next parameter's.
void OptimizerUpdate::write_paged(ListWriter& writer, const TensorList& value, const TensorList& gradient,
                                  const TensorList& states) const {
  const ListedTensor& window = window_.front();
  for (std::size_t i = 0; i < kMoments; ++i) writer.prefetch(0, states[i], window, states[i]);
  const TensorList factors(states.begin() + kMoments, states.end());
  Bytes bytes = 0;
  for (const TensorList* list : {&value, &states})
    for (const ListedTensor& t : *list) bytes += 2 * t.elements * bytes_of(t.type);
  bytes += gradient.front().elements * bytes_of(gradient.front().type);
  writer.call({.name = "bitsandbytes::optimizer_update_8bit_blockwise",
               .flops_per_element = kFlopsOfFusedAdam,
               .lists = 0,
               .bytes = bytes},
              {&value, &gradient, &factors, &maps_, &window_}, {&value, &factors, &window_});
  writer.let_follow(evictions_);
  for (std::size_t i = 0; i < kMoments; ++i) writer.prefetch(evictions_, window, states[i], states[i]);
  writer.synchronize(WaitFor::stream);  // not for what the driver evicts
}

}  // namespace memwall
