#include "policies/parallel/tensor_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "policies/trace/changed_program.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Numbers beside the data (states of generators, counters): whole on every rank.
constexpr std::int64_t kFewElements = 64;

std::int64_t elements_of(const Trace& t, StorageId id) {
  const Shape& shape = t.shapes[t.storages[id].shape];
  if (shape.empty()) return t.storages[id].bytes / 2;  // no type is known: of 16 bits
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

bool in_backward(const Op& op) { return op.phase == Phase::backward; }

}  // namespace

TensorSplit::TensorSplit(const Trace& trace, const TensorRoles& roles, std::int64_t ranks)
    : trace_(trace),
      roles_(roles),
      ranks_(ranks),
      parts_(trace.storages.size(), Part::unset),
      role_(trace.storages.size(), TensorRole::whole),
      last_writer_(trace.storages.size(), kNoOp),
      is_copy_(trace.storages.size(), false),
      changed_(trace.ops.size(), false),
      product_extent_(trace.ops.size(), -1) {
  if (has_masked_weights(trace))
    refuse(fmt::format("weights of trace '{}' are multiplied by masks (prune), whose parts are not told; expected a step "
                       "without masks.",
                       trace.name));
  if (has_compiled_code(trace))
    refuse(fmt::format("kernels of trace '{}' are compiled code (compile, fusion), in which sums over ranks have no place; "
                       "expected eager code.",
                       trace.name));
  find_parameters();
  for (OpId id = 0; id < trace.ops.size(); ++id) follow(id);
  if (columns_ == 0 || rows_ == 0)
    throw UsageError(fmt::format(
        "Policy 'tensor': trace '{}' has {} layers that are split by outputs and {} by inputs, by the names of its "
        "modules; expected some of each. Name them: column=NAME+NAME, row=NAME+NAME (the last part of a module's path).",
        trace.name, columns_, rows_));
}

void TensorSplit::refuse(const std::string& sentence) const { throw UsageError("Policy 'tensor': " + sentence); }

std::string TensorSplit::where(const Op& op) const {
  return fmt::format("{} in '{}'", trace_.strings[op.operator_name], trace_.strings[op.module]);
}

bool TensorSplit::is_parameter(StorageId id) const {
  return trace_.storages[id].kind == StorageKind::parameter || is_copy_[id];
}

TensorSplit::Operands TensorSplit::operands(const Op& op) const {
  Operands uses;
  for (const Use& use : trace_.uses_of(op)) (use.access == Access::read ? uses.reads : uses.writes).push_back(use.storage);
  return uses;
}

void TensorSplit::find_parameters() {
  std::vector<StringId> reader(trace_.storages.size(), 0);
  for (const Op& op : trace_.ops)
    for (const Use& use : trace_.uses_of(op))
      if (use.access == Access::read && reader[use.storage] == 0) reader[use.storage] = op.module;
  std::map<std::string, StorageId> by_label;
  for (StorageId id = 0; id < trace_.storages.size(); ++id) {
    const Storage& s = trace_.storages[id];
    if (s.kind != StorageKind::parameter) continue;
    by_label.emplace(trace_.strings[s.label], id);
    if (trace_.strings[s.label].find(".experts.") != std::string::npos)
      refuse(fmt::format("'{}' is of an expert; a mixture of experts is not implemented.", trace_.strings[s.label]));
    const TensorRole role = roles_.of_module(module_of_parameter(trace_, id, reader[id]));
    const bool is_bias = trace_.shapes[s.shape].size() <= 1;
    parts_[id] = role == TensorRole::whole || (role == TensorRole::row && is_bias) ? Part::whole : Part::split;
    if (parts_[id] == Part::split && s.bytes % ranks_ != 0)
      refuse(fmt::format("'{}' of {} bytes cannot be divided over {} ranks; choose a number that divides the model's "
                         "heads, inner width and vocabulary (padded, as Megatron-LM does).",
                         trace_.strings[s.label], s.bytes, ranks_));
    if (is_bias || role == TensorRole::whole) continue;
    role_[id] = role;
    ++(role == TensorRole::row ? rows_ : columns_);
  }
  // States and kept gradients are named after their parameters.
  for (StorageId id = 0; id < trace_.storages.size(); ++id) {
    const Storage& s = trace_.storages[id];
    if (!s.preexisting || s.kind == StorageKind::parameter) continue;
    parts_[id] = Part::whole;
    if (s.kind != StorageKind::optimizer_state && s.kind != StorageKind::gradient) continue;
    std::string label = trace_.strings[s.label];
    while (!label.empty() && !by_label.contains(label))
      label.resize(label.rfind('.') == std::string::npos ? 0 : label.rfind('.'));
    if (!label.empty() && elements_of(trace_, id) >= kFewElements) parts_[id] = parts_[by_label[label]];
  }
}

void TensorSplit::follow(OpId id) {
  const Op& op = trace_.ops[id];
  if (!runs_on_device(op.kind) && op.kind != OpKind::host_work) return;
  const Operands uses = operands(op);
  if (uses.reads.empty() && uses.writes.empty()) return;
  if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm)
    product(id, op, uses);
  else if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::attention)
    attention(op, uses);
  else if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::embedding)
    embedding(id, op, uses);
  else if (op.phase == Phase::optimizer)
    lists(uses);
  else
    anything(id, op, uses);
  for (const StorageId s : uses.writes) last_writer_[s] = id;
  const auto half = [this](StorageId s) { return is_split(s); };
  changed_[id] = changed_[id] || std::any_of(uses.reads.begin(), uses.reads.end(), half) ||
                 std::any_of(uses.writes.begin(), uses.writes.end(), half);
}

void TensorSplit::sum_what_is_partial(const Operands& uses) {
  for (const StorageId s : uses.reads) {
    if (parts_[s] != Part::partial) continue;
    sums_.push_back({last_writer_[s], s, trace_.storages[s].bytes, trace_.ops[last_writer_[s]].data_type});
    parts_[s] = Part::whole;
  }
}

void TensorSplit::give(const Operands& uses, Part part) {
  for (const StorageId s : uses.writes) {
    if (trace_.storages[s].kind == StorageKind::parameter || trace_.storages[s].kind == StorageKind::optimizer_state)
      continue;
    const bool small = elements_of(trace_, s) < kFewElements || trace_.storages[s].bytes % ranks_ != 0;
    const Part given = small && part != Part::partial ? Part::whole : part;
    // What gradients add up in keeps what it is.
    if (parts_[s] == Part::unset || part != Part::whole) parts_[s] = given;
  }
}

// Extents {batch, m, n, k}; 1 to 3 are what a weight of so many elements has besides the contracted one.
void TensorSplit::product(OpId id, const Op& op, const Operands& uses) {
  const Shape& shape = trace_.shapes[op.shape];
  if (shape.size() < 4) refuse(fmt::format("the shape of {} is not known, so its part cannot be told.", where(op)));
  const auto weight = std::find_if(uses.reads.begin(), uses.reads.end(),
                                   [this](StorageId s) { return role_[s] != TensorRole::whole; });
  if (weight == uses.reads.end()) return product_of_activations(id, op, uses);
  const TensorRole role = role_[*weight];
  const std::int64_t other = elements_of(trace_, *weight) / std::max<std::int64_t>(shape[3], 1);
  const signed char beside = shape[2] == other ? 2 : 1;  // of m and n the one that the weight has
  const bool column = role != TensorRole::row;
  const bool reads_split = std::any_of(uses.reads.begin(), uses.reads.end(), [&](StorageId s) {
    return s != *weight && !is_parameter(s) && is_split(s);
  });
  if (column != in_backward(op)) {  // whole in, split out
    sum_what_is_partial(uses);
    if (reads_split && !in_backward(op))
      refuse(fmt::format("{} reads what is split already; name the layers between column=... and row=... as they are.",
                         where(op)));
    product_extent_[id] = beside;
    if (!in_backward(op)) tokens_ = shape[beside == 2 ? 1 : 2];
    const bool words = role == TensorRole::output || role == TensorRole::vocabulary;
    give(uses, words ? Part::rows : Part::split);
  } else {  // split in, a part of a sum out
    if (!reads_split)
      refuse(fmt::format("{} reads nothing that is split, though its layer is split by {}.", where(op),
                         column ? "outputs" : "inputs"));
    product_extent_[id] = 3;
    give(uses, Part::partial);
  }
}

// Of a weight's gradient one factor is split, in attention both are.
void TensorSplit::product_of_activations(OpId id, const Op& op, const Operands& uses) {
  sum_what_is_partial(uses);
  const Shape& shape = trace_.shapes[op.shape];
  std::size_t split = 0, all = 0;
  StorageId half = kNoStorage;
  for (const StorageId s : uses.reads) {
    if (is_parameter(s) && trace_.shapes[trace_.storages[s].shape].size() <= 1) continue;
    ++all;
    if (!is_split(s)) continue;
    ++split;
    half = s;
  }
  if (split == 0) return give(uses, Part::whole);
  for (const StorageId s : uses.reads)
    if (is_parameter(s) && !is_split(s) && trace_.shapes[trace_.storages[s].shape].size() > 1)
      refuse(fmt::format(
          "{} reads what is split, and its layer is none of those that are; name it: column=NAME or row=NAME (the last "
          "part of a module's path).",
          where(op)));
  if (split == all && shape[0] % ranks_ == 0 && shape[0] > 1) {
    product_extent_[id] = 0;
  } else {
    const std::int64_t extent = elements_of(trace_, half) / std::max<std::int64_t>(shape[3], 1);
    product_extent_[id] = shape[1] == extent ? 1 : 2;
  }
  give(uses, Part::split);
}

void TensorSplit::attention(const Op& op, const Operands& uses) {
  sum_what_is_partial(uses);
  const bool split = std::any_of(uses.reads.begin(), uses.reads.end(), [this](StorageId s) { return is_split(s); });
  if (!split) return give(uses, Part::whole);
  const Shape& shape = trace_.shapes[op.shape];
  if (shape.size() >= 7 && (shape[1] % ranks_ != 0 || shape[2] % ranks_ != 0))
    refuse(fmt::format("{} heads with {} heads of keys and values cannot be divided over {} ranks (copies of keys and "
                       "values are not implemented here; a generated step has them: tensor={}).",
                       shape[1], shape[2], ranks_, ranks_));
  give(uses, Part::split);
}

void TensorSplit::embedding(OpId id, const Op& op, const Operands& uses) {
  const bool table = std::any_of(uses.reads.begin(), uses.reads.end(),
                                 [this](StorageId s) { return role_[s] == TensorRole::vocabulary; });
  if (!in_backward(op)) {
    give(uses, table ? Part::partial : Part::whole);
    changed_[id] = table;
    return;
  }
  sum_what_is_partial(uses);
  // The gradient of a table is as large as the table.
  const bool split = !uses.writes.empty() && roles_.of_module(trace_.strings[op.module]) == TensorRole::vocabulary;
  give(uses, split ? Part::split : Part::whole);
}

// Lists of an optimizer: the i-th result belongs to the i-th of each list that is read.
void TensorSplit::lists(const Operands& uses) {
  sum_what_is_partial(uses);
  const std::size_t count = uses.writes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const StorageId s = uses.writes[i];
    if (parts_[s] != Part::unset) continue;
    parts_[s] = Part::whole;
    for (std::size_t k = i; k < uses.reads.size() && uses.reads.size() % count == 0; k += count)
      if (is_split(uses.reads[k]) && elements_of(trace_, uses.reads[k]) == elements_of(trace_, s))
        parts_[s] = Part::split;
  }
}

void TensorSplit::anything(OpId id, const Op& op, const Operands& uses) {
  // A cast of a weight is a weight.
  if (uses.reads.size() == 1 && uses.writes.size() == 1 && is_parameter(uses.reads.front()) && !in_backward(op)) {
    role_[uses.writes.front()] = role_[uses.reads.front()];
    is_copy_[uses.writes.front()] = true;
  }
  const auto of_data = [this](StorageId s) { return !is_parameter(s) && parts_[s] != Part::unset; };
  const bool adds = trace_.strings[op.operator_name].find("add") != std::string::npos;
  const bool only_parts = std::all_of(uses.reads.begin(), uses.reads.end(),
                                      [&](StorageId s) { return parts_[s] == Part::partial; });
  if (adds && only_parts && !uses.reads.empty()) return give(uses, Part::partial);
  sum_what_is_partial(uses);
  Part part = Part::whole;
  for (const StorageId s : uses.reads) {
    const bool split = (of_data(s) || role_[s] != TensorRole::whole || is_split(s)) && is_split(s);
    if (split && part != Part::rows) part = parts_[s];
  }
  if (part == Part::rows && op.operator_class == OperatorClass::reduction && !in_backward(op)) loss(id, op, uses);
  const bool by_rows =
      op.operator_class == OperatorClass::normalization || op.operator_class == OperatorClass::reduction;
  const Shape& shape = trace_.shapes[op.shape];
  if (part == Part::split && by_rows && !in_backward(op) && shape.size() >= 2 && shape[0] == tokens_)
    refuse(
        fmt::format("{} reduces all that a token has, of which each rank has a part (a norm over all heads, say); sums "
                    "of such rows over ranks are not implemented.",
                    where(op)));
  give(uses, part);
}

// Over ranks: the largest logit and the sum of exponentials of each row, and the target's logit (Megatron-LM's
// vocab_parallel_cross_entropy): where a row of numbers stays, the first two; where it does not, the third.
void TensorSplit::loss(OpId id, const Op& op, const Operands& uses) {
  const Shape& shape = trace_.shapes[op.shape];
  if (shape.size() < 2 || uses.writes.empty()) return;
  const Bytes row_of_numbers = shape[0] * bytes_of(DataType::fp32);
  const bool rows_stay = elements_of(trace_, uses.writes.front()) >= shape[0] * 2;
  for (int i = 0; i < (rows_stay ? 2 : 1); ++i)
    sums_.push_back({id, uses.writes.front(), row_of_numbers, DataType::fp32});
}

Shape TensorSplit::part_of_shape(OpId id, const Op& op, double written) const {
  Shape shape = trace_.shapes[op.shape];
  if (shape.empty()) return shape;
  const auto divide = [&](std::size_t extent) {
    if (extent < shape.size() && shape[extent] % ranks_ == 0) shape[extent] /= ranks_;
  };
  switch (op.operator_class) {
    case OperatorClass::gemm:
      if (product_extent_[id] >= 0) divide(static_cast<std::size_t>(product_extent_[id]));
      break;
    case OperatorClass::attention:
      divide(1);
      divide(2);
      break;
    case OperatorClass::embedding:
      divide(2);
      break;
    case OperatorClass::normalization:
    case OperatorClass::reduction: {
      const auto uses = trace_.uses_of(op);
      const bool by_vocabulary = std::any_of(uses.begin(), uses.end(),
                                             [this](const Use& u) { return parts_[u.storage] == Part::rows; });
      divide(by_vocabulary ? 1 : 0);
      break;
    }
    default:
      if (shape.size() == 1) shape[0] = std::max<std::int64_t>(1, std::llround(static_cast<double>(shape[0]) * written));
  }
  return shape;
}

Op TensorSplit::part_of(OpId id, ShapeTable& shapes) const {
  Op op = trace_.ops[id];
  double before = 0, after = 0, written_before = 0, written_after = 0;
  for (const Use& use : trace_.uses_of(op)) {
    const auto bytes = static_cast<double>(trace_.storages[use.storage].bytes);
    const double part = is_split(use.storage) ? bytes / static_cast<double>(ranks_) : bytes;
    before += bytes, after += part;
    if (use.access == Access::write) written_before += bytes, written_after += part;
  }
  const double ratio = before > 0 ? after / before : 1;
  const double written = written_before > 0 ? written_after / written_before : ratio;
  op.shape = shapes.intern(part_of_shape(id, op, written));
  const bool lookup = op.operator_class == OperatorClass::embedding && !in_backward(op);
  if (!lookup) op.bytes = std::llround(static_cast<double>(op.bytes) * ratio);
  const bool by_work = op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention;
  op.flops *= by_work ? (product_extent_[id] >= 0 || op.operator_class == OperatorClass::attention
                             ? 1 / static_cast<double>(ranks_)
                             : 1)
                      : std::min(written, ratio);
  op.waves = static_cast<float>(op.waves * std::min(written, ratio));
  return op;
}

}  // namespace memwall
