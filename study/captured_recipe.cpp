#include "study/captured_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

namespace memwall {
namespace {

bool is_product(const Op& op) {
  return op.kind == OpKind::kernel &&
         (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution ||
          op.operator_class == OperatorClass::attention);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// What names of a step's ops say.
struct NamedFacts {
  bool adamw = false, adam = false, some_adam = false, sgd = false;
  bool flash = false, cudnn = false, memory_efficient = false;
  bool triton = false, compiled_region = false;

  void see(std::string_view name, bool in_optimizer) {
    const std::string text = lower(name);
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    triton |= text.starts_with("triton_");
    compiled_region |= has("torch-compiled region") || has("compiledfunction");
    flash |= has("_flash_attention_");
    cudnn |= has("_cudnn_attention_");
    memory_efficient |= has("_efficient_attention_");
    const bool named_optimizer = text.starts_with("optimizer.step#");
    if (!in_optimizer && !named_optimizer) return;
    adamw |= has("adamw");
    adam |= has("_fused_adam_") || text.starts_with("optimizer.step#adam.");
    some_adam |= has("adam");
    sgd |= has("_fused_sgd_") || text.starts_with("optimizer.step#sgd.");
  }

  std::string optimizer() const {
    if (sgd) return some_adam ? "" : "SGD";
    if (adamw) return "AdamW";
    if (adam) return "Adam";
    return some_adam ? "Adam or AdamW" : "";
  }

  // Two kinds at once: of different layers.
  std::string attention() const {
    if (flash + cudnn + memory_efficient != 1) return "";
    return flash ? "flash attention" : cudnn ? "cuDNN's attention" : "memory-efficient attention";
  }
};

struct Shown {
  NamedFacts names;
  std::map<DataType, double> products;  // work, or where that is not known number, of each type
  bool typed = true;                    // is the type of every product known?
  bool recomputed = false, compiled = false, eager = false, graphs = false;
};

// Each name once: a long step repeats a few hundred.
class NameReader {
 public:
  explicit NameReader(const Trace& trace) : trace_(trace), seen_(2 * trace.strings.size(), false) {}
  void see(StringId name, bool in_optimizer, NamedFacts& facts) {
    const std::size_t place = 2 * std::size_t{name} + (in_optimizer ? 1 : 0);
    if (seen_[place]) return;
    seen_[place] = true;
    facts.see(trace_.strings[name], in_optimizer);
  }

 private:
  const Trace& trace_;
  std::vector<bool> seen_;
};

Shown shown_by(const Trace& trace) {
  Shown shown;
  NameReader reader(trace);
  for (const Op& op : trace.ops) {
    const bool in_optimizer = op.phase == Phase::optimizer;
    for (const StringId name : {op.name, op.operator_name}) reader.see(name, in_optimizer, shown.names);
    shown.recomputed |= op.phase == Phase::recompute && runs_on_device(op.kind);
    shown.compiled |= op.dispatch == Dispatch::compiled;
    shown.eager |= op.dispatch == Dispatch::eager;
    shown.graphs |= op.kind == OpKind::graph_launch;
    if (!is_product(op)) continue;
    if (op.data_type == DataType::unknown)
      shown.typed = false;
    else
      shown.products[op.data_type] += std::max(op.flops, 1.0);
  }
  return shown;
}

// "bf16", "bf16 and fp32 (3 %)".
std::string types_of(const std::map<DataType, double>& products) {
  double all = 0;
  std::vector<std::pair<double, DataType>> types;
  for (const auto& [type, work] : products) {
    all += work;
    types.emplace_back(work, type);
  }
  std::sort(types.rbegin(), types.rend());
  std::string text;
  constexpr double kLeast = 0.005;  // a share that is shown as 1 %
  for (const auto& [work, type] : types) {
    if (work / all < kLeast) continue;
    text += text.empty() ? std::string(to_string(type))
                         : fmt::format(" and {} ({:.0f} %)", to_string(type), 100 * work / all);
  }
  return text;
}

std::string batch_of_capture(const Trace& trace) {
  const double samples = trace.samples_per_step, tokens = trace.tokens_per_step;
  if (samples <= 0) return tokens > 0 ? fmt::format("{} tokens", tokens) : "";
  const double each = tokens / samples;
  if (tokens > 0 && each == std::floor(each)) return fmt::format("{} x {} tokens", samples, each);
  return fmt::format("{} samples", samples);
}

}  // namespace

std::vector<RecipeItem> captured_recipe(const Trace& trace) {
  const Shown shown = shown_by(trace);
  std::vector<RecipeItem> items;
  const auto add = [&](const char* what, std::string value) {
    if (!value.empty()) items.push_back({.what = what, .value = std::move(value), .setting = ""});
  };
  if (shown.typed && !shown.products.empty()) add("precision", "matrix products in " + types_of(shown.products));
  add("optimizer", shown.names.optimizer());
  add("attention", shown.names.attention());
  if (shown.recomputed) add("checkpoint", "with recomputation");
  if (shown.compiled || shown.names.triton || shown.names.compiled_region)
    add("execution", shown.eager ? "compiled in part" : "compiled");
  else if (shown.eager)
    add("execution", "eager");
  if (shown.graphs) add("graphs", "CUDA graphs");
  add("batch", batch_of_capture(trace));
  return items;
}

}  // namespace memwall
