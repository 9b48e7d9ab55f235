#include "tests/support/layer_trace.h"

#include <string>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

class Program {
 public:
  explicit Program(const LayerShape& shape) : s_(shape) {
    Trace& t = b_.trace();
    t.name = "layers";
    t.knowledge = {true, true, true, shape.modules, true};
    b_.add_thread("main");
    b_.add_stream("compute", StreamRole::compute);
    input_ = b_.add_storage(shape.activation_bytes, StorageKind::input, "hbm", "input", true);
    for (std::size_t i = 0; i < shape.parameter_bytes.size(); ++i) {
      const std::string name = "layers." + std::to_string(i);
      const Bytes bytes = shape.parameter_bytes[i];
      weights_.push_back(b_.add_storage(bytes, StorageKind::parameter, "hbm", name, true));
      for (auto* states : {&masters_, &means_, &variances_})
        states->push_back(b_.add_storage(2 * bytes, StorageKind::optimizer_state, "hbm", name + ".state", true));
    }
    gradients_.assign(weights_.size(), kNoStorage);
    if (!shape.exchanges) return;
    table_ = b_.add_storage(8192, StorageKind::parameter, "hbm", "table", true);
    table_state_ = b_.add_storage(16384, StorageKind::optimizer_state, "hbm", "table.state", true);
  }

  Trace run() && {
    for (int step = 0; step < s_.steps; ++step) {
      phase_ = Phase::unknown;
      Op mark;
      const OpId first = b_.append(mark);
      for (int pass = 0; pass < s_.passes; ++pass) forward_and_backward();
      if (s_.captured_all_reduce) all_reduce();
      if (s_.optimizer) update();
      b_.trace().steps.push_back({"step", first, static_cast<OpId>(b_.trace().ops.size())});
    }
    return std::move(b_).finish();
  }

 private:
  StorageId make(Bytes bytes, StorageKind kind, const std::string& label) {
    const StorageId id = b_.add_storage(bytes, kind, "hbm", label);
    at(b_.alloc(id, 0));
    return id;
  }
  void drop(StorageId id) { at(b_.free(id, 0)); }
  void at(OpId id) { b_.trace().ops[id].phase = phase_; }

  void run_kernel(const char* name, std::size_t layer, const std::vector<StorageId>& reads,
                  const std::vector<StorageId>& writes, OpKind kind = OpKind::kernel, std::uint16_t stream = 0) {
    std::vector<Use> uses;
    Op op;
    op.stream = stream;
    for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
    for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
    for (const Use& use : uses) op.bytes += b_.trace().storages[use.storage].bytes;
    op.kind = kind;
    if (kind == OpKind::collective) op.collective = CollectiveKind::all_reduce;
    op.phase = phase_;
    op.name = b_.trace().strings.intern(name);
    op.operator_name = op.name;
    if (s_.modules) op.module = b_.trace().strings.intern("layers." + std::to_string(layer));
    op.data_type = DataType::bf16;
    op.duration = microseconds(1);
    b_.append(op, uses);
  }

  void forward_and_backward() {
    phase_ = Phase::forward;
    std::vector<StorageId> activations{s_.exchanges ? looked_up() : input_};
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      activations.push_back(make(s_.activation_bytes, StorageKind::activation, "output"));
      run_kernel("linear", i, {activations[i], weights_[i]}, {activations[i + 1]});
    }
    phase_ = Phase::backward;
    StorageId incoming = make(s_.activation_bytes, StorageKind::workspace, "loss");
    run_kernel("loss_backward", weights_.size() - 1, {activations.back()}, {incoming});
    for (std::size_t i = weights_.size(); i-- > 0;) {
      std::vector<StorageId> reads{incoming, activations[i], weights_[i]};
      if (gradients_[i] == kNoStorage)
        gradients_[i] = make(s_.parameter_bytes[i], StorageKind::gradient, "gradient");
      else
        reads.push_back(gradients_[i]);
      const StorageId outgoing = make(s_.activation_bytes, StorageKind::workspace, "outgoing");
      run_kernel("linear_backward", i, reads, {outgoing, gradients_[i]});
      if (s_.captured_buckets) reduce_bucket(i);
      drop(incoming);
      drop(activations[i + 1]);
      incoming = outgoing;
    }
    if (s_.exchanges) run_kernel("lookup_backward", 0, {incoming, table_, table_state_}, {});
    drop(incoming);
    if (s_.exchanges) drop(activations.front());
    if (s_.captured_buckets) copy_back();
  }

  StorageId looked_up() {
    const StorageId own = make(s_.activation_bytes, StorageKind::activation, "features");
    run_kernel("lookup", 0, {input_, table_}, {own});
    const StorageId received = make(s_.activation_bytes, StorageKind::activation, "received");
    run_kernel("ncclDevKernel_SendRecv", 0, {own}, {received}, OpKind::collective);
    b_.trace().ops.back().collective = CollectiveKind::all_to_all;
    drop(own);
    return received;
  }

  void hand_over(std::uint16_t from, std::uint16_t to) {
    Op op;
    op.target = b_.add_event();
    op.phase = phase_;
    for (const auto& [kind, stream] : {std::pair(OpKind::event_record, from), {OpKind::event_wait, to}}) {
      op.kind = kind;
      op.stream = stream;
      b_.append(op);
    }
  }

  void reduce_bucket(std::size_t i) {
    if (communication_ == 0) communication_ = b_.add_stream("communication", StreamRole::communication);
    buckets_.resize(weights_.size(), kNoStorage);
    if (buckets_[i] == kNoStorage)
      buckets_[i] = b_.add_storage(s_.parameter_bytes[i],
                                   s_.bucket_views ? StorageKind::gradient : StorageKind::communication_buffer, "hbm",
                                   "bucket", true);
    run_kernel("fill_bucket", i, {gradients_[i]}, {buckets_[i]});
    hand_over(0, communication_);
    run_kernel("ncclDevKernel_AllReduce", i, {buckets_[i]}, {buckets_[i]}, OpKind::collective, communication_);
  }

  void copy_back() {
    hand_over(communication_, 0);
    for (std::size_t i = 0; i < buckets_.size() && !s_.bucket_views; ++i)
      run_kernel("copy_back", i, {buckets_[i]}, {gradients_[i]});
  }

  void all_reduce() { run_kernel("ncclDevKernel_AllReduce", 0, gradients_, gradients_, OpKind::collective); }

  void update() {
    phase_ = Phase::optimizer;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      run_kernel("adam", i,
                 {s_.bucket_views ? buckets_[i] : gradients_[i], weights_[i], masters_[i], means_[i], variances_[i]},
                 {weights_[i], masters_[i], means_[i], variances_[i]});
    for (StorageId& gradient : gradients_) {
      drop(gradient);
      gradient = kNoStorage;
    }
  }

  const LayerShape& s_;
  TraceBuilder b_;
  StorageId input_ = kNoStorage, table_ = kNoStorage, table_state_ = kNoStorage;
  std::uint16_t communication_ = 0;  // stream of the buckets' reductions; 0: there is none
  std::vector<StorageId> buckets_;
  std::vector<StorageId> weights_, masters_, means_, variances_, gradients_;
  Phase phase_ = Phase::unknown;
};

}  // namespace

Trace layer_trace(const LayerShape& shape) { return Program(shape).run(); }

}  // namespace memwall
