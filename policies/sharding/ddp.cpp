// PyTorch's DistributedDataParallel: every rank keeps all, and gradients are summed in buckets while backward runs.
//
// The reducer fills buckets in the order in which gradients are ready (it rebuilds them so after the first step): the
// first one of 1 MiB, the others of 25 MiB (where a size is asked for all have that), one type each; a gradient that
// crosses the limit still goes in. When a gradient is ready a kernel divides it into its bucket; when all of a bucket
// are there, the bucket is all-reduced on NCCL's stream behind what compute has been given by then, in order, and the
// host goes on: those that reached their size as they did, then what is left of each type, the last one to come first.
// At the end of backward compute waits for each bucket, and the sums are copied back into the gradients.
//
// Running statistics are broadcast before a forward, those of one type together, unless the forward before was under
// no_sync().
//
// With gradient_as_bucket_view the buckets are the gradients: what backward makes is given back once it is in its
// bucket, nothing is copied back, and passes that add to gradients add to buckets. Without, buckets live beside the
// gradients all the time.
// Source: pytorch/pytorch, torch/csrc/distributed/c10d/reducer.cpp (mark_variable_ready_dense, all_reduce_bucket,
// finalize_backward, rebuild_buckets, compute_bucket_assignment_by_size) and torch/nn/parallel/distributed.py
// (_BucketCapacityConfig, _pre_forward, _post_forward). tests/oracle/recorded_collectives_test.cpp compares.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/gradient_hooks.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/sharding/zero_buckets.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

// Source: torch/nn/parallel/distributed.py, _DEFAULT_BUCKET_CAP_MB (25).
constexpr Bytes kBucket = MiB(25);

struct DdpSettings {
  std::uint32_t ranks = 2;
  Bytes bucket = kBucket, first_bucket = kFirstBucket;
  bool views = false;             // gradient_as_bucket_view
  bool reduces_each_pass = true;  // false: no_sync() but for the last pass of a step
  bool broadcasts_buffers = true;
};

// Source: torch/nn/parallel/distributed.py, broadcast_bucket_size.
constexpr Bytes kBroadcast = MiB(250);

// One bucket of a pass.
struct DdpBucket {
  std::vector<GradientMade> made;  // in the order in which they are ready
  Bytes bytes = 0;
  bool full = false;
  StorageId storage = kNoStorage;  // kNoStorage: the gradients themselves, which stay from step to step
  std::uint32_t event = 0;         // summed
};

class DdpReducer {
 public:
  DdpReducer(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis, const DdpSettings& settings,
             const Pricer& pricer)
      : edit_(edit),
        t_(edit.base()),
        flow_(flow),
        analysis_(analysis),
        settings_(settings),
        program_(edit, pricer),
        group_(program_.all_ranks("ddp", settings.ranks)),
        nccl_(program_.stream("ddp.nccl")) {}

  void run() {
    bool synchronized = true;  // the pass before, of this step or the one before
    for (const BackwardPass& pass : analysis_.passes) {
      if (settings_.broadcasts_buffers && synchronized) broadcast(pass);
      synchronized = settings_.reduces_each_pass || pass.before_update;
      if (synchronized) reduce(pass);
    }
  }

  const FsdpProgram& program() const { return program_; }
  Bytes bucket_bytes() const { return bucket_bytes_; }
  std::size_t buckets() const { return buckets_; }

 private:
  // Running statistics of rank 0, by type in the order of their first ones. Source: torch/csrc/distributed/c10d/
  // reducer.cpp, broadcast_coalesced.
  void broadcast(const BackwardPass& pass) {
    const InsertionPoint point{pass.pass.begin, false};
    std::map<Bytes, std::vector<StorageId>> by_type;
    for (const StorageId id : analysis_.replicated) by_type[sharded_element(t_, flow_, id)].push_back(id);
    std::vector<std::vector<StorageId>> messages;
    for (const auto& [element, all] : by_type) {
      std::vector<Bytes> sizes;
      for (const StorageId id : all) sizes.push_back(t_.storages[id].bytes);
      for (const auto& group : fill_buckets(sizes, kBroadcast, BucketRule::close_when_reached, kBroadcast)) {
        messages.emplace_back();
        for (const std::size_t i : group) messages.back().push_back(all[i]);
      }
    }
    std::ranges::sort(messages);
    for (const std::vector<StorageId>& message : messages) broadcast(point, pass, message);
  }

  void broadcast(InsertionPoint point, const BackwardPass& pass, const std::vector<StorageId>& buffers) {
    Bytes bytes = 0;
    for (const StorageId id : buffers) bytes += t_.storages[id].bytes;
    std::set<std::uint16_t> streams;
    for (OpId id = pass.pass.begin; id < pass.pass.backward; ++id)
      if (runs_on_device(t_.ops[id].kind)) streams.insert(t_.ops[id].stream);
    for (const std::uint16_t stream : streams) program_.wait_stream(point, nccl_, stream);
    program_.collective(point, nccl_, "ddp.broadcast", CollectiveKind::broadcast, bytes, group_, buffers, buffers);
    for (const std::uint16_t stream : streams) program_.wait_stream(point, stream, nccl_);
  }

  std::vector<DdpBucket> fill(const BackwardPass& pass) const {
    std::map<Bytes, std::vector<GradientMade>> by_type;
    for (const GradientMade& made : pass.made) by_type[sharded_element(t_, flow_, made.gradient)].push_back(made);
    std::vector<DdpBucket> buckets;
    for (const auto& [element, made] : by_type) {
      std::vector<Bytes> sizes;
      for (const GradientMade& one : made) sizes.push_back(t_.storages[one.gradient].bytes);
      Bytes limit = settings_.first_bucket;
      for (const auto& group :
           fill_buckets(sizes, settings_.bucket, BucketRule::close_when_reached, settings_.first_bucket)) {
        DdpBucket& bucket = buckets.emplace_back();
        for (const std::size_t i : group) {
          bucket.made.push_back(made[i]);
          bucket.bytes += sizes[i];
        }
        bucket.full = bucket.bytes >= limit;
        limit = settings_.bucket;
      }
    }
    // Types that are left over stand in a hash table, which PyTorch reads from the one that came in last.
    std::ranges::stable_sort(buckets, {}, [](const DdpBucket& b) {
      const std::int64_t first = b.made.front().ready, last = b.made.back().ready;
      return std::pair(!b.full, b.full ? last : -first);
    });
    return buckets;
  }

  void reduce(const BackwardPass& pass) {
    std::vector<DdpBucket> buckets = fill(pass);
    std::set<std::uint16_t> streams;
    OpId ready = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      DdpBucket& bucket = buckets[i];
      place(bucket, i);
      for (const GradientMade& made : bucket.made) {
        streams.insert(t_.ops[made.ready].stream);
        put_into_bucket(bucket, made);
      }
      ready = std::max(ready, bucket.made.back().ready);
      send(bucket, {ready, true});
    }
    const InsertionPoint end{pass.last_backward, true};
    for (const DdpBucket& bucket : buckets) {
      for (const std::uint16_t stream : streams) program_.wait(end, bucket.event, stream);
      if (!settings_.views) copy_back(bucket, end);
    }
    buckets_ = std::max(buckets_, buckets.size());
  }

  // Each step's n-th bucket is the same storage, which is there from the start.
  void place(DdpBucket& bucket, std::size_t number) {
    const StorageId like = bucket.made.front().gradient;
    const bool stay = std::ranges::all_of(
        bucket.made, [this](const GradientMade& made) { return t_.storages[made.gradient].preexisting; });
    if (settings_.views && stay) return;
    for (const StorageId known : made_[number])
      if (edit_.tables().storages[known].bytes == bucket.bytes) bucket.storage = known;
    if (bucket.storage != kNoStorage) return;
    bucket.storage = edit_.builder().add_storage(
        bucket.bytes, settings_.views ? StorageKind::gradient : StorageKind::communication_buffer,
        t_.places[t_.storages[like].place], "ddp.bucket", true);
    edit_.tables().storages[bucket.storage].stream = t_.storages[like].stream;
    made_[number].push_back(bucket.storage);
    bucket_bytes_ += bucket.bytes;
  }

  // mul_out(bucket_view, grad, 1 / ranks); of a gradient that is its view already, div_.
  void put_into_bucket(const DdpBucket& bucket, const GradientMade& made) {
    const InsertionPoint point{made.ready, true};
    const std::uint16_t stream = t_.ops[made.ready].stream;
    const Bytes bytes = 2 * t_.storages[made.gradient].bytes;
    const bool is_view = bucket.storage == kNoStorage || is_view_.contains(made.gradient);
    const StorageId to = bucket.storage == kNoStorage ? made.gradient : bucket.storage;
    program_.kernel(point, stream, is_view ? "ddp.div_" : "ddp.mul_out", bytes, {is_view ? to : made.gradient}, {to});
    if (settings_.views && !is_view) become_view(made, bucket.storage, point);
  }

  // From here on the gradient is a part of the bucket, whose storage stays.
  void become_view(const GradientMade& made, StorageId bucket, InsertionPoint point) {
    is_view_.insert(made.gradient);
    for (const Touch& touch : flow_.touches(made.gradient))
      if (touch.op > made.ready) edit_.repoint(touch.op, made.gradient, bucket);
    if (const OpId free = flow_.free(made.gradient); free != kNoOp) edit_.remove(free);
    program_.free(point, made.gradient);
  }

  void send(DdpBucket& bucket, InsertionPoint point) {
    std::set<std::uint16_t> makers;
    std::vector<StorageId> content;
    for (const GradientMade& made : bucket.made) {
      makers.insert(t_.ops[made.ready].stream);
      if (bucket.storage == kNoStorage) content.push_back(made.gradient);
    }
    if (bucket.storage != kNoStorage) content = {bucket.storage};
    for (const std::uint16_t stream : makers) program_.wait_stream(point, nccl_, stream);
    program_.collective(point, nccl_, "ddp.all_reduce", CollectiveKind::all_reduce, bucket.bytes, group_, content,
                        content);
    bucket.event = program_.record(point, nccl_);
  }

  void copy_back(const DdpBucket& bucket, InsertionPoint end) {
    std::vector<StorageId> gradients;
    for (const GradientMade& made : bucket.made) gradients.push_back(made.gradient);
    program_.kernel(end, t_.ops[bucket.made.back().ready].stream, "ddp.copy_", 2 * bucket.bytes, {bucket.storage},
                    gradients, gradients.size());
  }

  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const DdpSettings& settings_;
  FsdpProgram program_;
  ShardingGroup group_;
  std::uint16_t nccl_;
  std::map<std::size_t, std::vector<StorageId>> made_;  // storages of the n-th bucket of a pass, by size
  std::set<StorageId> is_view_;                         // gradients that are parts of buckets by now
  Bytes bucket_bytes_ = 0;
  std::size_t buckets_ = 0;
};

class Ddp : public Rewriter {
 public:
  explicit Ddp(const PolicyArguments& arguments)
      : settings_{.ranks = static_cast<std::uint32_t>(arguments.integer("ranks")),
                  .bucket = arguments.is_set("bucket_cap") ? arguments.bytes("bucket_cap") : kBucket,
                  .first_bucket = arguments.is_set("bucket_cap") ? arguments.bytes("bucket_cap") : kFirstBucket,
                  .views = arguments.flag("gradient_as_bucket_view"),
                  .reduces_each_pass = arguments.choice("accumulation") == "sync",
                  .broadcasts_buffers = arguments.flag("broadcast_buffers")} {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_reach(machine);
    const Dataflow flow(trace);
    ZeroAnalysis analysis = analyze_for_zero(trace, flow, 0, "ddp");
    order_by_hooks(trace, analysis);
    TraceEdit edit(trace, machine.host);
    DdpReducer reducer(edit, flow, analysis, settings_, pricer);
    reducer.run();
    Trace& result = edit.tables();
    result.ranks = settings_.ranks;
    const auto kind = CollectiveKind::all_reduce;
    result.notes.push_back(fmt::format(
        "ddp: {} per reduction over {} ranks, {} of buckets{}; {}, {} sent per rank",
        counted_text(reducer.buckets(), "bucket"), settings_.ranks, human_bytes(reducer.bucket_bytes()),
        settings_.views ? " that are the gradients" : " beside the gradients",
        counted_text(reducer.program().count(kind), "all-reduce"), human_bytes(reducer.program().sent(kind))));
    if (const std::uint64_t broadcasts = reducer.program().count(CollectiveKind::broadcast); broadcasts > 0)
      result.notes.push_back(fmt::format("ddp: {} of buffers before forward", counted_text(broadcasts, "broadcast")));
    return std::move(edit).apply();
  }

 private:
  void require_reach(const Machine& machine) const {
    if (machine.fabric(settings_.ranks) != nullptr) return;
    throw UsageError("Policy 'ddp': ranks=" + std::to_string(settings_.ranks) + " is more than machine '" +
                     machine.name + "' connects.");
  }

  DdpSettings settings_;
};

PolicyAnswer answer_of_ddp(const Trace& trace) {
  try {
    analyze_for_zero(trace, Dataflow(trace), 0, "ddp");
  } catch (const UsageError& error) {
    return {error.what(), {}, {}};
  }
  return {};
}

const RegisterPolicy registered_ddp{
    {.name = "ddp",
     .sentence = "sums gradients over data-parallel ranks in buckets, as PyTorch's DistributedDataParallel does",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_meeting,
     .parameters = {integer("ranks", kRequired, {2, 1 << 20}, "ranks", "data-parallel ranks"),
                    bytes("bucket_cap", Unset{"auto"}, 1,
                          "size at which a bucket leaves; auto = 25 MiB, but the first at 1 MiB"),
                    flag("gradient_as_bucket_view", false, "1 = buckets are the gradients, 0 = they live beside them"),
                    choice("accumulation", "sync", {"sync", "no_sync"},
                           "several passes per step: sync = each reduces, no_sync = the last one does"),
                    flag("broadcast_buffers", true, "1 = running statistics come from rank 0 before each forward")},
     .answer = answer_of_ddp,
     .make_rewriter = [](const PolicyArguments& arguments) { return std::make_unique<Ddp>(arguments); }}};

}  // namespace
}  // namespace memwall
