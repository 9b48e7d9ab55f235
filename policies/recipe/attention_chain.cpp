#include "policies/recipe/attention_chain.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

std::string chain_operator(const Trace& t, OpId id) { return plain_operator_name(operator_of(t, t.ops[id])); }

bool is_product(const Trace& t, OpId id) {
  const std::string name = chain_operator(t, id);
  return name == "bmm" || name == "baddbmm";
}

// What stands between the first product and softmax, and between softmax and the second.
bool is_between(const Trace& t, OpId id) {
  static const std::set<std::string> names{"mul", "div", "masked_fill", "add", "where", "to_copy", "native_dropout"};
  return names.contains(chain_operator(t, id));
}

class ChainFinder {
 public:
  ChainFinder(const Trace& trace, const Dataflow& flow, const Pass& pass, const std::vector<BackwardNode>& nodes)
      : t_(trace), flow_(flow), pass_(pass), nodes_(nodes) {}

  std::vector<AttentionChain> find() const {
    std::vector<AttentionChain> chains;
    for (OpId id = pass_.begin; id < pass_.backward; ++id)
      if (is_kernel(id, Phase::forward) && chain_operator(t_, id) == "softmax")
        if (std::optional<AttentionChain> chain = around(id)) chains.push_back(*std::move(chain));
    return chains;
  }

 private:
  bool is_kernel(OpId id, Phase phase) const { return t_.ops[id].kind == OpKind::kernel && t_.ops[id].phase == phase; }

  // What makes the largest storage that the op reads and that the pass has made.
  OpId maker_of_input(OpId id) const {
    const Use* input = nullptr;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::read && flow_.writer(use.storage, use.version) != kNoOp &&
          (input == nullptr || t_.storages[use.storage].bytes > t_.storages[input->storage].bytes))
        input = &use;
    return input == nullptr ? kNoOp : flow_.writer(input->storage, input->version);
  }

  StorageId made_by(OpId id) const {
    StorageId made = kNoStorage;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write &&
          (made == kNoStorage || t_.storages[use.storage].bytes > t_.storages[made].bytes))
        made = use.storage;
    return made;
  }

  // Of forward or backward, as the storage's maker is; kNoOp if there are several, or others.
  OpId only_reader(StorageId storage) const {
    OpId reader = kNoOp;
    for (const Touch& touch : flow_.touches(storage)) {
      if (!touch.reads || t_.ops[touch.op].phase != Phase::forward) continue;
      if (reader != kNoOp) return kNoOp;
      reader = touch.op;
    }
    return reader;
  }

  std::optional<AttentionChain> around(OpId softmax) const {
    AttentionChain chain;
    chain.forward = {softmax};
    OpId id = maker_of_input(softmax);
    for (; id != kNoOp && is_between(t_, id); id = maker_of_input(id)) chain.forward.push_back(id);
    if (id == kNoOp || !is_product(t_, id)) return std::nullopt;
    chain.scores = id;
    id = only_reader(made_by(softmax));
    for (; id != kNoOp && is_between(t_, id); id = only_reader(made_by(id))) chain.forward.push_back(id);
    if (id == kNoOp || !is_product(t_, id)) return std::nullopt;
    chain.weighted = id;
    if (!take_operands(chain) || !take_mask(chain)) return chain;
    chain.forward.insert(chain.forward.end(), {chain.scores, chain.weighted});
    take_result(chain);
    std::ranges::sort(chain.forward);
    chain.complete = take_backward(chain);
    return chain;
  }

  // An operand before it is copied for the product alone.
  StorageId before_copy(StorageId operand, AttentionChain& chain) const {
    const auto writers = flow_.writers(operand);
    if (writers.size() != 1 || chain_operator(t_, writers.front()) != "clone") return operand;
    chain.forward.push_back(writers.front());
    for (const Use& use : t_.uses_of(t_.ops[writers.front()]))
      if (use.access == Access::read) return use.storage;
    return operand;
  }

  // A trace names what autograd keeps (saved) in its order: the second factor first.
  bool take_operands(AttentionChain& chain) const {
    std::vector<StorageId> factors;
    bool told = false;
    for (const Use& use : t_.uses_of(t_.ops[chain.scores])) {
      if (use.access != Access::read) continue;
      factors.push_back(use.storage);
      told = told || use.saved;
    }
    if (factors.size() == 1) factors.push_back(factors[0]);  // both are parts of one
    if (factors.size() != 2) return false;
    if (told) std::swap(factors[0], factors[1]);
    const std::set<OpId> inner(chain.forward.begin(), chain.forward.end());
    StorageId values = kNoStorage;
    for (const Use& use : t_.uses_of(t_.ops[chain.weighted]))
      if (use.access == Access::read && !inner.contains(flow_.writer(use.storage, use.version))) values = use.storage;
    if (values == kNoStorage) return false;
    factors_ = {factors[0], factors[1], values};
    chain.query = before_copy(factors[0], chain);
    chain.key = before_copy(factors[1], chain);
    chain.value = before_copy(values, chain);
    return true;
  }

  // Truth values for each query and key are taken for a causal mask where there are as many of both.
  bool take_mask(AttentionChain& chain) const {
    const Shape& product = t_.shapes[t_.ops[chain.scores].shape];
    if (product.size() != 4) return false;
    for (const OpId id : chain.forward) {
      const std::string name = chain_operator(t_, id);
      if (name != "masked_fill" && name != "where" && name != "add") continue;
      if (name == "add" || product[1] != product[2]) return false;
      chain.causal = true;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::read && use.storage != made_by(maker_of_input(id)) &&
            t_.storages[use.storage].bytes != product[1] * product[2])
          return false;
    }
    return true;
  }

  void take_result(AttentionChain& chain) const {
    chain.result = made_by(chain.weighted);
    const OpId reader = only_reader(chain.result);
    if (reader == kNoOp || chain_operator(t_, reader) != "clone") return;
    chain.forward.push_back(reader);
    chain.result = made_by(reader);
  }

  const BackwardNode* node_of_forward(OpId forward) const {
    const auto found = std::ranges::find(nodes_, forward, &BackwardNode::forward);
    return found == nodes_.end() ? nullptr : &*found;
  }

  // Of a product's node: what makes the gradient of that factor, which is what reads the other.
  OpId gradient_of(const BackwardNode& node, StorageId other) const {
    for (const OpId id : node.ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::read && use.storage == other) return id;
    return kNoOp;
  }

  // The gradient of an operand behind the copy that undoes its own.
  StorageId behind_copy(OpId maker, AttentionChain& chain) const {
    const StorageId made = made_by(maker);
    OpId reader = kNoOp;
    for (const Touch& touch : flow_.touches(made)) {
      if (!touch.reads) continue;
      if (reader != kNoOp) return made;
      reader = touch.op;
    }
    if (reader == kNoOp || chain_operator(t_, reader) != "clone") return made;
    chain.backward.push_back(reader);
    return made_by(reader);
  }

  bool take_backward(AttentionChain& chain) const {
    const BackwardNode* const first = node_of_forward(chain.weighted);
    const BackwardNode* const last = node_of_forward(chain.scores);
    if (first == nullptr || last == nullptr || first->ops.size() != 2 || last->ops.size() != 2) return false;
    chain.backward = first->ops;
    chain.backward.insert(chain.backward.end(), last->ops.begin(), last->ops.end());
    const OpId of_value = [&] {
      for (const OpId id : first->ops) {
        bool reads_values = false;
        for (const Use& use : t_.uses_of(t_.ops[id])) reads_values = reads_values || use.storage == factors_[2];
        if (!reads_values) return id;
      }
      return kNoOp;
    }();
    const bool one = factors_[0] == factors_[1];  // BmmBackward asks for the gradient of its second factor first
    const OpId of_query = one ? last->ops.back() : gradient_of(*last, factors_[1]);
    const OpId of_key = one ? last->ops.front() : gradient_of(*last, factors_[0]);
    const OpId of_weights = first->ops.front() == of_value ? first->ops.back() : first->ops.front();
    if (of_value == kNoOp || of_query == kNoOp || of_key == kNoOp || of_query == of_key) return false;
    if (!take_between(chain, of_weights, *last)) return false;
    chain.of_query = behind_copy(of_query, chain);
    chain.of_key = behind_copy(of_key, chain);
    chain.of_value = behind_copy(of_value, chain);
    take_given(chain, *first);
    std::ranges::sort(chain.backward);
    return chain.given != kNoStorage;
  }

  // From the gradient of the weights to that of the scores.
  bool take_between(AttentionChain& chain, OpId of_weights, const BackwardNode& last) const {
    StorageId reached = kNoStorage;  // the gradient of the scores: what both ops of the last node read
    for (const Use& use : t_.uses_of(t_.ops[last.ops.front()]))
      if (use.access == Access::read && use.storage != factors_[0] && use.storage != factors_[1]) reached = use.storage;
    while (reached != kNoStorage) {
      const auto writers = flow_.writers(reached);
      if (writers.empty() || writers.size() > 1) return false;
      if (writers.front() == of_weights) return true;
      chain.backward.push_back(writers.front());
      StorageId next = kNoStorage;
      for (const Use& use : t_.uses_of(t_.ops[writers.front()]))
        if (use.access == Access::read && !is_kept_value(flow_, pass_, use)) next = use.storage;
      reached = next;
    }
    return false;
  }

  void take_given(AttentionChain& chain, const BackwardNode& first) const {
    for (const Use& use : t_.uses_of(t_.ops[first.ops.front()]))
      if (use.access == Access::read && !is_kept_value(flow_, pass_, use)) chain.given = use.storage;
    if (chain.given == kNoStorage || flow_.writers(chain.given).empty()) return;
    const OpId maker = flow_.writers(chain.given).back();
    if (chain_operator(t_, maker) != "clone") return;
    chain.backward.push_back(maker);
    for (const Use& use : t_.uses_of(t_.ops[maker]))
      if (use.access == Access::read) chain.given = use.storage;
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  const std::vector<BackwardNode>& nodes_;
  mutable std::vector<StorageId> factors_;  // of the chain at hand: queries, keys, values as products read them
};

}  // namespace

std::vector<AttentionChain> attention_chains(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                             const std::vector<BackwardNode>& nodes) {
  return ChainFinder(trace, flow, pass, nodes).find();
}

}  // namespace memwall
