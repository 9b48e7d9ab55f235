#include "policies/recipe/program_writer.h"

#include <algorithm>
#include <set>
#include <vector>

#include "policies/recipe/modelled_op.h"

namespace memwall {
namespace {

constexpr int kMostCallsOfAnOp = 0xffff;  // Op::framework_calls

using WrittenTensors = std::initializer_list<const WrittenTensor*>;

std::vector<Use> uses_of(WrittenTensors reads, WrittenTensors writes) {
  std::vector<Use> uses;
  for (const Access access : {Access::read, Access::write}) {
    std::set<StorageId> seen;
    for (const WrittenTensor* t : access == Access::read ? reads : writes)
      if (*t && seen.insert(t->storage).second) uses.push_back({t->storage, 0, access});
  }
  return uses;
}

Bytes bytes_of_all(WrittenTensors reads, WrittenTensors writes) {
  Bytes bytes = 0;
  for (const WrittenTensors& tensors : {reads, writes})
    for (const WrittenTensor* t : tensors) bytes += *t ? t->bytes() : 0;
  return bytes;
}

}  // namespace

OperatorWork elementwise_work(std::string_view name, DataType type, std::int64_t elements) {
  return {.name = name,
          .operator_class = OperatorClass::elementwise,
          .type = type,
          .flops = static_cast<double>(elements),
          .shape = {elements}};
}

OperatorWork memory_work(std::string_view name, DataType type, std::int64_t elements) {
  return {.name = name, .operator_class = OperatorClass::memory, .type = type, .shape = {elements}};
}

OperatorWork product_work(DataType type, std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.name = "aten::mm",
          .operator_class = OperatorClass::gemm,
          .type = type,
          .flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
          .shape = {1, m, n, k}};
}

void ProgramWriter::move_to(InsertionPoint point, const Op& like) {
  point_ = point;
  like_ = like;
}

Op ProgramWriter::named(OpKind kind, std::string_view name) {
  Op op = modelled_op(kind, like_);
  op.name = op.operator_name = edit_.tables().strings.intern(name);
  return op;
}

WrittenTensor ProgramWriter::make(std::string_view label, const Shape& shape, DataType type) {
  Trace& tables = edit_.tables();
  const StorageKind kind = like_.phase == Phase::forward ? StorageKind::activation : StorageKind::workspace;
  const StorageId id = edit_.builder().add_storage(elements_of(shape) * bytes_of(type), kind, "hbm", label);
  tables.storages[id].shape = tables.shapes.intern(shape.empty() ? Shape{1} : shape);
  tables.storages[id].stream = like_.stream;
  alloc(id);
  return {id, shape, type};
}

void ProgramWriter::alloc(StorageId storage) { lifetime(OpKind::alloc, storage); }

void ProgramWriter::free(StorageId storage) { lifetime(OpKind::free, storage); }

void ProgramWriter::lifetime(OpKind kind, StorageId storage) {
  Op op = named(kind, "");
  op.target = storage;
  op.stream = edit_.tables().storages[storage].stream;
  op.host_cost = edit_.costs().allocator_call;
  edit_.insert_complete(point_, op);
}

void ProgramWriter::set_calls(Op& op) {
  op.framework_calls = static_cast<std::uint16_t>(std::min(calls_ + 1, kMostCallsOfAnOp));
  calls_ = 0;
  const HostCosts& costs = edit_.costs();
  op.host_gap =
      std::int64_t{op.framework_calls} * (op.phase == Phase::backward ? costs.eager_backward : costs.eager_forward);
}

Op ProgramWriter::kernel_op(const OperatorWork& work, WrittenTensors reads, WrittenTensors writes) {
  Op op = named(OpKind::kernel, work.name);
  op.source = source_;
  op.operator_class = work.operator_class;
  op.data_type = work.type;
  op.flops = work.flops;
  op.shape = edit_.tables().shapes.intern(work.shape);
  op.bytes = work.bytes < 0 ? bytes_of_all(reads, writes) : work.bytes;
  set_calls(op);
  op.kernels = static_cast<std::uint16_t>(work.kernels);
  op.host_cost = std::int64_t{op.kernels} * edit_.costs().launch;
  op.duration = pricer_.kernel(op, work.shape);
  if (work.instead_of == nullptr || work.instead_of->origin == Origin::modelled) return op;
  const Op& before = *work.instead_of;
  op.duration = pricer_.scaled(before, edit_.base().shapes[before.shape], op, work.shape);
  op.origin = Origin::transferred;
  return op;
}

void ProgramWriter::kernel(const OperatorWork& work, WrittenTensors reads, WrittenTensors writes) {
  const Op op = kernel_op(work, reads, writes);
  std::vector<Use> uses = uses_of(reads, writes);
  if (saves_)
    for (Use& use : uses) use.saved = use.access == Access::read;
  saves_ = false;
  edit_.insert_complete(point_, op, uses);
}

void ProgramWriter::kernel_in_place(OpId id, const OperatorWork& work, WrittenTensors reads, WrittenTensors writes) {
  const Op op = kernel_op(work, reads, writes);
  edit_.replace(id, op, uses_of(reads, writes));
}

void ProgramWriter::read_on_host(const WrittenTensor& number) {
  Op op = named(OpKind::copy, "aten::_local_scalar_dense");
  op.wait_for = WaitFor::own_op;
  op.bytes = number.bytes();
  op.from = edit_.tables().storages[number.storage].place;
  op.to = edit_.tables().place("host");
  op.pageable = true;
  set_calls(op);
  op.host_cost = edit_.costs().copy_call;
  op.return_delay = edit_.costs().synchronize_return;
  op.duration = pricer_.copy(edit_.tables().places[op.from], "host", op.bytes, true);
  edit_.insert_complete(point_, op, {Use{number.storage, 0, Access::read}});
}

}  // namespace memwall
