#include "models/workload/import/inference/input_search.h"

#include <algorithm>

#include "models/workload/import/inference/operator_rules.h"

namespace memwall {
namespace {

using Groups = std::vector<std::vector<TensorId>>;

bool contains_tensor(std::span<const TensorId> list, TensorId t) {
  return std::find(list.begin(), list.end(), t) != list.end();
}

std::vector<TensorId> newest_first(const std::vector<TensorId>& list) { return {list.rbegin(), list.rend()}; }

template <typename Predicate>
std::vector<TensorId> only(const std::vector<TensorId>& list, Predicate keep) {
  std::vector<TensorId> result;
  std::copy_if(list.begin(), list.end(), std::back_inserter(result), keep);
  return result;
}

// Chooses from groups of candidates, the preferred group first, and in a group the best fit first.
class Choice {
 public:
  Choice(const TensorTable& table, const WantedTensor& wanted, std::span<const TensorId> used)
      : table_(table), wanted_(wanted), used_(used) {}

  FoundTensor from(const Groups& groups) const {
    for (const Fit least : {Fit::near_size, Fit::same_elements})
      for (const bool again : {false, true})
        for (const auto& group : groups)
          if (const TensorId t = best(group, least, again); t != kNoTensor) return {t, storages(groups, least) == 1};
    return {};
  }

 private:
  bool fits(TensorId t, Fit least) const {
    return table_.storages[table_.tensors[t].storage].alive && table_.fit(t, wanted_) >= least;
  }

  TensorId best(const std::vector<TensorId>& group, Fit least, bool again) const {
    TensorId chosen = kNoTensor;
    for (const TensorId t : group) {
      if (!fits(t, least) || (!again && contains_tensor(used_, t))) continue;
      if (chosen == kNoTensor || better(t, chosen)) chosen = t;
    }
    return chosen;
  }

  // A tensor in a block that is larger than it would have to be is worse than one that fills it.
  bool better(TensorId a, TensorId b) const {
    const auto rank = [&](TensorId t) {
      return table_.fit(t, wanted_) == Fit::exact ? Fit::same_size : table_.fit(t, wanted_);
    };
    return rank(a) > rank(b);
  }

  std::size_t storages(const Groups& groups, Fit least) const {
    std::vector<std::uint32_t> found;
    for (const auto& group : groups)
      for (const TensorId t : group)
        if (fits(t, least)) found.push_back(table_.tensors[t].storage);
    std::sort(found.begin(), found.end());
    return static_cast<std::size_t>(std::unique(found.begin(), found.end()) - found.begin());
  }

  const TensorTable& table_;
  const WantedTensor& wanted_;
  std::span<const TensorId> used_;
};

}  // namespace

InputSearch::InputSearch(const TimedCapture& capture, const ProfileFacts& facts, TensorTable& table, Bytes older_bytes)
    : c_(capture), facts_(facts), table_(table), modules_(find_modules(capture)), older_left_(older_bytes) {}

FoundTensor InputSearch::find(const InputQuestion& q, std::span<const WalkFrame> open, const WalkFrame* behind) {
  const WalkFrame& own = open.back();
  std::span<const WalkFrame> around = open.first(open.size() - 1);
  if (own.kind == FrameKind::function || own.kind == FrameKind::accumulate) return gradient(q, own);
  for (; !around.empty() && around.back().kind != FrameKind::range; around = around.first(around.size() - 1)) {
    FoundTensor found;
    switch (around.back().kind) {
      case FrameKind::function:
        found = in_function(q, around.back(), own);
        break;
      case FrameKind::engine:
        found = in_engine(q, around.back(), own);
        break;
      default:
        found = in_operation(q, around.back(), own);
    }
    if (found.tensor != kNoTensor) return found;
  }
  if (behind != nullptr)
    if (const FoundTensor found = in_engine(q, *behind, own); found.tensor != kNoTensor) return found;
  return outermost(q, own);
}

bool InputSearch::dies_before(TensorId tensor, Time end) const {
  const StorageId id = table_.storages[table_.tensors[tensor].storage].id;
  return id != kNoStorage && facts_.freed(id) <= end;
}

FoundTensor InputSearch::in_operation(const InputQuestion& q, const WalkFrame& around, const WalkFrame& own) const {
  const std::vector<TensorId> made = newest_first(around.made);
  const Choice choice(table_, q.wanted, own.inputs);
  // Of a list each operator inside takes the next; a linear layer transposes its weight.
  const bool lists = c_.text(c_.operators[around.op].name).find("_foreach_") != std::string::npos;
  const bool transposes = q.name == "aten::t" && around.inputs.size() > 1;
  const auto unused = only(around.inputs, [&](TensorId t) {
    return (lists && !contains_tensor(around.taken, t)) || (transposes && table_.tensors[t].weight);
  });
  const auto bases = only(made, [&](TensorId t) { return table_.storages[table_.tensors[t].storage].first == t; });
  if (q.written) return choice.from({bases, unused, made, around.inputs});
  const Time end = c_.operators[around.op].end();
  // Inside, what one operator makes the next one takes; a backward operator makes several results side by side.
  const bool flows = c_.text(c_.operators[around.op].name).find("backward") == std::string::npos;
  const auto temporary =
      only(made, [&](TensorId t) { return table_.tensors[t].reads == 0 && (flows || dies_before(t, end)); });
  return choice.from({temporary, unused, around.inputs, made});
}

FoundTensor InputSearch::in_function(const InputQuestion& q, const WalkFrame& function, const WalkFrame& own) const {
  const Time end = facts_.function_end(function.op);
  const auto unused = [&](TensorId t) { return !contains_tensor(function.taken, t); };
  const auto dying = [&](TensorId t) { return unused(t) && dies_before(t, end); };
  const std::vector<TensorId> made = newest_first(function.made);
  // What dies with the function, and views of what it was given: a view of what it made is what it returns.
  const auto temporary = only(made, [&](TensorId t) {
    const KnownStorage& storage = table_.storages[table_.tensors[t].storage];
    return table_.tensors[t].reads == 0 && (dies_before(t, end) || !contains_tensor(function.made, storage.first));
  });
  const auto unread = only(made, [&](TensorId t) { return table_.tensors[t].reads == 0; });
  Saved saved;
  if (const auto found = saved_.find(function.sequence); found != saved_.end()) saved = found->second;
  if (saves_result(c_.text(c_.operators[function.op].name))) std::swap(saved.inputs, saved.results);
  return Choice(table_, q.wanted, own.inputs)
      .from({only(function.inputs, unused), temporary, only(saved.inputs, dying), only(saved.results, dying),
             only(saved.inputs, unused), function.inputs, unread, only(saved.results, unused), saved.inputs,
             saved.results, made});
}

// Behind the function: sums over what was broadcast, and gradients that meet.
FoundTensor InputSearch::in_engine(const InputQuestion& q, const WalkFrame& around, const WalkFrame& own) {
  const std::vector<TensorId> made = newest_first(around.made);
  const Choice choice(table_, q.wanted, own.inputs);
  if (q.name == "aten::add" || q.name == "aten::add_") return q.position == 1 ? choice.from({made}) : gradient(q, own);
  const bool entry = around.kind == FrameKind::engine;
  const Time end = entry ? c_.operators[around.op].end() : facts_.function_end(around.op);
  const auto temporary = only(made, [&](TensorId t) { return table_.tensors[t].reads == 0 && dies_before(t, end); });
  return choice.from({temporary, around.inputs, made});
}

FoundTensor InputSearch::gradient(const InputQuestion& q, const WalkFrame& own) {
  const std::vector<TensorId> all = table_.matching(q.wanted);
  // Of an addition the other gradient is the newest: this one waits since before.
  const bool waits = q.position == 0 && own.kind == FrameKind::operation;
  std::vector<TensorId> pending =
      only(all, [&](TensorId t) { return table_.tensors[t].backward && table_.tensors[t].reads == 0; });
  if (waits && own.kind == FrameKind::operation && pending.size() > 1)
    std::rotate(pending.begin(), pending.begin() + 1, pending.end());
  const auto taken = only(all, [&](TensorId t) { return table_.tensors[t].backward && table_.tensors[t].reads > 0; });
  const auto others =
      only(all, [&](TensorId t) { return !table_.tensors[t].backward && table_.tensors[t].reads == 0; });
  FoundTensor found = Choice(table_, q.wanted, own.inputs).from({pending});
  if (found.tensor == kNoTensor) found = Choice(table_, q.wanted, own.inputs).from({taken, others});
  return found;
}

FoundTensor InputSearch::outermost(const InputQuestion& q, const WalkFrame& own) {
  if (is_parameter_argument(q.name, q.position)) return older_input(q, own);
  std::vector<TensorId> all = table_.matching(q.wanted);
  // A counter that is counted up fits in any small block.
  if (q.written && q.wanted.shape.empty())
    std::erase_if(all, [&](TensorId t) { return table_.fit(t, q.wanted) != Fit::exact; });
  const auto unread = only(all, [&](TensorId t) {
    return table_.tensors[t].reads == 0 && !table_.storages[table_.tensors[t].storage].older;
  });
  const auto again = only(all, [&](TensorId t) {
    return table_.tensors[t].reads > 0 && facts_.may_have_second_reader(table_.tensors[t].first_reader);
  });
  const FoundTensor found = Choice(table_, q.wanted, own.inputs).from({unread, again});
  // A number that was given as an argument is wrapped in a tensor of the host, without extents.
  if (found.tensor != kNoTensor || (q.wanted.shape.empty() && q.position > 0)) return found;
  return older_input(q, own);
}

// One per module and operator, by the order in a step.
FoundTensor InputSearch::older_input(const InputQuestion& q, const WalkFrame& own) {
  const CapturedOperator& op = c_.operators[own.op];
  Key key{modules_.of_operator[own.op], op.name, q.position, q.wanted.shape, q.wanted.element_bytes, 0};
  const std::uint64_t ordinal = ordinals_[key]++;
  std::get<5>(key) = ordinal;
  const bool parameter = is_parameter_argument(q.name, q.position);
  const auto [found, is_new] = older_.try_emplace(key, kNoTensor);
  if (is_new) {
    found->second = older(q.wanted, parameter ? kWeight : kInput, older_.size());
    if (parameter && found->second != kNoTensor) parameters_.push_back(found->second);
  }
  return {found->second, parameter, found->second == kNoTensor};
}

TensorId InputSearch::older(const WantedTensor& wanted, std::uint64_t kind, std::uint64_t which) {
  const auto [found, is_new] = older_by_which_.try_emplace({kind, which}, kNoTensor);
  if (!is_new) return found->second;
  const Bytes bytes = rounded_size(static_cast<Bytes>(wanted.bytes()));
  if (older_left_ >= 0) {
    if (bytes > older_left_) return kNoTensor;
    older_left_ -= bytes;
  }
  KnownStorage storage;
  storage.bytes = bytes;
  storage.older = true;
  KnownTensor tensor;
  tensor.storage = table_.add_storage(storage);
  tensor.shape = wanted.shape;
  tensor.element_bytes = wanted.element_bytes;
  tensor.shaped = true;
  tensor.weight = kind != kInput;
  return found->second = table_.add(std::move(tensor));
}

void InputSearch::save(std::int64_t sequence, TensorId tensor, bool result) {
  Saved& saved = saved_[sequence];
  std::vector<TensorId>& list = result ? saved.results : saved.inputs;
  if (!contains_tensor(list, tensor)) list.push_back(tensor);
}

std::span<const TensorId> InputSearch::saved_inputs(std::int64_t sequence) const {
  const auto found = saved_.find(sequence);
  return found == saved_.end() ? std::span<const TensorId>() : found->second.inputs;
}

}  // namespace memwall
