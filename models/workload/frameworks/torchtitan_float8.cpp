// Sources: torchtitan 0.2.2, components/quantization/float8.py; torchao, float8/float8_linear_utils.py.
#include "models/workload/frameworks/torchtitan_float8.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kAutoFilter = "auto_filter_small_kn";

// A linear layer of a block, by torchtitan's name.
struct BlockLayer {
  std::string name;
  std::int64_t outputs, inputs;
};

std::vector<BlockLayer> layers_of_block(const Model& m) {
  const std::int64_t head = m.head_size > 0 ? m.head_size : m.width / std::max<std::int64_t>(m.heads, 1),
                     keys = head * (m.key_value_heads > 0 ? m.key_value_heads : m.heads),
                     inner = m.inner > 0 ? m.inner : 4 * m.width;
  return {{"attention.wq", head * m.heads, m.width}, {"attention.wk", keys, m.width},
          {"attention.wv", keys, m.width},           {"attention.wo", m.width, head * m.heads},
          {"feed_forward.w1", inner, m.width},       {"feed_forward.w2", m.width, inner},
          {"feed_forward.w3", inner, m.width}};
}

// torchao's _auto_filter_for_tensorwise: what is too small to gain by fp8, or no multiple of what its products need.
bool is_filtered_by_size(const BlockLayer& layer) {
  constexpr std::int64_t kMultiple = 16, kFewOutputs = 4096, kFewInputs = 1024;
  return layer.outputs % kMultiple != 0 || layer.inputs % kMultiple != 0 ||
         (layer.outputs <= kFewOutputs && layer.inputs <= kFewInputs);
}

// Layers of blocks that stay in 16 bits, by name.
std::vector<std::string> filtered_layers(const std::vector<std::string>& filters, const Model& model) {
  const bool by_size = std::ranges::find(filters, kAutoFilter) != filters.end();
  std::vector<std::string> names;
  for (const BlockLayer& layer : layers_of_block(model)) {
    const std::string path = "layers.0." + layer.name;
    const bool by_name =
        std::ranges::any_of(filters, [&](const std::string& f) { return path.find(f) != std::string::npos; });
    if (by_name || (by_size && is_filtered_by_size(layer))) names.push_back(layer.name);
  }
  return names;
}

void note_filters(const ConfigurationFile& file, const std::string& section, FrameworkJob& job) {
  const std::vector<std::string> filters = file.list(section + "filter_fqns");
  if (std::ranges::find(filters, "output") == filters.end())
    job.notes.push_back(section + "filter_fqns does not name the output layer, which stays in 16 bits here.");
  if (job.network.empty()) {
    if (std::ranges::any_of(filters, [](const std::string& f) { return f != "output"; }))
      job.notes.push_back(fmt::format("{}filter_fqns ({}): layers of blocks that it leaves in 16 bits are in fp8 here.",
                                      section, fmt::join(filters, ", ")));
    return;
  }
  const std::vector<std::string> names = filtered_layers(filters, load_training_job(job.network).model);
  if (!names.empty())
    job.notes.push_back(fmt::format("{}filter_fqns leaves {} of {} in 16 bits, which are in fp8 here.", section,
                                    fmt::join(names, ", "), job.network));
}

}  // namespace

bool read_float8(const ConfigurationFile& file, FrameworkJob& job) {
  bool is_float8 = false;
  for (const std::string& converter : file.list("model.converters")) {
    if (converter != "quantize.linear.float8" && converter != "float8")
      throw UsageError(fmt::format("{}: model.converters ({}) is not implemented.", file.name(), converter));
    is_float8 = true;
  }
  if (!is_float8) return false;
  const std::string section = file.has_any("quantize.linear.float8") ? "quantize.linear.float8." : "float8.";
  if (const std::string recipe = file.text(section + "recipe_name", "tensorwise"); recipe != "tensorwise")
    throw UsageError(fmt::format("{}: {}recipe_name={} is not implemented.", file.name(), section, recipe));
  if (file.flag(section + "emulate", false))
    throw UsageError(
        fmt::format("{}: {}emulate is not implemented: it casts to fp8 and back, and multiplies in 16 bits.",
                    file.name(), section));
  note_filters(file, section, job);
  const bool precomputes = file.flag(section + "precompute_float8_dynamic_scale_for_fsdp", false);
  // Without it torchtitan passes the precomputation of scales over.
  if (file.flag(section + "enable_fsdp_float8_all_gather", false))
    job.notes.push_back(
        fmt::format("{}enable_fsdp_float8_all_gather is not implemented: parameters are gathered in 16 "
                    "bits{}.",
                    section,
                    precomputes ? ", and precompute_float8_dynamic_scale_for_fsdp, which finds their "
                                  "scales in one go, has nothing to do"
                                : ""));
  file.pass_over("float8");
  return true;
}

}  // namespace memwall
