// Are operators priced as published component tables measured them, within the error that the machine files state?
#include "models/hw/kernel_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>

#include "models/hw/machine_file.h"
#include "sim/trace/attention_kernel.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Row = std::map<std::string, std::string>;

// Cells may be quoted, with commas and doubled quotes in them.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> result(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      result.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      result.emplace_back();
    else if (line[i] != '\r')
      result.back() += line[i];
  }
  return result;
}

std::vector<Row> table(const std::string& name) {
  std::ifstream file(*shared_data() / "published" / name);
  std::vector<std::string> columns;
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> values = cells(line);
    if (columns.empty()) {
      columns = values;
      continue;
    }
    Row row;
    for (std::size_t i = 0; i < columns.size() && i < values.size(); ++i) row[columns[i]] = values[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

// A number of the JSON that a row describes its setting with.
double setting(const Row& row, const std::string& key) {
  const std::regex pattern("\"" + key + "\": ([0-9.]+)");
  std::smatch match;
  const std::string& text = row.at("extra_benchmark_config_str");
  return std::regex_search(text, match, pattern) ? std::stod(match[1]) : 0;
}

std::vector<Row> liger(const std::string& kernel, const std::string& mode) {
  std::vector<Row> kept;
  for (Row& row : table("liger_kernel_microbench_a100_h100_b200.csv"))
    if (row["kernel_name"] == kernel && row["kernel_operation_mode"] == mode && row["metric_name"] == "speed" &&
        row["kernel_provider"] == "huggingface" && row["gpu_name"] == "NVIDIA A100-SXM4-80GB")
      kept.push_back(std::move(row));
  return kept;
}

Op op(OperatorClass c, DataType t, Phase phase = Phase::forward, double bytes = 0) {
  Op o;
  o.kind = OpKind::kernel;
  o.operator_class = c;
  o.data_type = t;
  o.phase = phase;
  o.bytes = static_cast<Bytes>(bytes);
  return o;
}

double seconds(const Machine& m, const Op& o, const Shape& shape = {}) {
  return to_seconds(kernel_duration(m, o, shape));
}

double product(const Machine& m, DataType t, std::int64_t rows, std::int64_t columns, std::int64_t k) {
  return seconds(m, op(OperatorClass::gemm, t), {1, rows, columns, k});
}

// The ninth of ten errors |predicted / measured - 1|.
double p90(std::vector<double> ratios) {
  EXPECT_GE(ratios.size(), 1u) << "an empty table proves nothing";
  if (ratios.empty()) return INFINITY;
  for (double& r : ratios) r = std::abs(r - 1);
  std::sort(ratios.begin(), ratios.end());
  return ratios[std::min(ratios.size() - 1, static_cast<std::size_t>(0.9 * static_cast<double>(ratios.size())))];
}

// Predicted over measured of every row of a table.
std::vector<double> attention_ratios(const Machine& m, const std::string& gpu, AttentionKernel kernel,
                                     const std::string& algorithm) {
  std::vector<double> ratios;
  for (Row& row : table("flashattention_tflops_a100_h100.csv")) {
    if (row["gpu"] != gpu || row["algo"] != algorithm) continue;
    const std::int64_t size = std::stoll(row["head_dim"]), length = std::stoll(row["seq"]), heads = 2048 / size;
    const bool causal = row["causal"] == "1", both = row["pass"] == "fwd+bwd";
    const Shape shape =
        with_attention_kernel({16384 / length, heads, heads, length, length, size, causal ? 1 : 0}, kernel);
    double predicted = seconds(m, op(OperatorClass::attention, DataType::fp16), shape);
    if (both) predicted += seconds(m, op(OperatorClass::attention, DataType::fp16, Phase::backward), shape);
    const double flops = 4.0 * static_cast<double>(length * length * size * heads * (16384 / length)) *
                         (causal ? 0.5 : 1) * (both ? 3.5 : 1);
    ratios.push_back(predicted / (flops / (std::stod(row["tflops"]) * 1e12)));
  }
  return ratios;
}

std::vector<double> product_ratios(const Machine& m, const std::string& accelerator, DataType type) {
  std::vector<double> ratios;
  for (Row& row : table("mamf_gemm_tflops.csv")) {
    if (!row["accelerator"].starts_with(accelerator) || row["dtype"] != to_string(type)) continue;
    std::int64_t rows = 0, columns = 0, k = 0;
    char x = 0;
    std::istringstream(row["best_MxNxK"]) >> rows >> x >> columns >> x >> k;
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(k);
    ratios.push_back(product(m, type, rows, columns, k) / (flops / (std::stod(row["mamf_tflops"]) * 1e12)));
  }
  return ratios;
}

// Gated MLPs in bf16: three products, and forward an activation and a product of two.
std::vector<double> mlp_ratios(const Machine& m) {
  std::vector<double> ratios;
  for (const char* kernel : {"swiglu", "geglu"})
    for (const Row& row : liger(kernel, "forward")) {
      const double batch = std::max(setting(row, "B"), setting(row, "bsz"));
      const auto tokens = std::stoll(row.at("x_value")) * static_cast<std::int64_t>(batch);
      const auto hidden = static_cast<std::int64_t>(setting(row, "hidden_size"));
      const auto inner = static_cast<std::int64_t>(setting(row, "intermediate_size"));
      const auto elements = static_cast<double>(tokens * inner);
      const double predicted =
          2 * product(m, DataType::bf16, tokens, inner, hidden) + product(m, DataType::bf16, tokens, hidden, inner) +
          seconds(m, op(OperatorClass::elementwise, DataType::bf16, Phase::forward, 4 * elements)) +
          seconds(m, op(OperatorClass::elementwise, DataType::bf16, Phase::forward, 6 * elements));
      ratios.push_back(predicted / (std::stod(row.at("y_value_50")) * 1e-3));
    }
  return ratios;
}

// RMSNorm as single kernels in the forward: bytes per element of each. Large ones: of small ones the benchmark
// measures the host.
std::vector<double> rms_norm_ratios(const Machine& m) {
  std::vector<double> ratios;
  for (const Row& row : liger("rms_norm", "forward")) {
    const double elements = std::stod(row.at("x_value")) * setting(row, "M");
    if (4 * elements < static_cast<double>(m.gpu.l2_bytes)) continue;
    double predicted = 0;
    for (const double bytes : {6, 8, 4, 8, 6, 6})
      predicted += seconds(m, op(OperatorClass::elementwise, DataType::fp32, Phase::forward, bytes * elements));
    ratios.push_back(predicted / (std::stod(row.at("y_value_50")) * 1e-3));
  }
  return ratios;
}

// Large ones: small ones of the benchmark begin with an L2 that was flushed.
std::vector<double> layer_norm_ratios(const Machine& m) {
  std::vector<double> ratios;
  for (const Row& row : liger("layer_norm", "forward")) {
    const double elements = std::stod(row.at("x_value")) * setting(row, "M");
    if (8 * elements < 2.0 * static_cast<double>(m.gpu.l2_bytes)) continue;
    ratios.push_back(seconds(m, op(OperatorClass::normalization, DataType::fp32, Phase::forward, 8 * elements),
                             {static_cast<std::int64_t>(setting(row, "M")), std::stoll(row.at("x_value"))}) /
                     (std::stod(row.at("y_value_50")) * 1e-3));
  }
  return ratios;
}

// Of cross entropy the log-softmax; nll_loss, the rest, takes 0.52 ms of 16384 rows (models/hw/calibrate).
std::vector<double> softmax_ratios(const Machine& m) {
  std::vector<double> ratios;
  for (const Row& row : liger("cross_entropy", "forward")) {
    const auto tokens = static_cast<std::int64_t>(setting(row, "B") * setting(row, "T"));
    const std::int64_t width = std::stoll(row.at("x_value"));
    const double bytes = 8.0 * static_cast<double>(tokens * width);
    ratios.push_back(
        (0.52e-3 + seconds(m, op(OperatorClass::reduction, DataType::fp32, Phase::forward, bytes), {tokens, width})) /
        (std::stod(row.at("y_value_50")) * 1e-3));
  }
  return ratios;
}

// Kernels that read and write as much, back to back in a CUDA graph, best block size.
std::vector<double> small_kernel_ratios(const Machine& m, const std::string& variant) {
  std::vector<double> ratios;
  for (Row& row : table("gpubenches_small_kernels.csv")) {
    if (row["gpu_variant"] != variant) continue;
    double rate = 0;
    for (int c = 1; c <= 6; ++c) {
      const std::string& cell = row["c" + std::to_string(c)];
      if (!cell.empty()) rate = std::max(rate, std::stod(cell) * 1e9);
    }
    const double bytes = 16 * std::stod(row["n_elems"]);
    if (rate > 0)
      ratios.push_back(seconds(m, op(OperatorClass::memory, DataType::fp64, Phase::forward, bytes)) / (bytes / rate));
  }
  return ratios;
}

class KernelCostOracle : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with published tables";
  }
  static Machine halved(Machine m) {
    for (PeakRate& peak : m.gpu.peaks) peak.flops /= 2;
    m.links[m.hbm_link].bandwidth /= 2;
    return m;
  }
};

// Stated residuals are rounded to three digits, and fitted by formulas without the kernel's fixed time.
constexpr double kRounding = 0.02;

TEST_F(KernelCostOracle, FusedAttention) {
  using K = AttentionKernel;
  const auto of = [](const char* name, const char* gpu, K kernel, const char* algorithm, std::size_t rows) {
    const Machine m = load_machine(name);
    const std::vector<double> ratios = attention_ratios(m, gpu, kernel, algorithm);
    const auto cost = std::find_if(m.gpu.attention.begin(), m.gpu.attention.end(),
                                   [&](const AttentionCost& c) { return c.kernel == kernel; });
    ASSERT_NE(cost, m.gpu.attention.end()) << name << " " << algorithm;
    EXPECT_EQ(ratios.size(), rows);
    EXPECT_LE(p90(ratios), cost->residual + kRounding) << name << " " << algorithm;
    EXPECT_GT(p90(attention_ratios(halved(m), gpu, kernel, algorithm)), cost->residual + 0.5)
        << "half the peak must not pass";
  };
  of("a100-sxm-80gb", "A100-80GB SXM4", K::flash_attention_2, "FA2", 23);
  of("a100-sxm-80gb", "A100-80GB SXM4", K::flash_attention_1, "FA1", 24);
  of("h100-sxm-80gb", "H100-80GB SXM5", K::flash_attention_2, "FA2", 60);
  of("h100-sxm-80gb", "H100-80GB SXM5", K::flash_attention_1, "FA1", 24);
  of("h100-sxm-80gb", "H100-80GB SXM5", K::flash_attention_3, "FA3", 35);
  of("h100-sxm-80gb", "H100-80GB SXM5", K::cudnn, "cuDNN", 35);
}

TEST_F(KernelCostOracle, MatrixProducts) {
  // The tables are of runs of some seconds.
  const Machine a100 = in_short_runs(load_machine("a100-sxm-80gb")),
                h100 = in_short_runs(load_machine("h100-sxm-80gb"));
  EXPECT_LE(p90(product_ratios(a100, "A100 SXM", DataType::bf16)), a100.gpu.matrix.residual);
  EXPECT_LE(p90(product_ratios(h100, "H100 SXM", DataType::bf16)), h100.gpu.matrix.residual);
  EXPECT_LE(p90(product_ratios(h100, "H100 SXM", DataType::fp8)), h100.gpu.matrix.residual);
  EXPECT_LE(p90(mlp_ratios(a100)), a100.gpu.matrix.residual);
  EXPECT_GT(p90(mlp_ratios(halved(a100))), 0.5) << "half the peak must not pass";
  EXPECT_GT(p90(product_ratios(halved(h100), "H100 SXM", DataType::bf16)), 0.5);
}

// Products of any shape, by short runs or sustained, on each machine with a measured record.
TEST_F(KernelCostOracle, NoProductIsPricedAboveTheRecord) {
  std::mt19937 random(25);
  std::uniform_int_distribution<int> exponent(4, 15);
  std::size_t checked = 0, at_record = 0;
  for (const Machine& whole : whole_machines())
    for (const Machine& m : {whole, in_short_runs(whole)})
      for (const MatrixUnits::MainLoop& loop : m.gpu.matrix.main_loops) {
        if (loop.record <= 0) continue;
        for (int i = 0; i < 40; ++i) {
          const Shape shape{1, std::int64_t{1} << exponent(random), std::int64_t{3} << exponent(random),
                            std::int64_t{1} << exponent(random)};
          Op product = op(OperatorClass::gemm, loop.data_type);
          product.flops =
              2.0 * static_cast<double>(shape[1]) * static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
          const double rate = product.flops / seconds(m, product, shape);
          EXPECT_LE(rate, loop.record * 1.0001) << m.name << " " << to_string(loop.data_type);
          at_record += rate > loop.record * 0.97;
          ++checked;
        }
      }
  EXPECT_GT(checked, 2000u);
  EXPECT_GT(at_record, 20u) << "the bound is never near";
}

// What is measured of the forward of each kernel, by heads of any size and length.
TEST_F(KernelCostOracle, NoAttentionIsPricedAboveTheRecord) {
  std::size_t checked = 0;
  for (const Machine& m : whole_machines())
    for (const AttentionCost& cost : m.gpu.attention) {
      if (cost.record <= 0) continue;
      for (const std::int64_t size : {64, 128, 256})
        for (const std::int64_t length : {512, 4096, 65536})
          for (const int causal : {0, 1}) {
            const Shape shape = with_attention_kernel({4, 16, 16, length, length, size, causal}, cost.kernel);
            const double rate =
                attention_flops(shape) / seconds(m, op(OperatorClass::attention, DataType::fp16), shape);
            EXPECT_LE(rate, cost.record) << m.name << " " << to_string(cost.kernel);
            ++checked;
          }
    }
  EXPECT_GT(checked, 300u);
}

TEST_F(KernelCostOracle, KernelsThatMemoryBounds) {
  const Machine m = load_machine("a100-sxm-80gb");
  const auto residual = [&](OperatorClass c) { return efficiency_of(m.gpu, c).residual + kRounding; };
  EXPECT_LE(p90(rms_norm_ratios(m)), residual(OperatorClass::elementwise));
  EXPECT_LE(p90(layer_norm_ratios(m)), residual(OperatorClass::normalization));
  EXPECT_LE(p90(softmax_ratios(m)), residual(OperatorClass::reduction));
  EXPECT_GT(p90(rms_norm_ratios(halved(m))), 0.5) << "half the bandwidth must not pass";
  EXPECT_GT(p90(layer_norm_ratios(halved(m))), 0.5);
  EXPECT_GT(p90(softmax_ratios(halved(m))), 0.3);
}

TEST_F(KernelCostOracle, SmallKernelsInAndBeyondL2) {
  for (const auto& [name, variant] :
       {std::pair{"a100-sxm-80gb", "a100_80_graph"}, std::pair{"h200-sxm-141gb", "h200_graph"}}) {
    const Machine m = load_machine(name);
    EXPECT_LE(p90(small_kernel_ratios(m, variant)), 0.1) << name;
    Machine without = m;
    without.gpu.l2_lost = 1e-9;  // nothing is ever found in L2
    without.gpu.l2_kept = 0;
    EXPECT_GT(p90(small_kernel_ratios(without, variant)), 0.2) << name;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
