// Kernels, host memory and copies beside opposite ones, one by one, as measured and as the machine file prices
// them: the largest of each kind, where bandwidth or arithmetic is all that counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/hw/pricer.h"
#include "validate/calibrate/fitting.h"
#include "validate/report/microbenchmark_rows.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace {

struct KernelBenchmark {
  const char* benchmark;
  OperatorClass operator_class;
  DataType data_type;
};
// Softmax counts among the reductions, as in an import (models/workload/operator_class.h).
constexpr KernelBenchmark kKernelBenchmarks[] = {
    {"gemm_bf16", OperatorClass::gemm, DataType::bf16},
    {"gemm_fp16", OperatorClass::gemm, DataType::fp16},
    {"gemm_tf32", OperatorClass::gemm, DataType::tf32},
    {"gemm_fp32", OperatorClass::gemm, DataType::fp32},
    {"gemm_fp8", OperatorClass::gemm, DataType::fp8},
    {"kernel_elementwise", OperatorClass::elementwise, DataType::fp32},
    {"kernel_normalization", OperatorClass::normalization, DataType::fp32},
    {"kernel_reduction", OperatorClass::reduction, DataType::fp32},
    {"kernel_softmax", OperatorClass::reduction, DataType::fp32},
    {"kernel_optimizer", OperatorClass::optimizer, DataType::fp32},
};

// The row that does the most work; of equal ones the fastest (the best number of threads).
std::optional<Measurement> largest_of(const std::vector<Measurement>& measured) {
  const auto work = [](const Measurement& m) { return std::max(m.flops, m.bytes); };
  const auto found = std::max_element(measured.begin(), measured.end(), [&](const auto& a, const auto& b) {
    return work(a) != work(b) ? work(a) < work(b) : a.median > b.median;
  });
  return found == measured.end() ? std::nullopt : std::optional(*found);
}

std::string parameters_of(const Measurement& m) {
  std::string text;
  for (const auto& [key, value] : m.parameters) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  return text;
}

ValidationRow row_of(const Measurement& m, const std::string& unit, double measured, double predicted,
                     std::string_view backend) {
  ValidationRow row;
  row.rung = "microbenchmark";
  row.case_name = m.benchmark;
  row.metric = parameters_of(m);
  row.unit = unit;
  row.measured = measured;
  row.predicted = predicted;
  judge(row, tolerance_of(ToleranceKind::kernel_benchmark, backend));
  return row;
}

// The fastest of read, write and triad, each at its largest working set: what the file calls HBM bandwidth.
std::optional<Measurement> fastest_stream(const MeasurementSet& set) {
  std::optional<Measurement> best;
  for (const char* benchmark : {"hbm_read", "hbm_write", "hbm_triad"}) {
    const auto largest = largest_of(set.of(benchmark));
    if (largest && (!best || largest->bytes_per_second() > best->bytes_per_second())) best = largest;
  }
  return best;
}

}  // namespace

std::vector<ValidationRow> kernel_rows(const MeasurementSet& measurements, const Machine& machine,
                                       std::string_view backend) {
  const std::unique_ptr<Pricer> pricer = make_pricer(machine);
  std::vector<ValidationRow> rows;
  if (const auto stream = fastest_stream(measurements))
    rows.push_back(
        row_of(*stream, "B/s", stream->bytes_per_second(), machine.links[machine.hbm_link].bandwidth, backend));
  for (const KernelBenchmark& k : kKernelBenchmarks) {
    const auto m = largest_of(measurements.of(k.benchmark));
    if (!m) continue;
    Op op;
    op.kind = OpKind::kernel;
    op.operator_class = k.operator_class;
    op.data_type = k.data_type;
    op.bytes = std::llround(m->bytes);
    op.flops = m->flops;
    rows.push_back(row_of(*m, "s", m->median, to_seconds(pricer->kernel(op)), backend));
  }
  for (const bool to_device : {true, false}) {
    std::vector<Measurement> copies = measurements.of("copy_both_pinned");
    std::erase_if(copies, [&](const Measurement& m) {
      const auto direction = m.parameters.find("direction");
      return direction == m.parameters.end() || direction->second != (to_device ? "host_to_device" : "device_to_host");
    });
    const auto m = std::max_element(copies.begin(), copies.end(), [](const Measurement& a, const Measurement& b) {
      return a.number("bytes") < b.number("bytes");
    });
    if (m == copies.end() || m->number("bytes") < 1) continue;
    const double predicted = duplex_copy_seconds(machine, *pricer, m->number("bytes"), to_device);
    rows.push_back(row_of(*m, "s", m->median, predicted, backend));
  }
  if (const auto adam = largest_of(measurements.of("adam_host")))
    rows.push_back(row_of(*adam, "s", adam->median,
                          to_seconds(pricer->host_memory_work(static_cast<Bytes>(adam->bytes))), backend));
  return rows;
}

}  // namespace memwall
