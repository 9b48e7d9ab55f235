// FlashAttention 1 and 2, and attention as PyTorch's operators alone make it, forward and backward, A100 80 GB and
// H100: flashattention_tflops_a100_h100.csv. 16384 tokens, hidden size 2048, fp16.
//
// Without fusion: two products forward and four backward, and what reads and writes the matrix of scores between them:
// softmax (and mask) forward, their gradients backward.
#include <fmt/format.h>

#include <map>

#include "models/hw/attention_cost.h"
#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

struct Setting {
  std::int64_t causal, head_size, length;
  std::int64_t batch() const { return 16384 / length; }
  std::int64_t heads() const { return 2048 / head_size; }
};

std::vector<WorkPart> fused_work(const Setting& s) {
  const Shape shape{s.batch(), s.heads(), s.heads(), s.length, s.length, s.head_size, s.causal};
  std::vector<WorkPart> parts;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    parts.push_back(kernel_work(OperatorClass::attention, DataType::fp16, phase, 0, shape));
    parts.back().op.flops = attention_flops(shape) * (phase == Phase::backward ? 2.5 : 1);
  }
  return parts;
}

std::vector<WorkPart> separate_work(const Setting& s) {
  const std::int64_t count = s.batch() * s.heads();
  std::vector<WorkPart> parts;
  const double scores = static_cast<double>(count) * static_cast<double>(s.length) * static_cast<double>(s.length);
  const double mask = s.causal != 0 ? 4 : 0;  // read and written once more
  parts.push_back(
      kernel_work(OperatorClass::reduction, DataType::fp16, Phase::forward, (4 + mask) * scores, {}, s.causal ? 2 : 1));
  parts.push_back(kernel_work(OperatorClass::reduction, DataType::fp16, Phase::backward, (6 + mask) * scores, {},
                              s.causal ? 2 : 1));
  const auto product = [&](Phase phase, std::int64_t n, std::int64_t k) {
    parts.push_back(kernel_work(OperatorClass::gemm, DataType::fp16, phase, 2 * scores, {count, s.length, n, k}));
    parts.back().op.flops = 2 * scores * static_cast<double>(s.head_size);
  };
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::backward}) {
    product(phase, s.length, s.head_size);
    product(phase, s.head_size, s.length);
  }
  return parts;
}

}  // namespace

std::vector<TransferRow> attention_rows(const std::vector<CsvTableRow>& table) {
  std::map<std::string, TransferRow> a100;
  std::vector<TransferRow> rows;
  for (const CsvTableRow& row : table) {
    const std::string& algorithm = row.text("algo");
    if (row.text("pass") != "fwd+bwd" || row.text("tflops") == "OOM") continue;  // out of memory: no time
    const Setting s{row.text("causal") == "1", row.integer("head_dim"), row.integer("seq")};
    const bool fused = algorithm != "pytorch";
    TransferRow one;
    one.table = "flashattention_tflops_a100_h100";
    one.name = fmt::format("{}, head size {}, length {}{}", fused ? algorithm : "separate operators", s.head_size,
                           s.length, s.causal ? ", causal" : "");
    one.work = fused ? fused_work(s) : separate_work(s);
    one.kind = fused ? "attention" : "gemm and reduction";
    one.calibrated = algorithm == "FA2";
    const double flops = 4.0 * static_cast<double>(s.length * s.length * s.head_size * s.heads() * s.batch()) *
                         (s.causal ? 0.5 : 1) * 3.5;
    const double seconds = flops / (row.number("tflops") * 1e12);
    if (row.text("gpu").starts_with("A100")) {
      one.from = "a100-sxm-80gb";
      one.measured_from = seconds;
      a100[one.name] = one;
    } else if (const auto before = a100.find(one.name); before != a100.end()) {
      TransferRow pair = before->second;
      pair.to = "h100-sxm-80gb";
      pair.measured_to = seconds;
      add_both_ways(rows, pair);
    }
  }
  return rows;
}

}  // namespace memwall
