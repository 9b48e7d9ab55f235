// NVIDIA's Megatron-Bridge performance summaries: tokens per second and GPU by model, system, precision and layout.
//
// Of its rows two are of dense models on H100, Llama 3 70B, both in FP8. The others are refused with what they need.
#include <fmt/format.h>

#include <charconv>

#include "validate/published/tables.h"

namespace memwall {
namespace {

std::string refusal(const CsvTableRow& row) {
  const std::string &model = row.text("model"), &system = row.text("system"), &precision = row.text("precision");
  if (!model.starts_with("LLAMA")) return "mixtures of experts and state-space models are not implemented";
  if (system != "DGX-H100") return fmt::format("there is no machine file for \"{}\" with its precision", system);
  if (row.text("task") == "LoRA") return "LoRA with tensor or pipeline parallelism is not implemented";
  return fmt::format("precision {} with tensor or pipeline parallelism is not implemented", precision);
}

// "3454 (2835)" is of two granularities of scales, the first that of the row's own precision.
double first_number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::vector<PublishedCase> megatron_bridge_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, {}, {}, {} x {}, {}", row.text("container"), row.text("task"), row.text("model"),
                         row.text("gpus"), row.text("system"), row.text("precision"));
    c.gpu = row.text("system");
    c.why_not = refusal(row);
    if (const double rate = first_number(row.text("tokens_per_s_per_gpu")); rate >= 1)
      c.step_seconds = row.number("gbs") * row.number("seq") / (rate * row.number("gpus"));
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
