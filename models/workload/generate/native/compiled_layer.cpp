#include "models/workload/generate/native/compiled_layer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "models/workload/flops.h"
#include "models/workload/generate/native/compiled_kernels.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/operators/operators_nf4.h"

namespace memwall {
namespace {

constexpr OperatorClass kNormalization = OperatorClass::normalization;

// What forward keeps, in the order of `saved`.
enum Kept : std::size_t {
  kX,
  kNormed1,
  kMean1,
  kDeviation1,
  kQueries,
  kKeys,
  kValues,
  kAttended,
  kSums,
  kSeed,
  kMiddle,
  kNormed2,
  kMean2,
  kDeviation2,
  kGate,
  kUp,
  kProduct,
  kKept
};

constexpr std::size_t kProjections = 8;
std::array<const CompiledProjection*, kProjections> projections_of(const CompiledLayerPlan& p) {
  return {&p.qkv, &p.q, &p.k, &p.v, &p.out, &p.gate, &p.up, &p.down};
}

bool is_trained(const Parameter* p) { return p != nullptr && p->value.requires_gradient(); }

const Tensor& value_of(const Parameter* p) {
  static const Tensor none;
  return p ? p->value : none;
}

class Layer {
 public:
  Layer(Tape& tape, const CompiledLayerPlan& plan) : t_(tape), p_(plan) {}
  Tensor forward(const Tensor& x, const Tensor& table, Tensors& kept);
  // Gradients of x, unless that needs none, and of the parameters, in the order of `parameters_of`.
  Tensors backward(Tensor gradient, Tensors kept, bool needs_x);

 private:
  FusedKernel norm_kernel(std::string_view name, double flops, const Tensor& x) const {
    return {name, kNormalization, flops, x.elements() / x.shape.back(), x.shape.back()};
  }
  // `added`: the sum with it is normalized, and kept in `sum`.
  Tensor norm(const Tensor& x, const Tensor& added, const Parameter* weight, const Parameter* bias, Tensor& sum,
              Tensor& mean, Tensor& deviation);
  Tensor linear(const CompiledProjection& p, const Tensor& x);
  Tensor adapted(const CompiledProjection& p, const Tensor& x, Tensor y);
  // Of the product's input, that of a LoRA pair added. `gradient`: of its output.
  Tensor input_gradient(const Tensor& gradient, const CompiledProjection& p);
  Tensor weight_of(const CompiledProjection& p);
  std::size_t place_of(const CompiledProjection& p) const {
    const auto all = projections_of(p_);
    return static_cast<std::size_t>(std::find(all.begin(), all.end(), &p) - all.begin());
  }
  void gradients_of_pair(const CompiledProjection& p, const Tensor& gradient, const Tensor& x);
  // Cast, unless it is one of the three that were cast last: the compiler finds such repetitions. Not for weights.
  Tensor fp8_of(const Tensor& x);
  Tensor heads_view(const Tensor& x, std::int64_t heads);
  void project_heads(const Tensor& table, Tensors& kept);
  Tensor turned(std::string_view name, Tensor x, const Tensor& table, std::int64_t heads, std::int64_t copies);
  void attend(Tensors& kept);
  Tensor mlp(Tensors& kept);

  void give(const Parameter* parameter, Tensor gradient) { gradients_.emplace_back(parameter, std::move(gradient)); }
  void gradients_of(const CompiledProjection& p, const Tensor& gradient, const Tensor& x);
  Tensor masked(const Tensor& gradient);
  Tensor mlp_backward(const Tensor& gradient, Tensors& kept);
  Tensor norm_backward(std::initializer_list<const Tensor*> reads, const Tensor& x, const Parameter* weight,
                       const Parameter* bias);
  Tensors attention_backward(Tensor gradient, Tensors& kept);
  Tensor projections_backward(Tensors parts, Tensors& kept);

  Tape& t_;
  const CompiledLayerPlan& p_;
  std::vector<std::pair<const Parameter*, Tensor>> gradients_;
  Tensors pairs_ = Tensors(kProjections);            // what the first product of each LoRA pair gives, by projection
  Tensor through_pair_;                              // its gradient, until input_gradient() has used it
  bool needs_x_ = true;                              // is the gradient of the layer's input asked for?
  std::vector<std::pair<StorageId, Tensor>> casts_;  // the last one first
};

Tensor Layer::fp8_of(const Tensor& x) {
  const StorageId id = x.storage->id();
  const auto found = std::find_if(casts_.begin(), casts_.end(), [&](const auto& cast) { return cast.first == id; });
  if (found != casts_.end()) {
    std::rotate(casts_.begin(), found, found + 1);
  } else {
    casts_.emplace(casts_.begin(), id, cast_to_fp8(t_, x));
    if (casts_.size() > 3) casts_.pop_back();
  }
  return casts_.front().second;
}

// As products read it: a kernel makes one in NF4 16-bit.
Tensor Layer::weight_of(const CompiledProjection& p) {
  if (p.nf4_outputs == 0) return value_of(p.weight);
  return dequantized_nf4(t_, {value_of(p.weight), p.scales}, p.nf4_outputs, p.nf4_inputs, p.weight->value.type);
}

Tensor Layer::linear(const CompiledProjection& p, const Tensor& x) {
  if (p_.fp8) return linear_of_fp8(t_, fp8_of(x), cast_to_fp8(t_, value_of(p.weight)), value_of(p.bias));
  Tensor y = compiled_linear(t_, x, weight_of(p), value_of(p.bias));
  return p.down ? adapted(p, x, std::move(y)) : y;
}

// y + scale * up(down(x)); what `down` gives is kept for backward: a product's result, and another's input.
Tensor Layer::adapted(const CompiledProjection& p, const Tensor& x, Tensor y) {
  const Tensor inner = compiled_linear(t_, x, value_of(p.down), {});
  const Tensor part = compiled_linear(t_, inner, value_of(p.up), {});
  fused_kernel(t_, {"triton::fused_add_mul", OperatorClass::elementwise, 2.0}, {&y, &part}, {&y});
  pairs_[place_of(p)] = inner;
  return y;
}

Tensor Layer::input_gradient(const Tensor& gradient, const CompiledProjection& p) {
  if (p_.fp8) return input_gradient_of_fp8(t_, fp8_of(gradient), cast_to_fp8(t_, value_of(p.weight)));
  Tensor dx = gradient_of_input(t_, gradient, weight_of(p));
  if (!through_pair_) return dx;
  const Tensor part = gradient_of_input(t_, through_pair_, value_of(p.down));
  through_pair_.reset();
  fused_kernel(t_, {"triton::fused_add"}, {&dx, &part}, {&dx});
  return dx;
}

Tensor Layer::norm(const Tensor& x, const Tensor& added, const Parameter* weight, const Parameter* bias, Tensor& sum,
                   Tensor& mean, Tensor& deviation) {
  const std::string_view name = added ? "triton::fused_add_norm" : "triton::fused_norm";
  Shape statistics = x.shape;
  statistics.back() = 1;
  if (added) sum = t_.make(name, x.shape, x.type);
  Tensor y = t_.make(name, x.shape, x.type);
  if (!p_.rms) mean = t_.make(name, statistics, DataType::fp32);
  deviation = t_.make(name, statistics, DataType::fp32);
  fused_kernel(t_, norm_kernel(name, (p_.rms ? 4 : 7) + (added ? 1 : 0), x),
               {&x, &added, &value_of(weight), &value_of(bias)}, {&y, &sum, &mean, &deviation});
  return y;
}

// [batch, length, heads * size] seen as [batch, heads, length, size].
Tensor Layer::heads_view(const Tensor& x, std::int64_t heads) {
  const std::int64_t length = x.shape[1], row = x.strides[1];
  Tensor y = x;
  y.shape = {x.shape[0], heads, length, p_.head_size};
  y.strides = {length * row, p_.head_size, row, 1};
  return y;
}

// One kernel that rotates (if there is a table), and copies each head for all queries that share it.
Tensor Layer::turned(std::string_view name, Tensor x, const Tensor& table, std::int64_t heads, std::int64_t copies) {
  Shape shape = x.shape;
  shape.back() = heads * copies * p_.head_size;
  return fused(t_, {name, OperatorClass::elementwise, table ? 3.0 : 0.0}, {&x, &table}, shape, x.type);
}

void Layer::project_heads(const Tensor& table, Tensors& kept) {
  const Tensor& x = kept[kNormed1];
  if (p_.qkv.weight) {
    const Tensor all = linear(p_.qkv, x);
    kept[kQueries] = heads_view(all, p_.heads);
    kept[kKeys] = kept[kValues] = heads_view(all, p_.key_value_heads);
    return;
  }
  const std::int64_t copies = p_.expanded_key_value ? p_.heads / p_.key_value_heads : 1;
  Tensor q = linear(p_.q, x), k = linear(p_.k, x), v = linear(p_.v, x);
  if (p_.rotary) q = turned("triton::fused_rotate", std::move(q), table, p_.heads, 1);
  if (p_.rotary || copies > 1)
    k = turned("triton::fused_rotate_expand", std::move(k), table, p_.key_value_heads, copies);
  if (copies > 1) v = turned("triton::fused_expand", std::move(v), {}, p_.key_value_heads, copies);
  kept[kQueries] = heads_view(q, p_.heads);
  kept[kKeys] = heads_view(k, p_.key_value_heads * copies);
  kept[kValues] = heads_view(v, p_.key_value_heads * copies);
}

void Layer::attend(Tensors& kept) {
  constexpr std::string_view kName = "aten::_scaled_dot_product_flash_attention";
  const Tensor &q = kept[kQueries], &k = kept[kKeys], &v = kept[kValues];
  kept[kAttended] = t_.make(kName, q.shape, q.type, strides_like(q.shape, q));
  kept[kSums] = t_.make(kName, {q.shape[0], q.shape[1], q.shape[2]}, DataType::fp32);
  kept[kSeed] = t_.make(kName, {2}, DataType::int64);
  TapeKernel work;
  work.name = kName;
  work.operator_class = OperatorClass::attention;
  work.type = q.type;
  work.shape =
      with_attention_kernel({q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], 1}, p_.attention);
  const auto n = [](std::int64_t x) { return static_cast<double>(x); };
  work.flops = attention_flops(n(q.shape[0] * q.shape[1]), n(q.shape[2]), n(k.shape[2]), n(q.shape[3]), n(v.shape[3]));
  t_.kernel(work, {&q, &k, &v}, {&kept[kAttended], &kept[kSums], &kept[kSeed]});
}

// [batch, heads, length, size] as flash attention writes it is [batch, length, heads * size] in memory.
Tensor rows_view(const Tensor& x) {
  Tensor y = x;
  y.shape = {x.shape[0], x.shape[2], x.shape[1] * x.shape[3]};
  y.strides = contiguous_strides(y.shape);
  return y;
}

Tensor Layer::mlp(Tensors& kept) {
  const Tensor& x = kept[kNormed2];
  if (p_.gate.weight) kept[kGate] = linear(p_.gate, x);
  kept[kUp] = linear(p_.up, x);
  const Tensor& up = kept[kUp];
  kept[kProduct] = fused(t_,
                         {p_.gate.weight ? "triton::fused_silu_mul" : "triton::fused_gelu", OperatorClass::elementwise,
                          p_.gate.weight ? 2.0 : 1.0},
                         {&kept[kGate], &up}, up.shape, up.type);
  return linear(p_.down, kept[kProduct]);
}

Tensor Layer::forward(const Tensor& x, const Tensor& table, Tensors& kept) {
  kept.resize(kKept);
  Tensor none;
  kept[kX] = x;
  kept[kNormed1] = norm(x, {}, p_.norm1, p_.norm1_bias, none, kept[kMean1], kept[kDeviation1]);
  project_heads(table, kept);
  attend(kept);
  Tensor part = linear(p_.out, rows_view(kept[kAttended]));
  kept[kNormed2] = norm(x, part, p_.norm2, p_.norm2_bias, kept[kMiddle], kept[kMean2], kept[kDeviation2]);
  part.reset();
  part = mlp(kept);
  std::move(pairs_.begin(), pairs_.end(), std::back_inserter(kept));
  return fused(t_, {p_.dropout ? "triton::fused_dropout_add" : "triton::fused_add"}, {&kept[kMiddle], &part}, x.shape,
               x.type);
}

// --- backward

// Of a LoRA pair: y = ... + scale * up(inner), inner = down(x).
void Layer::gradients_of_pair(const CompiledProjection& p, const Tensor& gradient, const Tensor& x) {
  const Tensor scaled = fused(t_, {"triton::fused_mul"}, {&gradient}, gradient.shape, gradient.type);
  const Tensor inner = std::move(pairs_[place_of(p)]);
  give(p.up, gradient_of_weight(t_, scaled, inner, value_of(p.up)));
  through_pair_ = gradient_of_input(t_, scaled, value_of(p.up));
  give(p.down, gradient_of_weight(t_, through_pair_, x, value_of(p.down)));
}

void Layer::gradients_of(const CompiledProjection& p, const Tensor& gradient, const Tensor& x) {
  if (p.down) return gradients_of_pair(p, gradient, x);
  if (!is_trained(p.weight)) return;
  give(p.weight, p_.fp8 ? weight_gradient_of_fp8(t_, fp8_of(gradient), fp8_of(x), value_of(p.weight))
                        : gradient_of_weight(t_, gradient, x, value_of(p.weight)));
  if (p.bias) give(p.bias, gradient_of_bias(t_, gradient, value_of(p.bias)));
}

// What was read first is the gradient of what the normalization gave.
Tensor Layer::norm_backward(std::initializer_list<const Tensor*> reads, const Tensor& x, const Parameter* weight,
                            const Parameter* bias) {
  constexpr std::string_view kName = "triton::fused_norm_backward", kSum = "triton::fused_norm_backward_sum";
  Tensor dx = t_.make(kName, x.shape, x.type);
  fused_kernel(t_, norm_kernel(kName, p_.rms ? 8 : 11, x), reads, {&dx});
  if (!is_trained(weight)) return dx;
  Tensor dw = t_.make(kSum, weight->value.shape, weight->value.type), db;
  if (bias) db = t_.make(kSum, bias->value.shape, bias->value.type);
  const Tensor& first = **reads.begin();
  fused_kernel(t_, {kSum, OperatorClass::reduction, 3, x.shape.back(), x.elements() / x.shape.back()}, {&first, &x},
               {&dw, &db});
  give(weight, std::move(dw));
  if (bias) give(bias, std::move(db));
  return dx;
}

// Through a dropout, whose mask is drawn again; the gradient itself without.
Tensor Layer::masked(const Tensor& gradient) {
  if (!p_.dropout) return gradient;
  return fused(t_, {"triton::fused_dropout_backward"}, {&gradient}, gradient.shape, gradient.type);
}

Tensor Layer::mlp_backward(const Tensor& gradient, Tensors& kept) {
  gradients_of(p_.down, gradient, kept[kProduct]);
  Tensor inner = input_gradient(gradient, p_.down);
  kept[kProduct].reset();
  constexpr std::string_view kName = "triton::fused_activation_backward";
  Tensor up = std::move(kept[kUp]), gate = std::move(kept[kGate]);
  Tensor dgate, dup = t_.make(kName, up.shape, up.type);
  if (gate) dgate = t_.make(kName, gate.shape, gate.type);
  fused_kernel(t_, {kName, OperatorClass::elementwise, gate ? 6.0 : 1.0}, {&inner, &gate, &up}, {&dup, &dgate});
  inner.reset();
  up.reset();
  gate.reset();
  gradients_of(p_.up, dup, kept[kNormed2]);
  Tensor sum = input_gradient(dup, p_.up);
  dup.reset();
  if (dgate) {
    gradients_of(p_.gate, dgate, kept[kNormed2]);
    const Tensor other = input_gradient(dgate, p_.gate);
    dgate.reset();
    fused_kernel(t_, {"triton::fused_add"}, {&sum, &other}, {&sum});
  }
  kept[kNormed2].reset();
  return sum;
}

Tensors Layer::attention_backward(Tensor gradient, Tensors& kept) {
  const Tensor &q = kept[kQueries], &k = kept[kKeys], &v = kept[kValues];
  constexpr std::string_view kName = "aten::_scaled_dot_product_flash_attention_backward";
  Tensors parts;
  for (const Tensor* x : {&q, &k, &v}) parts.push_back(t_.make(kName, x->shape, x->type, strides_like(x->shape, *x)));
  TapeKernel work;
  work.name = kName;
  work.operator_class = OperatorClass::attention;
  work.type = q.type;
  work.shape =
      with_attention_kernel({q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], 1}, p_.attention);
  const auto n = [](std::int64_t x) { return static_cast<double>(x); };
  work.flops =
      attention_backward_flops(n(q.shape[0] * q.shape[1]), n(q.shape[2]), n(k.shape[2]), n(q.shape[3]), n(v.shape[3]));
  t_.kernel(work, {&gradient, &q, &k, &v, &kept[kAttended], &kept[kSums], &kept[kSeed]},
            {&parts[0], &parts[1], &parts[2]});
  for (const Kept i : {kQueries, kKeys, kValues, kAttended, kSums, kSeed}) kept[i].reset();
  return parts;
}

// Turned back, and summed over the queries that shared a head; then through the products. Their gradients of the
// normalized input are added up.
Tensor Layer::projections_backward(Tensors parts, Tensors& kept) {
  const Tensor& x = kept[kNormed1];
  const bool goes_on = needs_x_ || is_trained(p_.norm1);  // is the gradient of x of use?
  const std::int64_t batch = x.shape[0], length = x.shape[1];
  const std::int64_t widths[] = {p_.heads * p_.head_size, p_.key_value_heads * p_.head_size,
                                 p_.key_value_heads * p_.head_size};
  if (p_.qkv.weight) {
    Tensor all = fused(t_, {"triton::fused_cat", OperatorClass::memory, 0}, {&parts[0], &parts[1], &parts[2]},
                       {batch, length, widths[0] + widths[1] + widths[2]}, x.type);
    parts.clear();
    gradients_of(p_.qkv, all, x);
    Tensor dx = goes_on ? input_gradient(all, p_.qkv) : Tensor();
    kept[kNormed1].reset();
    return dx;
  }
  const CompiledProjection* projections[] = {&p_.q, &p_.k, &p_.v};
  Tensor sum;
  for (std::size_t i = 0; i < 3; ++i) {
    Tensor g = rows_view(parts[i]);
    if (g.shape.back() != widths[i] || (p_.rotary && i < 2))
      g = fused(t_, {"triton::fused_rotate_backward", OperatorClass::elementwise, 3}, {&parts[i]},
                {batch, length, widths[i]}, x.type);
    parts[i].reset();
    gradients_of(*projections[i], g, x);
    if (!goes_on) continue;
    const Tensor dx = input_gradient(g, *projections[i]);
    if (sum)
      fused_kernel(t_, {"triton::fused_add"}, {&sum, &dx}, {&sum});
    else
      sum = dx;
  }
  kept[kNormed1].reset();
  return sum;
}

std::vector<const Parameter*> parameters_of(const CompiledLayerPlan& p) {
  std::vector<const Parameter*> all{p.norm1, p.norm1_bias, p.norm2, p.norm2_bias};
  for (const CompiledProjection* one : projections_of(p))
    for (const Parameter* each : {one->weight, one->bias, one->down, one->up}) all.push_back(each);
  return all;
}

Tensors Layer::backward(Tensor gradient, Tensors kept, bool needs_x) {
  needs_x_ = needs_x;
  pairs_.assign(std::make_move_iterator(kept.begin() + kKept), std::make_move_iterator(kept.end()));
  Tensor d = mlp_backward(masked(gradient), kept);
  Tensor middle = norm_backward({&d, &kept[kMiddle], &kept[kMean2], &kept[kDeviation2], &value_of(p_.norm2), &gradient},
                                kept[kMiddle], p_.norm2, p_.norm2_bias);
  for (const Kept i : {kMiddle, kMean2, kDeviation2}) kept[i].reset();
  d.reset();
  gradient.reset();
  Tensor through = masked(middle);
  gradients_of(p_.out, through, rows_view(kept[kAttended]));
  d = input_gradient(through, p_.out);
  through.reset();
  Tensors parts = attention_backward(heads_view(d, p_.heads), kept);
  d.reset();
  d = projections_backward(std::move(parts), kept);
  Tensor dx;
  if (needs_x_ || is_trained(p_.norm1))
    dx = norm_backward({&d, &kept[kX], &kept[kMean1], &kept[kDeviation1], &value_of(p_.norm1), &middle}, kept[kX],
                       p_.norm1, p_.norm1_bias);
  Tensors result{dx};
  for (const Parameter* p : parameters_of(p_)) {
    result.emplace_back();
    for (auto& [owner, g] : gradients_)
      if (p && owner == p) result.back() = std::move(g);
  }
  return result;
}

}  // namespace

Tensor compiled_layer(Tape& tape, const CompiledLayerPlan& plan, const Tensor& x, const Tensor& table) {
  static const Tensor none;
  std::vector<const Tensor*> inputs{&x};
  for (const Parameter* p : parameters_of(plan)) inputs.push_back(p ? &p->value : &none);
  auto f = tape.record(inputs, {}, [plan](Tape& t, GradientFunction& node, Tensors& g) {
    Tensors kept;
    for (std::size_t i = 0; i < node.saved.size(); ++i) kept.push_back(node.take_saved(t, i));
    node.saved.clear();  // given over: each goes when it has been used
    const CompiledScope scope(t);
    return Layer(t, plan).backward(std::move(g[0]), std::move(kept), node.needs(0));
  });
  Tensors kept;
  Tensor y;
  {
    const CompiledScope scope(tape);
    y = Layer(tape, plan).forward(x, table, kept);
  }
  Tape::result(f, y);
  for (const Tensor& t : kept) tape.save(f, t);
  return y;
}

}  // namespace memwall
