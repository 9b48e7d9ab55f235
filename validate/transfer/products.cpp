// The fastest matrix product that a search over shapes found on each GPU: mamf_gemm_tflops.csv. The best shapes differ
// from GPU to GPU, so that this is as near as two measurements of one product come: the old machine's best shape is
// transferred and compared with the new machine's best rate.
#include <fmt/format.h>

#include <charconv>
#include <map>

#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

const std::map<std::string, std::string> kMachinesOfProducts{{"A100 SXM", "a100-sxm-80gb"},
                                                             {"GH200 SXM 141GB", "gh200-480gb"},
                                                             {"H100 SXM (=H200)", "h100-sxm-80gb"},
                                                             {"B200 SXM", "b200-sxm-180gb"},
                                                             {"MI300X", "mi300x"},
                                                             {"H200 SXM", "h200-sxm-141gb"},
                                                             {"H100 SXM", "h100-sxm-80gb"},
                                                             {"GH200 SXM", "gh200-480gb"}};

// "1024x10240x5120"; empty where it is no such text.
Shape product_of(const std::string& text) {
  Shape shape{1};
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent <= 0 || extent > 1 << 20) return {};
    shape.push_back(extent);
    at = next == end ? end : next + 1;
  }
  return shape.size() == 4 ? shape : Shape();
}

}  // namespace

std::vector<TransferRow> product_rows(const std::vector<CsvTableRow>& table) {
  std::vector<TransferRow> rows;
  for (const CsvTableRow& a : table)
    for (const CsvTableRow& b : table) {
      const std::string &here = a.text("accelerator"), &there = b.text("accelerator"), &type = a.text("dtype");
      const Shape shape = product_of(a.text("best_MxNxK"));
      if (here == there || type != b.text("dtype") || !kMachinesOfProducts.contains(here) ||
          !kMachinesOfProducts.contains(there))
        continue;
      if (shape.empty()) continue;
      TransferRow row;
      row.table = "mamf_gemm_tflops";
      row.name = here < there ? fmt::format("{}, {} and {}", type, here, there)
                              : fmt::format("{}, {} and {}", type, there, here);
      row.kind = "gemm";
      row.from = kMachinesOfProducts.at(here);
      row.to = kMachinesOfProducts.at(there);
      row.work = {
          kernel_work(OperatorClass::gemm, type == "fp8" ? DataType::fp8 : DataType::bf16, Phase::forward, 0, shape)};
      const double flops =
          2.0 * static_cast<double>(shape[1]) * static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
      row.work.front().op.flops = flops;
      row.measured_from = flops / (a.number("mamf_tflops") * 1e12);
      row.measured_to = flops / (b.number("mamf_tflops") * 1e12);
      row.calibrated = true;  // each file's main loop is fitted to its row
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace memwall
