#include "models/workload/generate/configuration/module_structure.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "models/workload/generate/configuration/model_size.h"

namespace memwall {
namespace {

struct Rule {
  bool holds;
  const char* expected;
};

bool is_gelu_or_relu(const Model& m) {
  return m.activation == Activation::relu || m.activation == Activation::gelu ||
         m.activation == Activation::gelu_tanh || m.activation == Activation::gelu_tanh_in_parts;
}

// What but one or two of the families has, unless they allow it.
struct Allowed {
  bool window = false, softcapping = false, scaled_embedding = false, normalized_embedding = false;
  bool output_bias = false, partial_rotation = false, residual_dropout_only = false, position_offset = false;
  bool query_key_norm = false, token_types = false;
};

void add_rare(const Model& m, const Allowed& a, std::vector<Rule>& rules) {
  rules.push_back(
      {a.window || (!m.local_rotary && m.full_attention_every == 0), "no full_attention_every and local_rotary"});
  rules.push_back({a.softcapping || !(m.attention_softcapping || m.logit_softcapping),
                   "no attention_softcapping and logit_softcapping"});
  rules.push_back({a.scaled_embedding || !m.scaled_embedding, "scaled_embedding: false"});
  rules.push_back({a.normalized_embedding || !m.normalized_embedding, "normalized_embedding: false"});
  rules.push_back({a.output_bias || !m.output_bias, "output_bias: false"});
  rules.push_back({a.partial_rotation || m.rotary_size == 0, "rotary_size: 0"});
  rules.push_back({a.residual_dropout_only || !m.residual_dropout_only, "residual_dropout_only: false"});
  rules.push_back({a.position_offset || m.position_offset == 0, "position_offset: 0"});
  rules.push_back({a.query_key_norm || !m.query_key_norm_over_heads, "query_key_norm_over_heads: false"});
  rules.push_back({a.token_types || m.token_types == 2, "token_types: 2"});
}

std::vector<Rule> rules_of_plain(const Model& m) {
  const bool norm =
      m.normalization != Normalization::rms_norm_in_fp32 && m.normalization != Normalization::rms_norm_zero_centered;
  const bool activation =
      is_gelu_or_relu(m) ? m.activation != Activation::gelu_tanh_in_parts : m.activation == Activation::swiglu;
  std::vector<Rule> rules{{m.layer_order == LayerOrder::pre_norm, "layer_order: pre_norm"},
                          {norm, "normalization: layer_norm, rms_norm or rms_norm_in_parts"},
                          {activation, "activation: relu, gelu, gelu_tanh or swiglu"},
                          {m.positions != Positions::alibi, "positions: none, learned or rotary"}};
  add_rare(m, {.window = m.full_attention_every != 0 && !m.local_rotary}, rules);
  return rules;
}

std::vector<Rule> rules_of_gemma(const Model& m) {
  const bool order = m.layer_order == LayerOrder::pre_norm || m.layer_order == LayerOrder::sandwich_norm;
  std::vector<Rule> rules{
      {order, "layer_order: pre_norm or sandwich_norm"},
      {m.normalization == Normalization::rms_norm_zero_centered, "normalization: rms_norm_zero_centered"},
      {m.activation == Activation::geglu, "activation: geglu"},
      {m.positions == Positions::rotary, "positions: rotary"},
      {!m.joint_query_key_value && !m.bias && !m.query_key_value_bias,
       "joint_query_key_value, bias and query_key_value_bias: false"},
      {m.dropout == 0, "dropout: 0"}};
  add_rare(m, {.window = true, .softcapping = true, .scaled_embedding = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_olmo2(const Model& m) {
  std::vector<Rule> rules{
      {m.layer_order == LayerOrder::reordered_norm, "layer_order: reordered_norm"},
      {m.normalization == Normalization::rms_norm_in_fp32, "normalization: rms_norm_in_fp32"},
      {m.activation == Activation::swiglu, "activation: swiglu"},
      {m.positions == Positions::rotary, "positions: rotary"},
      {m.query_key_norm && m.query_key_norm_over_heads, "query_key_norm and query_key_norm_over_heads: true"},
      {!m.joint_query_key_value && !m.bias && !m.query_key_value_bias,
       "joint_query_key_value, bias and query_key_value_bias: false"},
      {m.dropout == 0, "dropout: 0"}};
  add_rare(m, {.query_key_norm = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_gpt_neox(const Model& m) {
  const bool order = m.layer_order == LayerOrder::pre_norm || m.layer_order == LayerOrder::parallel;
  std::vector<Rule> rules{{order, "layer_order: pre_norm or parallel"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {is_gelu_or_relu(m), "an activation without gate"},
                          {m.positions == Positions::rotary, "positions: rotary"},
                          {m.joint_query_key_value && m.bias && m.query_key_value_bias,
                           "joint_query_key_value, bias and query_key_value_bias: true"},
                          {key_value_heads(m) == m.heads, "key_value_heads: 0"}};
  add_rare(m, {.partial_rotation = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_opt(const Model& m) {
  std::vector<Rule> rules{{m.layer_order == LayerOrder::pre_norm, "layer_order: pre_norm"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {is_gelu_or_relu(m), "an activation without gate"},
                          {m.positions == Positions::learned, "positions: learned"},
                          {!m.joint_query_key_value, "joint_query_key_value: false"},
                          {m.bias == m.query_key_value_bias, "bias and query_key_value_bias alike"},
                          {key_value_heads(m) == m.heads, "key_value_heads: 0"}};
  add_rare(m, {.residual_dropout_only = true, .position_offset = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_phi(const Model& m) {
  std::vector<Rule> rules{{m.layer_order == LayerOrder::parallel_shared_norm, "layer_order: parallel_shared_norm"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {is_gelu_or_relu(m), "an activation without gate"},
                          {m.positions == Positions::rotary, "positions: rotary"},
                          {!m.joint_query_key_value, "joint_query_key_value: false"},
                          {m.bias && m.query_key_value_bias, "bias and query_key_value_bias: true"}};
  add_rare(m, {.output_bias = true, .partial_rotation = true, .residual_dropout_only = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_bloom(const Model& m) {
  std::vector<Rule> rules{{m.layer_order == LayerOrder::pre_norm, "layer_order: pre_norm"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {m.activation == Activation::gelu_tanh_recomputed, "activation: gelu_tanh_recomputed"},
                          {m.positions == Positions::alibi, "positions: alibi"},
                          {m.joint_query_key_value && m.bias && m.query_key_value_bias,
                           "joint_query_key_value, bias and query_key_value_bias: true"},
                          {key_value_heads(m) == m.heads, "key_value_heads: 0"}};
  add_rare(m, {.normalized_embedding = true, .residual_dropout_only = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_falcon(const Model& m) {
  std::vector<Rule> rules{{is_parallel_layer(m), "layer_order: parallel or parallel_shared_norm"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {is_gelu_or_relu(m), "an activation without gate"},
                          {m.positions == Positions::rotary, "positions: rotary"},
                          {m.joint_query_key_value, "joint_query_key_value: true"},
                          {!m.bias && !m.query_key_value_bias, "bias and query_key_value_bias: false"}};
  add_rare(m, {.residual_dropout_only = true}, rules);
  return rules;
}

std::vector<Rule> rules_of_encoder(const Model& m) {
  std::vector<Rule> rules{{m.architecture == Architecture::encoder, "architecture: encoder"},
                          {m.layer_order == LayerOrder::pre_norm, "layer_order: pre_norm"},
                          {m.normalization == Normalization::layer_norm, "normalization: layer_norm"},
                          {is_gelu_or_relu(m), "an activation without gate"},
                          {m.positions == Positions::learned, "positions: learned"},
                          {!m.joint_query_key_value, "joint_query_key_value: false"},
                          {m.bias && m.query_key_value_bias, "bias and query_key_value_bias: true"},
                          {key_value_heads(m) == m.heads, "key_value_heads: 0"},
                          {(m.modules == Modules::distilbert) == (m.token_types == 0),
                           m.modules == Modules::distilbert ? "token_types: 0" : "token_types: 1 or more"}};
  add_rare(m, {.position_offset = m.modules == Modules::roberta, .token_types = true}, rules);
  return rules;
}

std::vector<Rule> rules_of(const Model& m) {
  switch (m.modules) {
    case Modules::plain:
      return rules_of_plain(m);
    case Modules::gemma:
      return rules_of_gemma(m);
    case Modules::olmo2:
      return rules_of_olmo2(m);
    case Modules::gpt_neox:
      return rules_of_gpt_neox(m);
    case Modules::opt:
      return rules_of_opt(m);
    case Modules::phi:
      return rules_of_phi(m);
    case Modules::bloom:
      return rules_of_bloom(m);
    case Modules::falcon:
      return rules_of_falcon(m);
    case Modules::roberta:
    case Modules::distilbert:
      break;
  }
  return rules_of_encoder(m);
}

}  // namespace

std::string_view to_string(Modules modules) {
  constexpr std::array<std::string_view, 10> kNames{"plain", "gemma", "olmo2",  "gpt_neox", "opt",
                                                    "phi",   "bloom", "falcon", "roberta",  "distilbert"};
  return kNames[static_cast<std::size_t>(modules)];
}

std::string modules_wrong(const Model& m) {
  const std::string where = fmt::format("with modules: {}", to_string(m.modules));
  for (const auto& [holds, expected] : rules_of(m))
    if (!holds) return fmt::format("{} a model is expected to have {}", where, expected);
  if (m.modules == Modules::plain) return "";
  const bool encoder = m.modules == Modules::roberta || m.modules == Modules::distilbert;
  if (!encoder && m.architecture != Architecture::decoder)
    return fmt::format("{} a model is expected to have architecture: decoder", where);
  if (m.experts != 0 || m.rotary_in_fp32 || m.expanded_key_value)
    return fmt::format("{} a model is expected to have neither experts, rotary_in_fp32 nor expanded_key_value", where);
  return "";
}

}  // namespace memwall
