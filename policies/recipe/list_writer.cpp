#include "policies/recipe/list_writer.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <string>

#include "policies/recipe/modelled_op.h"
#include "sim/trace/multi_tensor_launches.h"

namespace memwall {
namespace {

constexpr std::size_t kMostCalls = 0xffff;  // Op::framework_calls

// Each storage once for each access, in order.
std::vector<Use> uses_of(std::initializer_list<const TensorList*> reads,
                         std::initializer_list<const TensorList*> writes) {
  std::vector<Use> uses;
  for (const Access access : {Access::read, Access::write}) {
    std::set<StorageId> seen;
    for (const TensorList* list : access == Access::read ? reads : writes)
      for (const ListedTensor& t : *list)
        if (seen.insert(t.storage).second) uses.push_back({t.storage, 0, access});
  }
  return uses;
}

Bytes bytes_moved(std::initializer_list<const TensorList*> lists) {
  Bytes bytes = 0;
  for (const TensorList* list : lists)
    for (const ListedTensor& t : *list) bytes += t.elements * bytes_of(t.type);
  return bytes;
}

Duration dispatch_cost(const HostCosts& costs, Phase phase) {
  if (phase == Phase::optimizer) return costs.eager_optimizer;
  return phase == Phase::backward ? costs.eager_backward : costs.eager_forward;
}

}  // namespace

Op ListWriter::common(OpKind kind, std::string_view name) {
  Op op = modelled_op(kind, like_);
  op.name = op.operator_name = edit_.tables().strings.intern(name);
  return op;
}

void ListWriter::call(const ListCall& call, std::initializer_list<const TensorList*> reads,
                      std::initializer_list<const TensorList*> writes) {
  const TensorList& first = reads.size() > 0 ? **reads.begin() : **writes.begin();
  assert(!first.empty());
  std::vector<std::int64_t> elements;
  std::int64_t all = 0;
  for (const ListedTensor& t : first) {
    elements.push_back(t.elements);
    all += t.elements;
  }
  Op op = common(OpKind::kernel, call.name);
  op.operator_class = call.operator_class;
  op.data_type = first.front().type;
  op.flops = call.flops_per_element * static_cast<double>(all);
  op.shape = edit_.tables().shapes.intern({all});
  if (call.lists > 0) op.kernels = static_cast<std::uint16_t>(multi_tensor_launches(elements, call.lists));
  op.bytes = call.bytes >= 0 ? call.bytes : bytes_moved(reads) + bytes_moved(writes);
  op.framework_calls = static_cast<std::uint16_t>(std::min(calls_ + 1, kMostCalls));
  calls_ = 0;
  const HostCosts& costs = edit_.costs();
  op.host_gap = std::int64_t{op.framework_calls} * dispatch_cost(costs, op.phase);
  op.host_cost = std::int64_t{op.kernels} * costs.launch;
  op.duration = pricer_.kernel(op, edit_.tables().shapes[op.shape]);
  edit_.insert_complete(point_, op, uses_of(reads, writes));
}

void ListWriter::prefetch(std::uint16_t stream, const ListedTensor& from, const ListedTensor& to,
                          const ListedTensor& moved) {
  const Trace& tables = edit_.tables();
  Op op = common(OpKind::copy, "cudaMemPrefetchAsync");
  op.stream = stream;
  op.bytes = moved.elements * bytes_of(moved.type);
  op.from = tables.storages[from.storage].place;
  op.to = tables.storages[to.storage].place;
  op.framework_calls = static_cast<std::uint16_t>(std::min(calls_ + 1, kMostCalls));
  calls_ = 0;
  op.host_gap = std::int64_t{op.framework_calls} * dispatch_cost(edit_.costs(), op.phase);
  op.host_cost = edit_.costs().copy_call;
  op.duration = pricer_.copy(tables.places[op.from], tables.places[op.to], op.bytes, false);
  edit_.insert_complete(point_, op, {Use{from.storage, 0, Access::read}, Use{to.storage, 0, Access::write}});
}

void ListWriter::let_follow(std::uint16_t stream) {
  Op op = common(OpKind::event_record, "");
  op.target = edit_.builder().add_event();
  op.host_cost = edit_.costs().event_call;
  edit_.insert_complete(point_, op);
  op.kind = OpKind::event_wait;
  op.stream = stream;
  edit_.insert_complete(point_, op);
}

void ListWriter::synchronize(WaitFor what) {
  Op op = common(OpKind::synchronize, "cudaDeviceSynchronize");
  op.stream = 0;
  op.wait_for = what;
  op.return_delay = edit_.costs().synchronize_return;
  edit_.insert_complete(point_, op);
}

ListedTensor ListWriter::make(std::string_view label, const ListedTensor& like) {
  Trace& tables = edit_.tables();
  const Storage beside = tables.storages[like.storage];
  const StorageKind kind = like_.phase == Phase::forward ? StorageKind::activation : StorageKind::workspace;
  const StorageId id =
      edit_.builder().add_storage(like.elements * bytes_of(like.type), kind, tables.places[beside.place], label);
  tables.storages[id].shape = beside.shape;
  tables.storages[id].stream = like_.stream;
  Op op = common(OpKind::alloc, "");
  op.target = id;
  op.host_cost = edit_.costs().allocator_call;
  edit_.insert_complete(point_, op);
  return {id, like.elements, like.type};
}

void ListWriter::drop(const ListedTensor& tensor) {
  Op op = common(OpKind::free, "");
  op.target = tensor.storage;
  op.stream = edit_.tables().storages[tensor.storage].stream;
  op.host_cost = edit_.costs().allocator_call;
  edit_.insert_complete(point_, op);
}

}  // namespace memwall
