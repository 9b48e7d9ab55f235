#include "models/workload/import/mwc/mwc_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/workload/import/mwc/mwc_importer.h"
#include "models/workload/import/timed/work_shape.h"
#include "models/workload/import/bytes/quote_for_message.h"

namespace memwall {
namespace {

using Record = MwcRecord;

constexpr std::size_t kMostGroups = 0xffff;                          // Op::group
constexpr std::uint32_t kMostKernels = 0xffff, kMostCalls = 0xffff;  // Op::kernels, Op::framework_calls
constexpr std::uint64_t kMostOps = 1u << 31;                         // OpId, with room for marks and hand-overs

// What one rank sends of a message in a ring (nccl-tests, doc/PERFORMANCE.md); `message` is the whole
// buffer, gathered. A group of one sends nothing.
Bytes ring_bytes(CollectiveKind kind, Bytes message, std::uint32_t ranks) {
  if (ranks < 2 || kind == CollectiveKind::barrier) return 0;
  const double share = (ranks - 1.0) / ranks, size = static_cast<double>(message);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return std::llround(2 * share * size);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return std::llround(share * size);
    default:
      return message;
  }
}

}  // namespace

ImportedMwc MwcImporter::run() {
  t_.name = reader_.header().name;
  if (t_.name.empty()) t_.name = path_.filename().string().substr(0, path_.filename().string().find('.'));
  t_.samples_per_step = reader_.header().samples_per_step;
  t_.tokens_per_step = reader_.header().tokens_per_step;
  t_.place("hbm");
  state_of(streams_, 0);
  while (reader_.next(r_)) {
    ++counts_.records[static_cast<std::size_t>(r_.type)];
    take();
    if (!r_.unreferenced.empty() && !t_.ops.empty()) storages_.end_references(r_, static_cast<OpId>(t_.ops.size() - 1));
  }
  return finish();
}

void MwcImporter::take() {
  if (t_.ops.size() >= kMostOps - 4) fail(fmt::format("the file has more than {} ops.", kMostOps));
  switch (r_.type) {
    case MwcRecordType::storage:
      return add_storage();
    case MwcRecordType::alloc:
      return allocate();
    case MwcRecordType::free:
      return free();
    case MwcRecordType::op:
      return compute();
    case MwcRecordType::copy:
      return copy();
    case MwcRecordType::collective:
      return collective();
    case MwcRecordType::event:
      return event();
    case MwcRecordType::synchronize:
      return synchronize();
    case MwcRecordType::step:
      mark(r_.name);
      if (!t_.steps.empty()) t_.steps.back().last = static_cast<OpId>(t_.ops.size() - 1);
      t_.steps.push_back({std::string(r_.name), static_cast<OpId>(t_.ops.size() - 1), 0});
      return;
    case MwcRecordType::loss:
      return mark("loss");
    case MwcRecordType::end:  // the reader's own
    case MwcRecordType::none:
      break;
  }
}

// --- storages

void MwcImporter::add_storage() {
  storages_.add(r_);
  state_of(streams_, r_.stream);
}

void MwcImporter::allocate() {
  const StorageId id = storages_.allocate(r_.storage);
  Op op = host_part(OpKind::alloc);
  op.target = id;
  op.stream = t_.storages[id].stream;
  const OpId at = append(op);
  if (!r_.has_phase) threads_[r_.thread].pending.push_back(at);
}

void MwcImporter::free() {
  const StorageId id = storages_.free(r_.storage);
  const std::uint16_t own = t_.storages[id].stream;
  counts_.shared_frees +=
      std::any_of(r_.streams.begin(), r_.streams.end(), [&](std::uint32_t stream) { return stream != own; });
  Op op = host_part(OpKind::free);
  op.target = id;
  op.stream = t_.storages[id].stream;
  if (!r_.has_phase) {
    const MwcThread& thread = state_of(threads_, r_.thread);
    op.phase = thread.phase;
    op.module = thread.module;
  }
  append(op);
}

// --- ops

Op MwcImporter::host_part(OpKind kind) {
  Op op;
  op.kind = kind;
  op.phase = r_.phase;
  op.origin = reader_.header().real ? Origin::measured : Origin::modelled;
  op.thread = r_.thread;
  op.module = t_.strings.intern(r_.module);
  op.host_gap = r_.gap;
  op.host_cost = r_.host;
  return op;
}

Op MwcImporter::launch(OpKind kind, std::string_view name) {
  Op op = host_part(kind);
  op.name = op.operator_name = t_.strings.intern(name);
  op.stream = r_.stream;
  op.operator_class = r_.operator_class;
  op.data_type = r_.data_type;
  op.flops = r_.flops;
  op.bytes = std::max<Bytes>(r_.bytes, 0);
  const bool measured = r_.duration != Record::kNoDuration;
  op.origin = measured ? Origin::measured : Origin::modelled;
  if (measured) op.duration = r_.duration;
  ++(measured ? counts_.measured : counts_.unmeasured);
  counts_.random += r_.random;
  op.dispatch = r_.compiled ? Dispatch::compiled : Dispatch::eager;
  op.framework_calls = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(calls() + std::exchange(state_of(threads_, r_.thread).waiting_calls, 0), kMostCalls));
  find_original(op);
  return op;
}

// Operators that the framework dispatched for this record. What a compiler made is not dispatched.
std::uint64_t MwcImporter::calls() const { return r_.calls != Record::kNone ? r_.calls : r_.compiled ? 0 : 1; }

// A trace's recomputation names its original; only collectives may do without. An op of backward names the op whose
// node it belongs to, if the file says it.
void MwcImporter::find_original(Op& op) {
  if (op.phase == Phase::backward && r_.forward != Record::kNone) op.source = op_of_.find(r_.forward);
  if (op.phase != Phase::recompute) return;
  if (r_.forward != Record::kNone && op_of_.find(r_.forward) != NumberTable::kAbsent) {
    op.source = op_of_.find(r_.forward);
  } else if (op.kind == OpKind::kernel || op.kind == OpKind::copy) {
    if (r_.forward != Record::kNone)
      fail(fmt::format("the record repeats op {}, which launches nothing or is not before it.", r_.forward));
    op.phase = Phase::backward;
    ++counts_.without_original;
  }
}

void MwcImporter::compute() {
  const bool host = r_.kernels == 0;
  storages_.collect_uses(r_, host ? AccessibleStorages::host : AccessibleStorages::device, uses_);
  const bool writes = std::any_of(uses_.begin(), uses_.end(), [](const Use& u) { return u.access == Access::write; });
  if (host && !writes && r_.host.count() == 0 && r_.gap.count() == 0) {
    ++counts_.without_kernel;
    state_of(threads_, r_.thread).waiting_calls += calls();
    return;
  }
  Op op = launch(host ? OpKind::host_work : OpKind::kernel, r_.name);
  storages_.take_shapes(r_);
  if (host) {
    --(op.origin == Origin::measured ? counts_.measured : counts_.unmeasured);
    op.origin = reader_.header().real ? Origin::measured : Origin::modelled;
    op.duration = std::exchange(op.host_cost, Duration{});
    op.stream = 0;
  } else {
    op.kernels = static_cast<std::uint16_t>(std::min(r_.kernels, kMostKernels));
    op.shape = t_.shapes.intern(work_shape(r_));
    counts_.kernels += r_.kernels;
    counts_.several += r_.kernels > 1;
    counts_.priceless += op.bytes == 0 && op.flops == 0 && op.origin == Origin::modelled;
    ++state_of(streams_, r_.stream).kernels;
  }
  const OpId at = append(op);
  if (r_.id == Record::kNone) return;
  if (op_of_.find(r_.id) != NumberTable::kAbsent) fail(fmt::format("op {} is recorded a second time.", r_.id));
  op_of_.put(r_.id, at);
}

void MwcImporter::copy() {
  if (r_.from == MwcPlace::none || r_.to == MwcPlace::none)
    fail("the copy does not say \"from\" where \"to\" where; expected hbm, host or host_pinned.");
  if ((r_.from == MwcPlace::hbm) == (r_.to == MwcPlace::hbm))
    fail(fmt::format("the copy goes from {} to {}; expected one side in hbm and the other on the host.",
                     to_string(r_.from), to_string(r_.to)));
  storages_.collect_uses(r_, AccessibleStorages::both, uses_);
  const bool to_device = r_.to == MwcPlace::hbm;
  Op op = launch(OpKind::copy, !r_.call.empty() ? r_.call : to_device ? "copy host to hbm" : "copy hbm to host");
  op.from = t_.place(to_device ? "host" : "hbm");
  op.to = t_.place(to_device ? "hbm" : "host");
  op.pageable = (to_device ? r_.from : r_.to) == MwcPlace::host;
  if (r_.blocking) op.wait_for = WaitFor::own_op;
  ++state_of(streams_, r_.stream).copies;
  const OpId at = append(op);
  if (r_.id != Record::kNone && op_of_.find(r_.id) == NumberTable::kAbsent) op_of_.put(r_.id, at);
}

std::uint16_t MwcImporter::group_index() {
  auto& groups = counts_.groups;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == r_.group; });
  if (found == groups.end()) {
    if (groups.size() >= kMostGroups) fail(fmt::format("the file has more than {} process groups.", kMostGroups));
    groups.emplace_back(r_.group, r_.ranks);
    return static_cast<std::uint16_t>(groups.size() - 1);
  }
  if (found->second != r_.ranks)
    fail(fmt::format("group {} has {} ranks here and {} before.", quote_for_message(r_.group), r_.ranks, found->second));
  return static_cast<std::uint16_t>(found - groups.begin());
}

void MwcImporter::collective() {
  if (r_.ranks == Record::kNone || r_.ranks == 0) fail("the collective does not say how many \"ranks\" its group has.");
  if (r_.bytes == Record::kNoBytes && r_.collective != CollectiveKind::barrier)
    fail("the collective has no \"bytes\"; expected those of this rank's larger buffer.");
  storages_.collect_uses(r_, AccessibleStorages::both, uses_);
  Op op = launch(OpKind::collective, r_.call.empty() ? to_string(r_.collective) : r_.call);
  op.collective = r_.collective;
  op.bytes = ring_bytes(r_.collective, std::max<Bytes>(r_.bytes, 0), r_.ranks);
  op.group = group_index();
  if (r_.blocking) op.wait_for = WaitFor::own_op;
  ++state_of(streams_, r_.stream).collectives;
  const OpId at = append(op);
  if (r_.id != Record::kNone && op_of_.find(r_.id) == NumberTable::kAbsent) op_of_.put(r_.id, at);
}

void MwcImporter::event() {
  if (r_.event == Record::kNone) fail("the event has no \"number\".");
  Op op = host_part(r_.event_call == MwcEventCall::record ? OpKind::event_record : OpKind::event_wait);
  op.target = event_of_.find(r_.event);
  if (op.kind == OpKind::event_wait && op.target == NumberTable::kAbsent) {
    ++counts_.waits_without_event;  // CUDA: an event that was never recorded holds nothing up
    return;
  }
  if (op.target == NumberTable::kAbsent) event_of_.put(r_.event, op.target = builder_.add_event());
  op.stream = r_.stream;
  state_of(streams_, r_.stream);
  append(op);
}

void MwcImporter::synchronize() {
  Op op = host_part(OpKind::synchronize);
  // `.item()` waits for its own copy, the last thing in its stream.
  op.wait_for = r_.wait_for == WaitFor::own_op ? WaitFor::stream : r_.wait_for;
  if (op.wait_for == WaitFor::event) {
    if (r_.event == Record::kNone) fail("the host waits for an event that has no \"number\".");
    op.target = event_of_.find(r_.event);
    if (op.target == NumberTable::kAbsent) {
      ++counts_.waits_without_event;
      return;
    }
  }
  op.stream = r_.stream;
  state_of(streams_, r_.stream);
  append(op);
}

void MwcImporter::mark(std::string_view name) {
  r_.thread = thread_;
  Op op = host_part(OpKind::mark);
  op.name = t_.strings.intern(name);
  uses_.clear();
  append(op);
}

ImportedMwc read_mwc(const std::filesystem::path& path) { return MwcImporter(path).run(); }

bool recognizes_mwc(const FileHead& head) { return is_mwc(head.text); }

ImportedStep import_mwc(const std::filesystem::path& path, const ImportSettings&) {
  ImportedMwc captured = read_mwc(path);
  ImportedStep step;
  step.trace = std::move(captured.trace);
  step.report = std::move(captured.report);
  step.note_kinds = std::move(captured.note_kinds);
  step.decisions = std::move(captured.decisions);
  step.files.push_back(path);
  if (captured.measured) {
    step.gpu = captured.gpu;
    step.gpu_memory = captured.gpu_bytes;
  }
  return step;
}

}  // namespace memwall
