#include "tests/support/gpt_trace.h"

#include <string>
#include <utility>
#include <vector>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

constexpr std::uint16_t kMain = 0, kAutograd = 1;

struct Parameter {
  StorageId weight = kNoStorage, gradient = kNoStorage, master = kNoStorage, mean = kNoStorage, variance = kNoStorage;
  std::int64_t count = 0;
  std::string module;
};

struct Layer {
  std::string path;
  Parameter norm1, qkv, out, norm2, fc1, fc2;
  StorageId input, normed1, q, k, v, softmax, softmax_mask, dropped, row_sums, context, attention_mask, middle, normed2,
      gelu_input, gelu_output, mlp_mask;  // kept for backward
};

class Program {
 public:
  explicit Program(const GptShape& shape)
      : g_(shape),
        tokens_(std::int64_t{shape.sequence} * shape.batch),
        h_(shape.hidden),
        sbh_(tokens_ * shape.hidden),
        attention_(std::int64_t{shape.heads} * shape.sequence * tokens_) {
    Trace& t = b_.trace();
    t.name = "gpt";
    t.knowledge = {true, true, true, true, true};
    t.samples_per_step = shape.batch;
    t.tokens_per_step = static_cast<double>(tokens_);
    b_.add_thread("main");
    b_.add_thread("autograd");
    b_.add_stream("compute", StreamRole::compute);
    ids_ = b_.add_storage(8 * tokens_, StorageKind::input, "hbm", "tokens", true);
    embedding_ = parameter("embedding", (std::int64_t{g_.vocabulary} + g_.sequence) * h_);
    for (int i = 0; i < g_.layers; ++i) layers_.push_back(layer("layers." + std::to_string(i)));
    final_norm_ = parameter("head", 2 * h_);
    if (g_.extra_parameters > 0) extra_ = parameter("extra", g_.extra_parameters);
  }

  Trace run() && {
    for (int i = 0; i < g_.steps; ++i) step(i);
    return std::move(b_).finish();
  }

 private:
  Parameter parameter(const std::string& module, std::int64_t count) {
    Parameter p;
    p.count = count;
    p.module = module;
    const std::string n = module + ".weight";
    p.weight = b_.add_storage(2 * count, StorageKind::parameter, "hbm", n, true);
    p.master = b_.add_storage(4 * count, StorageKind::optimizer_state, "hbm", n + ".master", true);
    p.mean = b_.add_storage(4 * count, StorageKind::optimizer_state, "hbm", n + ".exp_avg", true);
    p.variance = b_.add_storage(4 * count, StorageKind::optimizer_state, "hbm", n + ".exp_avg_sq", true);
    if (g_.preexisting_gradients)
      p.gradient = b_.add_storage(2 * count, StorageKind::gradient, "hbm", n + ".grad", true);
    return p;
  }

  Layer layer(const std::string& path) {
    Layer l{};
    l.path = path;
    l.norm1 = parameter(path + ".norm1", 2 * h_);
    l.qkv = parameter(path + ".attention", 3 * h_ * (h_ + 1));
    l.out = parameter(path + ".attention", h_ * (h_ + 1));
    l.norm2 = parameter(path + ".norm2", 2 * h_);
    l.fc1 = parameter(path + ".mlp", 4 * h_ * (h_ + 1));
    l.fc2 = parameter(path + ".mlp", h_ * (4 * h_ + 1));
    return l;
  }

  Op here(OpKind kind) {
    Op op;
    op.kind = kind;
    op.phase = phase_;
    op.thread = thread_;
    op.module = b_.trace().strings.intern(module_);
    op.host_gap = g_.host_gap;
    return op;
  }

  StorageId make(Bytes bytes, StorageKind kind, const std::string& label) {
    const StorageId id = b_.add_storage(bytes, kind, "hbm", module_ + "." + label);
    Op op = here(OpKind::alloc);
    op.target = id;
    op.host_cost = g_.allocator_cost;
    b_.append(op);
    return id;
  }
  StorageId activation(Bytes bytes, const char* label) { return make(bytes, StorageKind::activation, label); }
  StorageId workspace(Bytes bytes, const char* label) { return make(bytes, StorageKind::workspace, label); }

  void drop(std::initializer_list<StorageId> storages) {
    for (const StorageId id : storages) {
      Op op = here(OpKind::free);
      op.target = id;
      b_.append(op);
    }
  }

  void kernel(const char* name, OperatorClass c, double flops, const std::vector<StorageId>& reads,
              const std::vector<StorageId>& writes, OpKind kind = OpKind::kernel) {
    std::vector<Use> uses;
    Op op = here(kind);
    for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
    for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
    for (const Use& use : uses) op.bytes += b_.trace().storages[use.storage].bytes;
    op.name = b_.trace().strings.intern(name);
    op.operator_name = b_.trace().strings.intern(std::string("aten::") + name);
    op.operator_class = c;
    op.data_type = DataType::bf16;
    op.flops = flops;
    op.origin = g_.origin;
    op.host_cost = g_.launch_cost;
    op.duration = from_seconds(flops / g_.flops_per_second + static_cast<double>(op.bytes) / g_.bytes_per_second);
    b_.append(op, uses);
  }

  // y = x W and its two backward products; `features` = in x out.
  double gemm_flops(std::int64_t features) const { return 2.0 * static_cast<double>(tokens_ * features); }
  void linear(std::int64_t features, StorageId in, const Parameter& p, const std::vector<StorageId>& out) {
    kernel("linear", OperatorClass::gemm, gemm_flops(features), {in, p.weight}, out);
  }
  void into_gradient(const char* name, OperatorClass c, double flops, std::vector<StorageId> reads, Parameter& p,
                     std::vector<StorageId> writes = {}) {
    if (p.gradient == kNoStorage)
      p.gradient = make(2 * p.count, StorageKind::gradient, "grad");
    else
      reads.push_back(p.gradient);  // accumulates
    writes.push_back(p.gradient);
    kernel(name, c, flops, reads, writes);
  }
  StorageId linear_backward(std::int64_t features, std::vector<StorageId> gradient, StorageId in, Parameter& p,
                            Bytes in_bytes) {
    const StorageId result = workspace(in_bytes, "grad_input");
    std::vector<StorageId> reads = gradient;
    reads.push_back(p.weight);
    kernel("mm_input", OperatorClass::gemm, gemm_flops(features), reads, {result});
    gradient.push_back(in);
    into_gradient("mm_weight", OperatorClass::gemm, gemm_flops(features), gradient, p);
    return result;
  }
  // Also adds the gradient that came past the block through the residual connection.
  StorageId norm_backward(StorageId gradient, StorageId in, Parameter& p, StorageId residual) {
    const StorageId result = workspace(2 * sbh_, "grad_norm");
    into_gradient("layer_norm_backward", OperatorClass::normalization, 0, {gradient, in, p.weight}, p, {result});
    drop({gradient, in});
    if (residual == kNoStorage) return result;
    kernel("add_", OperatorClass::elementwise, 0, {result, residual}, {result});
    drop({residual});
    return result;
  }

  StorageId dropout(StorageId in, Bytes elements, StorageId& mask, const char* label) {
    const StorageId out = activation(2 * elements, label);
    mask = activation(elements, "dropout_mask");
    kernel("native_dropout", OperatorClass::elementwise, 0, {in}, {out, mask});
    return out;
  }

  void core_attention(Layer& l) {
    const double flops = 2.0 * static_cast<double>(attention_) * static_cast<double>(h_ / g_.heads);
    if (g_.flash_attention) {
      l.context = activation(2 * sbh_, "context");
      l.row_sums = activation(4 * g_.heads * tokens_, "row_sums");
      return kernel("flash_attention", OperatorClass::attention, 2 * flops, {l.q, l.k, l.v}, {l.context, l.row_sums});
    }
    const StorageId scores = activation(2 * attention_, "scores");
    kernel("bmm_scores", OperatorClass::gemm, flops, {l.q, l.k}, {scores});
    l.softmax = activation(2 * attention_, "softmax");
    kernel("softmax", OperatorClass::reduction, 0, {scores}, {l.softmax});
    drop({scores});
    l.dropped = dropout(l.softmax, attention_, l.softmax_mask, "dropped");
    l.context = activation(2 * sbh_, "context");
    kernel("bmm_values", OperatorClass::gemm, flops, {l.dropped, l.v}, {l.context});
  }

  // result = residual + dropout(in); drops `in`.
  StorageId add_residual(StorageId in, StorageId residual, StorageId& mask, const std::string& path) {
    const StorageId dropped = dropout(in, sbh_, mask, "dropout");
    drop({in});
    module_ = path;
    const StorageId result = activation(2 * sbh_, "residual");
    kernel("add", OperatorClass::elementwise, 0, {dropped, residual}, {result});
    drop({dropped});
    return result;
  }

  StorageId forward(Layer& l, StorageId input) {
    l.input = input;
    module_ = l.path + ".norm1";
    l.normed1 = activation(2 * sbh_, "output");
    kernel("layer_norm", OperatorClass::normalization, 0, {input, l.norm1.weight}, {l.normed1});
    module_ = l.path + ".attention";
    l.q = activation(2 * sbh_, "q");
    l.k = activation(2 * sbh_, "k");
    l.v = activation(2 * sbh_, "v");
    linear(3 * h_ * h_, l.normed1, l.qkv, {l.q, l.k, l.v});
    core_attention(l);
    const StorageId projected = activation(2 * sbh_, "projected");
    linear(h_ * h_, l.context, l.out, {projected});
    l.middle = add_residual(projected, input, l.attention_mask, l.path);
    module_ = l.path + ".norm2";
    l.normed2 = activation(2 * sbh_, "output");
    kernel("layer_norm", OperatorClass::normalization, 0, {l.middle, l.norm2.weight}, {l.normed2});
    module_ = l.path + ".mlp";
    l.gelu_input = activation(8 * sbh_, "fc1");
    linear(4 * h_ * h_, l.normed2, l.fc1, {l.gelu_input});
    l.gelu_output = activation(8 * sbh_, "gelu");
    kernel("gelu", OperatorClass::elementwise, 0, {l.gelu_input}, {l.gelu_output});
    const StorageId fc2 = activation(2 * sbh_, "fc2");
    linear(4 * h_ * h_, l.gelu_output, l.fc2, {fc2});
    return add_residual(fc2, l.middle, l.mlp_mask, l.path);
  }

  StorageId dropout_backward(StorageId gradient, StorageId mask, Bytes elements) {
    const StorageId result = workspace(2 * elements, "grad_dropout");
    kernel("native_dropout_backward", OperatorClass::elementwise, 0, {gradient, mask}, {result});
    drop({mask});
    return result;
  }

  // The gradients of q, k and v; drops what forward kept for them.
  std::vector<StorageId> core_attention_backward(Layer& l, StorageId gradient) {
    const double flops = 2.0 * static_cast<double>(attention_) * static_cast<double>(h_ / g_.heads);
    const StorageId dq = workspace(2 * sbh_, "grad_q"), dk = workspace(2 * sbh_, "grad_k"),
                    dv = workspace(2 * sbh_, "grad_v");
    if (g_.flash_attention) {
      kernel("flash_attention_backward", OperatorClass::attention, 5 * flops,
             {gradient, l.q, l.k, l.v, l.context, l.row_sums}, {dq, dk, dv});
      drop({gradient, l.row_sums, l.context, l.q, l.k, l.v});
      return {dq, dk, dv};
    }
    drop({l.context});
    const StorageId d_dropped = workspace(2 * attention_, "grad_dropped");
    kernel("bmm_values_backward", OperatorClass::gemm, 2 * flops, {gradient, l.dropped, l.v}, {d_dropped, dv});
    drop({gradient, l.dropped, l.v});
    const StorageId d_softmax = dropout_backward(d_dropped, l.softmax_mask, attention_);
    drop({d_dropped});
    const StorageId d_scores = workspace(2 * attention_, "grad_scores");
    kernel("softmax_backward", OperatorClass::reduction, 0, {d_softmax, l.softmax}, {d_scores});
    drop({d_softmax, l.softmax});
    kernel("bmm_scores_backward", OperatorClass::gemm, 2 * flops, {d_scores, l.q, l.k}, {dq, dk});
    drop({d_scores, l.q, l.k});
    return {dq, dk, dv};
  }

  StorageId backward(Layer& l, StorageId gradient) {
    module_ = l.path + ".mlp";
    const StorageId d_fc2 = dropout_backward(gradient, l.mlp_mask, sbh_);
    const StorageId d_gelu = linear_backward(4 * h_ * h_, {d_fc2}, l.gelu_output, l.fc2, 8 * sbh_);
    drop({d_fc2, l.gelu_output});
    const StorageId d_fc1 = workspace(8 * sbh_, "grad_gelu");
    kernel("gelu_backward", OperatorClass::elementwise, 0, {d_gelu, l.gelu_input}, {d_fc1});
    drop({d_gelu, l.gelu_input});
    const StorageId d_norm2 = linear_backward(4 * h_ * h_, {d_fc1}, l.normed2, l.fc1, 2 * sbh_);
    drop({d_fc1, l.normed2});
    module_ = l.path + ".norm2";
    const StorageId d_middle = norm_backward(d_norm2, l.middle, l.norm2, gradient);
    module_ = l.path + ".attention";
    const StorageId d_out = dropout_backward(d_middle, l.attention_mask, sbh_);
    const StorageId d_context = linear_backward(h_ * h_, {d_out}, l.context, l.out, 2 * sbh_);
    drop({d_out});
    const std::vector<StorageId> d_qkv = core_attention_backward(l, d_context);
    const StorageId d_norm1 = linear_backward(3 * h_ * h_, d_qkv, l.normed1, l.qkv, 2 * sbh_);
    drop({d_qkv[0], d_qkv[1], d_qkv[2], l.normed1});
    module_ = l.path + ".norm1";
    return norm_backward(d_norm1, l.input, l.norm1, d_middle);
  }

  void switch_to(std::uint16_t thread, Phase phase) {
    const OpId last = static_cast<OpId>(b_.trace().ops.size() - 1);
    thread_ = thread;
    phase_ = phase;
    Op op = here(OpKind::hand_over);
    op.target = last;
    b_.append(op);
  }

  void adam(Parameter& p) {
    if (p.count == 0) return;
    module_ = p.module;
    if (p.gradient == kNoStorage) p.gradient = make(2 * p.count, StorageKind::gradient, "grad");
    if (b_.version(p.gradient) == 0 && !g_.preexisting_gradients)  // of the unused block
      kernel("zero_", OperatorClass::memory, 0, {}, {p.gradient}, OpKind::memset);
    kernel("adam", OperatorClass::optimizer, 0, {p.gradient, p.weight, p.master, p.mean, p.variance},
           {p.weight, p.master, p.mean, p.variance});
  }

  template <typename Function>
  void for_each_parameter(Function f) {
    f(embedding_);
    for (Layer& l : layers_)
      for (Parameter* p : {&l.norm1, &l.qkv, &l.out, &l.norm2, &l.fc1, &l.fc2}) f(*p);
    f(final_norm_);
    f(extra_);
  }

  void zero_grad(Parameter& p) {
    if (p.count == 0) return;
    if (g_.preexisting_gradients) return kernel("zero_", OperatorClass::memory, 0, {}, {p.gradient}, OpKind::memset);
    drop({p.gradient});
    p.gradient = kNoStorage;
  }

  void step(int number) {
    thread_ = kMain;
    phase_ = Phase::unknown;
    module_.clear();
    const OpId first = b_.append(here(OpKind::mark));
    phase_ = Phase::forward;
    module_ = "embedding";
    const StorageId embedded = activation(2 * sbh_, "output");
    kernel("embedding", OperatorClass::embedding, 0, {ids_, embedding_.weight}, {embedded});
    StorageId mask = kNoStorage;
    StorageId x = dropout(embedded, sbh_, mask, "dropout");
    drop({embedded});
    for (Layer& l : layers_) x = forward(l, x);
    const StorageId gradient = head(x);
    StorageId d = gradient;
    for (auto l = layers_.rbegin(); l != layers_.rend(); ++l) d = backward(*l, d);
    module_ = "embedding";
    const StorageId d_embedded = dropout_backward(d, mask, sbh_);
    drop({d});
    into_gradient("embedding_backward", OperatorClass::embedding, 0, {d_embedded, ids_}, embedding_);
    drop({d_embedded});
    switch_to(kMain, Phase::optimizer);
    for_each_parameter([this](Parameter& p) { adam(p); });
    for_each_parameter([this](Parameter& p) { zero_grad(p); });
    b_.trace().steps.push_back({"step " + std::to_string(number), first, static_cast<OpId>(b_.trace().ops.size())});
  }

  // Output layer and loss, forward and backward; returns the gradient of x. Hands over to autograd.
  StorageId head(StorageId x) {
    const std::int64_t vocabulary = g_.vocabulary, logit_count = tokens_ * vocabulary;
    module_ = "head";
    const StorageId normed = activation(2 * sbh_, "norm");
    kernel("layer_norm", OperatorClass::normalization, 0, {x, final_norm_.weight}, {normed});
    const StorageId logits = activation(2 * logit_count, "logits");
    linear(h_ * vocabulary, normed, embedding_, {logits});
    const StorageId log_softmax = activation(4 * logit_count, "log_softmax");
    kernel("log_softmax", OperatorClass::reduction, 0, {logits}, {log_softmax});
    drop({logits});
    const StorageId loss = activation(4, "loss");
    kernel("nll_loss", OperatorClass::reduction, 0, {log_softmax, ids_}, {loss});
    switch_to(kAutograd, Phase::backward);
    const StorageId d_logits = workspace(2 * logit_count, "grad_logits");
    kernel("loss_backward", OperatorClass::elementwise, 0, {log_softmax, ids_}, {d_logits});
    drop({log_softmax, loss});
    const StorageId d_normed = linear_backward(h_ * vocabulary, {d_logits}, normed, embedding_, 2 * sbh_);
    drop({d_logits, normed});
    return norm_backward(d_normed, x, final_norm_, kNoStorage);
  }

  const GptShape& g_;
  std::int64_t tokens_, h_, sbh_, attention_;  // attention_ = elements of one attention matrix
  TraceBuilder b_;
  StorageId ids_ = kNoStorage;
  Parameter embedding_, final_norm_, extra_;
  std::vector<Layer> layers_;
  std::uint16_t thread_ = kMain;
  Phase phase_ = Phase::unknown;
  std::string module_;
};

}  // namespace

std::int64_t parameter_count(const GptShape& g) {
  const std::int64_t h = g.hidden;
  return (std::int64_t{g.vocabulary} + g.sequence) * h + g.layers * (12 * h * h + 13 * h) + 2 * h + g.extra_parameters;
}

Bytes layer_activation_bytes(const GptShape& g) {
  const std::int64_t tokens = std::int64_t{g.sequence} * g.batch;
  const std::int64_t attention = g.flash_attention ? 4 * g.heads * tokens : 5 * g.heads * g.sequence * tokens;
  return 34 * tokens * g.hidden + attention;
}

GptShape seven_billion_gpt() {
  GptShape g;
  g.layers = 32;
  g.hidden = 4096;
  g.heads = 32;
  g.sequence = 2048;
  g.batch = 1;
  g.vocabulary = 50257;
  g.extra_parameters = 7'000'000'000 - parameter_count(g);
  g.flops_per_second = 200e12;
  g.bytes_per_second = 1.5e12;
  g.host_gap = microseconds(2);
  g.launch_cost = microseconds(5);
  g.allocator_cost = nanoseconds(500);
  return g;
}

Trace gpt_step(const GptShape& shape) { return Program(shape).run(); }

}  // namespace memwall
