// One step of ResNet-50 in fp32 on two GPUs: batch 128 on H100 (TrioSim, traces/triosim/resnet50_h100_bs128) and batch
// 32 on V100 (Kineto, traces/kineto/resnet50_v100_bs32_2021.json.gz), operator by operator in order.
//
// They differ in more than the GPU: four times the batch, PyTorch and cuDNN of 2021 against later ones, convolutions in
// fp32 by Winograd and the like against TF32, and times in whole microseconds. The work of the smaller batch is that of
// the larger with a quarter of the samples. Times of an operator are those of its kernels; operators of less than 20 us
// on either GPU are left out, and so is the optimizer, another one.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/tables/triosim_import.h"
#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

constexpr std::int64_t kTimesBatch = 4;
constexpr double kShortest = 20e-6;

struct Name {
  const char *v100, *h100, *key;  // key: what both are called here
};
constexpr Name kNames[] = {
    {"aten::cudnn_convolution", "aten::conv2d", "convolution forward"},
    {"aten::cudnn_convolution_backward_input", "aten::convolution_backward", "convolution backward"},
    {"aten::cudnn_convolution_backward_weight", "aten::convolution_backward", "convolution backward"},
    {"aten::cudnn_batch_norm", "aten::batch_norm", "batch norm forward"},
    {"aten::cudnn_batch_norm_backward", "aten::cudnn_batch_norm_backward", "batch norm backward"},
    {"aten::clamp_min", "aten::relu_", "relu forward"},
    {"aten::threshold_backward", "aten::relu_backward", "relu backward"},
    {"aten::max_pool2d_with_indices", "aten::max_pool2d", "max pool forward"},
    {"aten::max_pool2d_with_indices_backward", "aten::max_pool2d_with_indices_backward", "max pool backward"},
};

struct Operator {
  double seconds = 0;
  Op op;  // of its last kernel
  Shape shape;
};

// Kernels of one operator stand in a row, but for those of operators that are not compared.
std::map<std::string, std::vector<Operator>> operators_of(const Trace& trace, const char* Name::*name) {
  std::map<std::string, std::vector<Operator>> all;
  std::string before;
  const bool several = trace.steps.size() > 1;  // the second step: the first warms up
  const OpId first = several ? trace.steps[1].first : 0;
  const OpId last = several ? trace.steps[1].last : static_cast<OpId>(trace.ops.size());
  for (OpId i = first; i < last; ++i) {
    const Op& op = trace.ops[i];
    const std::string& called = trace.strings[op.operator_name];
    const auto known =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const Name& n) { return called == n.*name; });
    if (op.kind != OpKind::kernel || known == std::end(kNames)) continue;
    std::vector<Operator>& list = all[known->key];
    if (before != known->key || name == &Name::h100) list.emplace_back();
    before = known->key;
    list.back().seconds += to_seconds(op.duration);
    list.back().op = op;
    list.back().shape = trace.shapes[op.shape];
  }
  return all;
}

// The same operator at a quarter of the batch.
WorkPart quarter(WorkPart part) {
  part.op.bytes /= kTimesBatch;
  part.op.flops /= kTimesBatch;
  if (!part.shape.empty()) part.shape.front() = std::max<std::int64_t>(part.shape.front() / kTimesBatch, 1);
  return part;
}

}  // namespace

std::vector<TransferRow> resnet_rows(const std::filesystem::path& triosim, const std::filesystem::path& kineto) {
  if (!std::filesystem::exists(triosim) || !std::filesystem::exists(kineto)) return {};
  const auto v100 = operators_of(import_kineto(kineto, {}).trace, &Name::v100),
             h100 = operators_of(import_triosim(triosim, {}).trace, &Name::h100);
  std::vector<TransferRow> rows;
  for (const auto& [key, there] : h100) {
    const auto here = v100.find(key);
    if (here == v100.end() || here->second.size() != there.size()) continue;
    for (std::size_t i = 0; i < there.size(); ++i) {
      if (here->second[i].seconds < kShortest || there[i].seconds < kShortest) continue;
      TransferRow row;
      row.table = "resnet50, H100 and V100";
      row.name = fmt::format("{} {}", key, i);
      row.from = "v100-sxm2-32gb";
      row.to = "h100-sxm-80gb";
      WorkPart work;
      work.op = there[i].op;
      work.op.kernels = 1;
      work.op.data_type = DataType::fp32;
      work.shape = there[i].shape;
      row.kind = fmt::format("{}, other batch and software", to_string(work.op.operator_class));
      row.work = {quarter(work)};
      if (work.op.operator_class == OperatorClass::convolution) work.op.data_type = DataType::tf32;
      row.new_work = {work};
      row.measured_from = here->second[i].seconds;
      row.measured_to = there[i].seconds;
      add_both_ways(rows, row);
    }
  }
  return rows;
}

}  // namespace memwall
