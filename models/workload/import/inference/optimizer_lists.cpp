#include "models/workload/import/inference/optimizer_lists.h"

#include <algorithm>

#include "models/workload/import/timed/name_text.h"

namespace memwall {

OptimizerLists::OptimizerLists(const TimedCapture& capture, ProfileFacts& facts, TensorTable& table,
                               InputSearch& search)
    : c_(capture), facts_(facts), table_(table), search_(search) {
  for (std::uint32_t k = 0; k < c_.operators.size(); ++k)
    if (facts_.on_device(k) && (is_list_operator(k) || is_single_operator(k))) list_operators_.push_back(k);
}

bool OptimizerLists::is_single_operator(std::uint32_t op) const {
  const std::uint32_t around = c_.operators[op].parent;
  return facts_.in_optimizer(op) && facts_.kind(op) == FrameKind::operation && around != kNoIndex &&
         facts_.kind(around) == FrameKind::range && facts_.launched(op) > 0 && !is_list_operator(op);
}

bool OptimizerLists::is_list_operator(std::uint32_t op) const {
  const std::string_view name = c_.text(c_.operators[op].name);
  return facts_.in_optimizer(op) && (contains(name, "::_foreach_") || contains(name, "::_fused_"));
}

std::string_view OptimizerLists::plain_name(std::uint32_t op) const {
  std::string_view name = c_.text(c_.operators[op].name);
  return name.substr(name.rfind(':') + 1);
}

std::uint32_t OptimizerLists::next(std::uint32_t op) const {
  const auto after = std::upper_bound(list_operators_.begin(), list_operators_.end(), op);
  return after == list_operators_.end() ? kNoIndex : *after;
}

// An operator on single tensors by the name that it has on lists.
std::string OptimizerLists::list_name(std::uint32_t op) const {
  return is_list_operator(op) ? std::string(plain_name(op)) : "_foreach_" + std::string(plain_name(op));
}

// Those of the shape of the first.
std::size_t OptimizerLists::tensors_of(std::uint32_t op) const {
  std::size_t count = 0;
  const Shape* first = nullptr;
  for (const RecordedArgument& a : facts_.arguments(op)) {
    if (a.list || a.tensors.empty()) continue;
    if (first == nullptr) first = &a.tensors.front();
    count += a.tensors.front() == *first;
  }
  return count;
}

// How many lists it takes, or how many tensors one that works on single ones.
std::size_t OptimizerLists::lists_of(std::uint32_t op) const {
  if (!is_list_operator(op)) return tensors_of(op);
  const auto& arguments = facts_.arguments(op);
  return static_cast<std::size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const RecordedArgument& a) { return a.list; }));
}

// --- roles

std::vector<OptimizerLists::List> OptimizerLists::roles(std::uint32_t op) {
  const std::string name = list_name(op);
  const List parameter{Role::parameter}, gradient{Role::gradient}, made{Role::made};
  const auto state = [](std::uint64_t which) { return List{Role::state, which}; };
  if (name.starts_with("_fused_adam"))
    return {parameter, gradient, state(0), state(1), lists_of(op) > 5 ? state(2) : state(3), state(3)};
  if (name.starts_with("_fused_sgd")) return {parameter, gradient, state(0)};
  if (name == "_foreach_lerp_") return {state(0), gradient};
  if (name == "_foreach_addcmul_") return {state(1), gradient, gradient};
  if (name == "_foreach_addcdiv_") return {parameter, state(0), made};
  if (name == "_foreach_sqrt") return {state(1)};
  if (name == "_foreach_maximum_") return {state(2), state(1)};
  if (name == "_foreach_mul_" && lists_of(op) == 1) return {role_of_scaled(op)};
  if (name == "_foreach_add_" && lists_of(op) == 2) return roles_of_sum(op);
  if ((name == "_foreach_div_" || name == "_foreach_add_") && maker_ != kNoIndex) return {made};
  return {};
}

// A list times a number: Adam decays its second moments before it adds to them, its first (before 2023) and SGD's
// momentum likewise; what is left is the decay of weights.
OptimizerLists::List OptimizerLists::role_of_scaled(std::uint32_t op) const {
  const std::uint32_t behind = next(op);
  if (behind == kNoIndex) return {};
  if (list_name(behind) == "_foreach_addcmul_") return {Role::state, 1};
  if (list_name(behind) == "_foreach_add_" && lists_of(behind) == 2) return {Role::state, 0};
  return {Role::parameter, 0};
}

std::vector<OptimizerLists::List> OptimizerLists::roles_of_sum(std::uint32_t) {
  if (scaled_momentum_) {
    momentum_ = true;
    return {{Role::state, 0}, {Role::gradient, 0}};
  }
  return {{Role::parameter, 0}, momentum_ ? List{Role::state, 0} : List{Role::gradient, 0}};
}

// --- elements

// Shapes of a list's elements: as the operator lists them, or as it asks for the type of each result, or makes it.
std::vector<Shape> OptimizerLists::elements(std::uint32_t op) {
  for (const RecordedArgument& a : facts_.arguments(op))
    if (a.list && !a.tensors.empty()) return a.tensors;
  std::vector<Shape> shapes;
  for (std::uint32_t k = op + 1; k < c_.operators.size() && c_.operators[k].start <= c_.operators[op].end(); ++k) {
    if (c_.operators[k].parent != op || plain_name(k) != "result_type") continue;
    const auto& arguments = facts_.arguments(k);
    if (!arguments.empty() && arguments.front().tensors.size() == 1)
      shapes.push_back(arguments.front().tensors.front());
  }
  return shapes;
}

// The n-th element of a shape is the n-th parameter of that shape.
void OptimizerLists::match_elements(const std::vector<Shape>& shapes) {
  if (shapes == shapes_ && !matched_.empty()) return;
  shapes_ = shapes;
  matched_.assign(shapes.size(), kNoIndex);
  std::vector<std::uint32_t> free = parameters_with_gradient();
  for (std::size_t e = 0; e < shapes.size(); ++e) {
    const auto found = std::find_if(free.begin(), free.end(), [&](std::uint32_t s) {
      return table_.tensors[table_.storages[s].first].shape == shapes[e];
    });
    if (found == free.end()) continue;
    matched_[e] = *found;
    free.erase(found);
  }
}

TensorId OptimizerLists::element(const List& list, std::size_t e, const std::vector<Shape>& shapes) {
  if (list.role == Role::made) return e < made_.size() ? made_[e] : kNoTensor;
  const std::uint32_t parameter = e < matched_.size() ? matched_[e] : kNoIndex;
  if (parameter == kNoIndex) return kNoTensor;
  const TensorId first = table_.storages[parameter].first;
  if (list.role == Role::parameter) return first;
  if (list.role == Role::gradient) {
    const auto found = gradients_.find(parameter);
    return found != gradients_.end() && table_.storages[table_.tensors[found->second].storage].alive ? found->second
                                                                                                     : kNoTensor;
  }
  // The count of steps is a number of its own; moments are as large as what they are of.
  WantedTensor wanted{list.state == 3 ? Shape{} : shapes[e], list.state == 3 ? 4 : table_.tensors[first].element_bytes};
  return search_.older(wanted, InputSearch::kState + list.state, parameter);
}

ListOperator OptimizerLists::take(std::uint32_t op) {
  ListOperator result;
  std::vector<Shape> shapes = elements(op);
  if (shapes.empty()) shapes = shapes_;
  if (shapes.empty())
    for (const std::uint32_t s : parameters_with_gradient())
      shapes.push_back(table_.tensors[table_.storages[s].first].shape);
  match_elements(shapes);
  if (maker_ != kNoIndex && made_.empty())
    for (std::size_t s = made_from_; s < table_.storages.size(); ++s)
      for (std::uint32_t k = table_.storages[s].maker; k != kNoIndex; k = c_.operators[k].parent)
        if (k == maker_) made_.push_back(table_.storages[s].first);
  const std::vector<List> lists = roles(op);
  scaled_momentum_ =
      plain_name(op) == "_foreach_mul_" && !lists.empty() && lists[0].role == Role::state && lists[0].state == 0;
  if (!plain_name(op).ends_with('_')) {
    maker_ = op;
    made_.clear();
    made_from_ = table_.storages.size();
  }
  std::size_t at = 0;
  const auto& arguments = facts_.arguments(op);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].list) continue;
    const List list = at < lists.size() ? lists[at] : List{};
    ++at;
    std::size_t found = 0;
    for (std::size_t e = 0; e < shapes.size() && list.role != Role::unknown; ++e)
      if (const TensorId t = element(list, e, shapes); t != kNoTensor) {
        result.inputs.emplace_back(t, static_cast<std::uint16_t>(std::min<std::size_t>(i, 0xffff)));
        ++found;
      }
    result.unknown += found == 0 || found < shapes.size();
  }
  return result;
}

// --- one parameter after the other

// The next parameter of that shape: the operators up to the one that writes it are about it.
bool OptimizerLists::begin_parameter(const Shape& shape) {
  if (!matched_.empty() && shapes_.front() == shape) return matched_.front() != kNoIndex;
  shapes_ = {shape};
  matched_ = {kNoIndex};
  for (const std::uint32_t s : parameters_with_gradient())
    if (table_.tensors[table_.storages[s].first].shape == shape &&
        std::find(done_.begin(), done_.end(), s) == done_.end()) {
      matched_ = {s};
      return true;
    }
  return false;
}

ListOperator OptimizerLists::take_single(std::uint32_t op) {
  const auto& arguments = facts_.arguments(op);
  ListOperator result{.inputs = {}, .unknown = 1};
  if (arguments.empty() || arguments.front().tensors.size() != 1 || arguments.front().list) return result;
  const Shape shape = arguments.front().tensors.front();
  if (!begin_parameter(shape)) return result;
  if (maker_ != kNoIndex && made_.empty())
    for (std::size_t s = made_from_; s < table_.storages.size(); ++s) made_.push_back(table_.storages[s].first);
  const std::vector<List> roles_of_op = roles(op);
  scaled_momentum_ = plain_name(op) == "mul_" && !roles_of_op.empty() && roles_of_op[0].role == Role::state &&
                     roles_of_op[0].state == 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < arguments.size() && at < roles_of_op.size(); ++i) {
    if (arguments[i].list || arguments[i].tensors.size() != 1 || arguments[i].tensors.front() != shape) continue;
    const TensorId t = element(roles_of_op[at++], 0, shapes_);
    if (t == kNoTensor) return result;
    result.inputs.emplace_back(t, static_cast<std::uint16_t>(std::min<std::size_t>(i, 0xffff)));
  }
  if (roles_of_op.empty()) return result;
  result.unknown = 0;
  if (!plain_name(op).ends_with('_')) {
    maker_ = op;
    made_.clear();
    made_from_ = table_.storages.size();
  }
  if (roles_of_op.front().role == Role::parameter && plain_name(op) != "mul_") {
    done_.push_back(matched_.front());
    matched_.clear();
    shapes_.clear();
    made_.clear();
    maker_ = kNoIndex;
    momentum_ = scaled_momentum_ = false;
  }
  return result;
}

// --- gradients

std::uint32_t OptimizerLists::parameter_of(TensorId gradient) const {
  const KnownTensor& g = table_.tensors[gradient];
  const std::int64_t sequence = table_.storages[g.storage].function;
  if (sequence < 0) return kNoIndex;
  for (const TensorId t : search_.saved_inputs(sequence)) {
    const std::uint32_t storage = table_.tensors[t].storage;
    const KnownTensor& whole = table_.tensors[table_.storages[storage].first];
    if (!table_.storages[storage].older || element_count(whole.shape) != element_count(g.shape)) continue;
    if (std::find(this_step_.begin(), this_step_.end(), storage) == this_step_.end()) return storage;
  }
  return kNoIndex;
}

void OptimizerLists::accumulate(TensorId gradient) {
  const std::uint32_t parameter = parameter_of(gradient);
  if (parameter == kNoIndex) return;
  this_step_.push_back(parameter);
  parameter_of_gradient_[gradient] = parameter;
  const auto before = gradients_.find(parameter);
  const bool adds = before != gradients_.end() && table_.storages[table_.tensors[before->second].storage].alive;
  if (!adds) gradients_[parameter] = gradient;
}

TensorId OptimizerLists::gradient_so_far(const WantedTensor& wanted, TensorId gradient) {
  const auto parameter = parameter_of_gradient_.find(gradient);
  if (parameter == parameter_of_gradient_.end()) return kNoTensor;
  TensorId& now = gradients_[parameter->second];
  if (now != gradient) return now;
  now = zeroed_before(parameter->second);
  if (now == kNoTensor) now = search_.older(wanted, InputSearch::kGradient, parameter->second);
  return now;
}

TensorId OptimizerLists::zeroed_before(std::uint32_t parameter) const {
  const Shape& shape = table_.tensors[table_.storages[parameter].first].shape;
  const auto found = zeroed_.find(shape);
  if (found == zeroed_.end()) return kNoTensor;
  std::size_t place = 0;
  for (const TensorId t : search_.parameters()) {
    if (table_.tensors[t].shape != shape) continue;
    if (table_.tensors[t].storage == parameter) return place < found->second.size() ? found->second[place] : kNoTensor;
    ++place;
  }
  return kNoTensor;
}

TensorId OptimizerLists::zeroed(const WantedTensor& wanted) {
  const std::size_t place = zeroed_in_this_step_[wanted.shape]++;
  std::size_t at = 0;
  for (const std::uint32_t s : parameters_with_gradient())
    if (table_.tensors[table_.storages[s].first].shape == wanted.shape && at++ == place) return gradients_.at(s);
  std::vector<TensorId>& list = zeroed_[wanted.shape];
  if (place < list.size()) return list[place];
  const TensorId t = search_.older(wanted, InputSearch::kZeroed, zeroed_count_++);
  if (t != kNoTensor) list.push_back(t);
  return t;
}

void OptimizerLists::end_step() {
  this_step_.clear();
  shapes_.clear();
  matched_.clear();
  made_.clear();
  done_.clear();
  zeroed_in_this_step_.clear();
  maker_ = kNoIndex;
  momentum_ = scaled_momentum_ = false;
}

std::vector<std::uint32_t> OptimizerLists::parameters_with_gradient() const {
  std::vector<std::uint32_t> all;
  for (const auto& [parameter, gradient] : gradients_) all.push_back(parameter);
  return all;  // numbers of older storages count first uses
}

}  // namespace memwall
