#include "policies/parallel/tensor_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::array kColumn{"q",
                             "k",
                             "v",
                             "qkv",
                             "q_proj",
                             "k_proj",
                             "v_proj",
                             "qkv_proj",
                             "query",
                             "key",
                             "value",
                             "c_attn",
                             "Wqkv",
                             "wq",
                             "wk",
                             "wv",
                             "query_key_value",
                             "linear_qkv",
                             "gate",
                             "up",
                             "fc1",
                             "w1",
                             "w3",
                             "gate_proj",
                             "up_proj",
                             "c_fc",
                             "wi",
                             "wi_0",
                             "wi_1",
                             "gate_up_proj",
                             "linear_fc1",
                             "dense_h_to_4h",
                             "q_lin",
                             "k_lin",
                             "v_lin",
                             "lin1"};
constexpr std::array kRow{"out",           "o",           "o_proj",  "out_proj",  "wo",     "linear_proj",
                          "down",          "fc2",         "w2",      "down_proj", "c_proj", "linear_fc2",
                          "dense_4h_to_h", "output_proj", "out_lin", "lin2"};
constexpr std::array kVocabulary{"words", "wte", "embed_tokens", "tok_embeddings", "word_embeddings", "embed_in"};
constexpr std::array kOutput{"head", "lm_head", "output", "output_layer", "embed_out"};

template <class Names>
bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view last_name(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

}  // namespace

TensorRoles::TensorRoles(const std::vector<std::string>& column, const std::vector<std::string>& row)
    : column_(column), row_(row) {}

TensorRole TensorRoles::of_module(std::string_view path) const {
  const std::string_view name = last_name(path);
  if (has(column_, name)) return TensorRole::column;
  if (has(row_, name)) return TensorRole::row;
  // BERT's "attention.output.dense" and "intermediate.dense": the name before says which.
  if (name == "dense" && path.size() > name.size()) {
    const std::string_view before = last_name(path.substr(0, path.size() - name.size() - 1));
    if (before == "intermediate") return TensorRole::column;
    if (before == "output") return TensorRole::row;
    // GPT-NeoX's, Phi's, BLOOM's and Falcon's output layer of attention.
    if (before == "attention" || before == "self_attn" || before == "self_attention") return TensorRole::row;
  }
  if (has(kColumn, name)) return TensorRole::column;
  if (has(kRow, name)) return TensorRole::row;
  if (has(kVocabulary, name)) return TensorRole::vocabulary;
  if (has(kOutput, name)) return TensorRole::output;
  return TensorRole::whole;
}

void require_names(const Trace& trace, const std::vector<std::string>& column, const std::vector<std::string>& row) {
  std::set<std::string> found;
  for (const Op& op : trace.ops) found.emplace(last_name(trace.strings[op.module]));
  for (StorageId s = 0; s < trace.storages.size(); ++s)
    if (trace.storages[s].kind == StorageKind::parameter) found.emplace(last_name(module_of_parameter(trace, s, 0)));
  const std::vector<std::string> known(found.begin(), found.end());
  for (const auto& [key, names] : {std::pair{"column", column}, std::pair{"row", row}})
    for (const std::string& name : names)
      if (!found.contains(name))
        throw UsageError(fmt::format(
            "Policy 'tensor', {}={}: no module of trace '{}' is called so; expected the last name of a module's path.{}",
            key, name, trace.name, did_you_mean(name, known)));
  for (const std::string& name : column)
    if (has(row, name))
      throw UsageError(fmt::format("Policy 'tensor': {} stands in column= and in row=; expected one of them.", name));
}

std::string module_of_parameter(const Trace& trace, StorageId parameter, StringId module_of_reader) {
  const std::string& label = trace.strings[trace.storages[parameter].label];
  for (const std::string_view ending : {".weight", ".bias"})
    if (label.ends_with(ending)) return label.substr(0, label.size() - ending.size());
  return trace.strings[module_of_reader];
}

}  // namespace memwall
