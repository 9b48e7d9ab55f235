// Tensor parallelism of a step of one GPU: the step as one of `ranks` GPUs runs it that share each layer, as Megatron-LM
// divides them (Shoeybi et al. 2019; ../shared/spec/parallelism.md, 2.1 and 10.2). Weights of linear layers are split by
// outputs (column) or by inputs (row), told by the names of their modules; heads, the MLP's inner width and the
// vocabulary go with them. What a row makes, and backward what a column makes, is a part of a sum: an all-reduce stands
// behind it, which the next op waits for.
//
// A measured duration becomes measured x predicted part / predicted whole; what is added is modelled. The host does the
// same calls, so a step of small parts is bound by the host. Kernels that a library would choose for other sizes are not
// seen. The loss keeps its program and sums three numbers of each row over ranks.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "policies/parallel/tensor_roles.h"
#include "policies/parallel/tensor_split.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

struct TensorSettings {
  std::int64_t ranks = 2;
  std::vector<std::string> column, row;
};

class TensorRewrite {
 public:
  TensorRewrite(const Trace& trace, const TensorSettings& settings, const Machine& machine, const Pricer& pricer)
      : old_(trace),
        settings_(settings),
        pricer_(pricer),
        roles_(settings.column, settings.row),
        split_(trace, roles_, settings.ranks),
        edit_(trace, machine.host) {}

  Trace run() && {
    require_one_replica();
    group_ = static_cast<std::uint16_t>(edit_.tables().groups.size());
    edit_.tables().groups.push_back({"tensor parallel", static_cast<std::uint32_t>(settings_.ranks), members()});
    const std::uint16_t stream = edit_.stream("tensor parallel", StreamRole::communication);
    for (StorageId s = 0; s < old_.storages.size(); ++s)
      if (split_.is_split(s)) shrink(s);
    for (OpId id = 0; id < old_.ops.size(); ++id)
      if (split_.is_changed(id)) edit_.replace(id, part_of(id));
    for (const TensorSplit::Sum& sum : split_.sums()) add(sum, stream);
    note();
    return of_job(std::move(edit_).apply());
  }

 private:
  void require_one_replica() const {
    const bool communicates = std::any_of(old_.ops.begin(), old_.ops.end(),
                                          [](const Op& op) { return op.kind == OpKind::collective; });
    if (communicates || old_.ranks > 1)
      throw UsageError(fmt::format(
          "Policy 'tensor': trace '{}' communicates with other ranks already; expected a step of one GPU (a generated "
          "step says it itself: tensor={}).",
          old_.name, settings_.ranks));
  }

  std::vector<std::uint32_t> members() const {
    std::vector<std::uint32_t> all(static_cast<std::size_t>(settings_.ranks));
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }

  void shrink(StorageId id) {
    const Bytes bytes = old_.storages[id].bytes;
    saved_ += bytes - bytes / settings_.ranks;
    edit_.resize(id, bytes / settings_.ranks);
    edit_.tables().storages[id].shape = 0;
    ++storages_;
  }

  Op part_of(OpId id) {
    Op op = split_.part_of(id, edit_.tables().shapes);
    const Op& before = old_.ops[id];
    if (before.duration.count() == 0 && !old_.knowledge.timing) return op;  // modelled later
    const Shape &was = old_.shapes[before.shape], &is = edit_.tables().shapes[op.shape];
    if (before.kind == OpKind::kernel || before.kind == OpKind::memset)
      op.duration = before.origin == Origin::modelled ? pricer_.kernel(op, is) : pricer_.scaled(before, was, op, is);
    else if (before.bytes > 0)
      op.duration = from_picoseconds(static_cast<double>(before.duration.count()) * static_cast<double>(op.bytes) /
                                     static_cast<double>(before.bytes));
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    return op;
  }

  void add(const TensorSplit::Sum& sum, std::uint16_t stream) {
    const InsertionPoint behind{sum.behind, true};
    const std::uint16_t compute = old_.ops[sum.behind].stream;
    const auto ranks = static_cast<std::uint32_t>(settings_.ranks);
    Op op;
    op.kind = OpKind::collective;
    op.collective = CollectiveKind::all_reduce;
    op.stream = stream;
    op.group = group_;
    op.data_type = sum.type;
    op.module = old_.ops[sum.behind].module;
    op.name = op.operator_name = edit_.tables().strings.intern("c10d::allreduce_");
    op.bytes = pricer_.wire_bytes(CollectiveKind::all_reduce, sum.bytes, ranks);
    op.duration = pricer_.collective(CollectiveKind::all_reduce, sum.bytes, edit_.tables().groups[group_]);
    op.host_cost = edit_.costs().launch;
    edit_.wait_stream(behind, stream, compute);
    edit_.insert(behind, op, std::vector<Use>{{sum.storage, 0, Access::read}, {sum.storage, 0, Access::write}});
    edit_.wait_stream(behind, compute, stream);
    summed_ += sum.bytes;
  }

  void note() {
    edit_.tables().notes.push_back(fmt::format(
        "tensor: {} layers are split by outputs and {} by inputs over {} ranks; {} of {} storages are smaller, by {} in "
        "all; {} sums over ranks of {} in all.",
        split_.columns(), split_.rows(), settings_.ranks, storages_, old_.storages.size(), human_bytes(saved_),
        split_.sums().size(), human_bytes(summed_)));
  }

  // The rank stands for all of its group.
  Trace of_job(Trace trace) const {
    std::vector<std::uint32_t> others = members();
    others.erase(others.begin());
    const std::string name = trace.name;
    std::vector<RankProgram> one;
    one.push_back({0, std::move(trace), std::move(others)});
    Trace job = joined_ranks(std::move(one));
    job.job_ranks = static_cast<std::uint32_t>(settings_.ranks);
    job.name = name;
    return job;
  }

  const Trace& old_;
  const TensorSettings& settings_;
  const Pricer& pricer_;
  const TensorRoles roles_;
  const TensorSplit split_;
  TraceEdit edit_;
  std::uint16_t group_ = 0;
  std::size_t storages_ = 0;
  Bytes saved_ = 0, summed_ = 0;
};

class Tensor : public Rewriter {
 public:
  explicit Tensor(TensorSettings settings) : settings_(std::move(settings)) {}
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    require_names(trace, settings_.column, settings_.row);
    return TensorRewrite(trace, settings_, machine, pricer).run();
  }

 private:
  TensorSettings settings_;
};

PolicyAnswer answer_of_tensor(const Trace& trace) {
  try {
    const TensorRoles roles({}, {});
    const TensorSplit split(trace, roles, 2);
  } catch (const UsageError& error) {
    return {.refusal = error.what(), .setting = {}, .reason = {}};
  }
  return {};
}

const RegisterPolicy registered_tensor{
    {.name = "tensor",
     .sentence = "shares each layer of a step of one GPU among several (tensor parallelism, Megatron-LM): weights by "
                 "columns and rows, told by the names of modules",
     .kind = PolicyKind::model_parallelism,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .modules = true, .shapes = true},
     .ranks = RankRule::one_program,
     .parameters = {integer("ranks", 2, {2, 1024}, "GPUs", "that share each layer."),
                    patterns("column", Unset{"none"}, "further modules that are split by outputs: last names of their paths."),
                    patterns("row", Unset{"none"}, "further modules that are split by inputs: last names of their paths.")},
     .answer = answer_of_tensor,
     .make_rewriter = [](const PolicyArguments& a) {
       const auto names = [&](const char* key) {
         return a.is_set(key) ? a.list(key) : std::vector<std::string>{};
       };
       return std::make_unique<Tensor>(TensorSettings{a.integer("ranks"), names("column"), names("row")});
     }}};

}  // namespace
}  // namespace memwall
