#include "validate/report/pytorch_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "models/workload/import/bytes/csv_rows.h"
#include "models/workload/import/bytes/file_text.h"

namespace memwall {
namespace {

// As COLUMNS of validate/pytorch/matrix.py.
enum Column {
  kModel,
  kVariant,
  kKernels,
  kBatch,
  kStatus,
  kStep,
  kStepLow,
  kStepHigh,
  kSteps,
  kForward,
  kBackward,
  kOptimizer,
  kAllocated,
  kReserved,
  kSamples,
  kDate,
  kGpu,
  kDriver,
  kTorch,
  kCuda,
  kNote
};
const std::vector<std::string_view> kColumns{"model",
                                             "variant",
                                             "kernels",
                                             "batch",
                                             "status",
                                             "step_seconds",
                                             "step_low",
                                             "step_high",
                                             "steps",
                                             "forward_seconds",
                                             "backward_seconds",
                                             "optimizer_seconds",
                                             "peak_allocated",
                                             "peak_reserved",
                                             "samples",
                                             "date",
                                             "gpu",
                                             "driver",
                                             "torch",
                                             "cuda",
                                             "note"};

// Seconds; an empty cell is 0.
double seconds(const CsvRows& rows, Column column) {
  const std::string_view text = rows.text(column);
  if (text.empty()) return 0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0 || value > 1e5)
    rows.fail(fmt::format("{} is \"{}\"; expected seconds, from 0 to 1e5.", kColumns[column], text));
  return value;
}

Bytes bytes(const CsvRows& rows, Column column) {
  return rows.text(column).empty() ? 0 : rows.number(column, 0, std::int64_t{1} << 50);
}

PytorchCase read_row(const CsvRows& rows) {
  PytorchCase c;
  c.model = rows.text(kModel);
  c.variant = rows.text(kVariant);
  c.same_kernels = rows.text(kKernels) != "changed";
  c.status = rows.text(kStatus);
  c.date = rows.text(kDate);
  c.step = seconds(rows, kStep);
  c.forward = seconds(rows, kForward);
  c.backward = seconds(rows, kBackward);
  c.optimizer = seconds(rows, kOptimizer);
  c.peak_allocated = bytes(rows, kAllocated);
  c.peak_reserved = bytes(rows, kReserved);
  // A model's name becomes part of a file's.
  if (c.model.empty() || c.model.find_first_of("/\\") != std::string::npos)
    rows.fail(fmt::format("the model is \"{}\"; expected a name without slashes.", c.model));
  if (c.measured() && c.step == 0) rows.fail("the case is measured, but has no step_seconds.");
  return c;
}

}  // namespace

std::vector<PytorchCase> read_pytorch_cases(const std::filesystem::path& path) {
  const std::string text = read_file_text(path);
  CsvRows rows(text, path.string(), kColumns);
  std::vector<PytorchCase> cases;
  std::set<std::pair<std::string, std::string>> seen;
  while (rows.next()) {
    PytorchCase c = read_row(rows);
    if (c.measured() && !seen.emplace(c.model, c.variant).second)
      rows.fail(fmt::format("{} {} is measured twice.", c.model, c.variant));
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
