#include "policies/sharding/zero_reduction.h"

#include <algorithm>
#include <optional>
#include <set>

#include "policies/sharding/zero_buckets.h"

namespace memwall {
namespace {

using Streams = std::set<std::uint16_t>;

// One bucket on its way.
struct Bucket {
  std::vector<GradientMade> made;
  std::vector<StorageId> slices;  // the gradients of the base trace
  std::vector<StorageId> whole;   // what backward writes: the same in stages 0 and 1
  Streams producers, waiting;     // streams that made the gradients; that go on when it has arrived
  InsertionPoint point;           // where it leaves
  std::uint32_t event = 0;        // when it has arrived
};

class Reduction {
 public:
  Reduction(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis, const Partition& messages,
            const ZeroSettings& settings, const Pricer& pricer)
      : edit_(edit),
        original_(edit.base()),
        flow_(flow),
        analysis_(analysis),
        messages_(messages),
        settings_(settings),
        communication_(edit, pricer, settings.ranks, "zero.reduce") {}

  ReductionSummary run() {
    for (const BackwardPass& pass : analysis_.passes)
      // Whole gradients add up over passes and are reduced once; slices need every pass's share.
      if (settings_.stage >= 2 || pass.before_update) reduce(pass);
    summary_.bytes_sent = communication_.bytes_sent();
    return summary_;
  }

 private:
  bool frees() const { return settings_.stage >= 2; }

  void reduce(const BackwardPass& pass) {
    std::vector<Bytes> sizes;
    for (const GradientMade& made : pass.made) sizes.push_back(original_.storages[made.gradient].bytes);
    const BucketRule rule = settings_.stage == 0 ? BucketRule::close_when_reached : BucketRule::never_exceed;
    std::optional<Bucket> in_flight;  // sent, and nothing waits for it yet
    for (const auto& group : fill_buckets(sizes, settings_.bucket, rule)) {
      Bucket bucket = gather(pass, group);
      if (in_flight && frees()) finish(*in_flight, bucket.point);
      send(bucket);
      ++summary_.buckets;
      if (!settings_.overlap) {
        finish(bucket, bucket.point);
      } else if (frees() || !hold_early_user(bucket, pass)) {
        // Its stream is in order: who waits for this bucket waits for those before it too.
        if (in_flight) bucket.waiting.merge(in_flight->waiting);
        in_flight = std::move(bucket);
      }
    }
    if (in_flight) finish(*in_flight, {pass.last_backward, true});
  }

  Bucket gather(const BackwardPass& pass, const std::vector<std::size_t>& group) {
    Bucket bucket;
    for (const std::size_t i : group) {
      const GradientMade& made = pass.made[i];
      bucket.made.push_back(made);
      bucket.slices.push_back(made.gradient);
      bucket.whole.push_back(frees() ? whole_gradient(made) : made.gradient);
      bucket.producers.insert(original_.ops[made.ready].stream);
      bucket.point = {made.ready, true};  // sorted by readiness: the last one stays
    }
    bucket.waiting = bucket.producers;
    const OpId user = next_user(bucket);
    if (user != kNoOp && runs_on_device(original_.ops[user].kind)) bucket.waiting.insert(original_.ops[user].stream);
    return bucket;
  }

  // A storage for the gradient until it is reduced; its ops of this pass work on it.
  StorageId whole_gradient(const GradientMade& made) {
    const Storage& old = original_.storages[made.gradient];
    const StorageId whole =
        edit_.builder().add_storage(old.bytes, old.kind, original_.places[old.place], original_.strings[old.label]);
    edit_.tables().storages[whole].stream = old.stream;
    edit_.alloc({made.first_write, false}, whole);
    for (const Touch& touch : flow_.touches(made.gradient))
      if (touch.op >= made.first_write && touch.op <= made.ready) edit_.repoint(touch.op, made.gradient, whole);
    return whole;
  }

  void send(Bucket& bucket) {
    const CollectiveKind kind = settings_.stage == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
    const Bytes message = message_of(bucket);
    communication_.after(bucket.point, bucket.producers);
    std::vector<StorageId> source = bucket.whole;
    StorageId buffer = kNoStorage;
    if (source.size() > 1) {
      const std::uint8_t place = original_.storages[bucket.slices.front()].place;
      buffer = communication_.storage(message, StorageKind::communication_buffer, place, "zero.bucket");
      summary_.largest_buffer = std::max(summary_.largest_buffer, message);
      edit_.alloc(bucket.point, buffer);
      communication_.copy(bucket.point, "zero.flatten", message, source, {buffer});
      source = {buffer};
    }
    if (settings_.stage == 0) {
      communication_.collective(bucket.point, kind, message, source, source);
      if (buffer != kNoStorage) communication_.copy(bucket.point, "zero.unflatten", message, source, bucket.slices);
    } else {
      if (frees()) add_earlier_sums(bucket, source);
      communication_.collective(bucket.point, kind, message, source, bucket.slices);
    }
    // In order within its stream: the next buffer may take the same memory at once.
    if (buffer != kNoStorage) edit_.free(bucket.point, buffer);
    bucket.event = communication_.mark(bucket.point);
  }

  Bytes message_of(const Bucket& bucket) const {
    if (settings_.stage > 0) return messages_.message(bucket.slices);
    Bytes sum = 0;
    for (const StorageId id : bucket.slices) sum += original_.storages[id].bytes;
    return sum;
  }

  // A slice that holds something already takes the sum.
  void add_earlier_sums(const Bucket& bucket, std::vector<StorageId>& source) const {
    for (const GradientMade& made : bucket.made)
      if (made.accumulates) source.push_back(made.gradient);
  }

  // Compute goes on with what was reduced; whole gradients are no longer needed.
  void finish(const Bucket& bucket, InsertionPoint point) {
    communication_.hold(point, bucket.event, bucket.waiting);
    if (!frees()) return;
    for (const StorageId whole : bucket.whole) edit_.free(point, whole);
  }

  // The first op after the reduction that uses one of the gradients, or frees it.
  OpId next_user(const Bucket& bucket) const {
    OpId user = kNoOp;
    for (const GradientMade& made : bucket.made) {
      for (const Touch& touch : flow_.touches(made.gradient))
        if (touch.op > made.ready && !edit_.removed(touch.op)) user = std::min(user, touch.op);
      if (const OpId free = flow_.free(made.gradient); free > made.ready) user = std::min(user, free);
    }
    return user;
  }

  // An op of the same backward pass may use a reduced gradient (an optimizer in a backward hook).
  // Returns whether one does; it waits then.
  bool hold_early_user(const Bucket& bucket, const BackwardPass& pass) {
    const OpId user = next_user(bucket);
    if (user >= pass.last_backward) return false;
    communication_.hold({user, false}, bucket.event, bucket.waiting);
    return true;
  }

  TraceEdit& edit_;
  const Trace& original_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const Partition& messages_;
  const ZeroSettings& settings_;
  CommunicationStream communication_;
  ReductionSummary summary_;
};

}  // namespace

ReductionSummary reduce_gradients(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis,
                                  const Partition& messages, const ZeroSettings& settings, const Pricer& pricer) {
  return Reduction(edit, flow, analysis, messages, settings, pricer).run();
}

}  // namespace memwall
