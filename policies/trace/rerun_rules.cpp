#include "policies/trace/rerun_rules.h"

#include <algorithm>
#include <cctype>

#include "policies/trace/operator_name.h"

namespace memwall {

bool draws_random_numbers(const Op& op, const Trace& trace) {
  const std::string& name = operator_of(trace, op);
  for (const char* word : {"dropout", "bernoulli", "rand", "multinomial", "exponential_", "normal_", "uniform_"}) {
    const std::size_t at = name.find(word);
    // "rand" as in randn and randperm, not as in "operand"; "normal_" not as in "layernormal_x".
    if (at != std::string::npos && (at == 0 || !std::isalpha(static_cast<unsigned char>(name[at - 1])))) return true;
  }
  return false;
}

bool makes_anything(const Op& op, const Trace& trace) {
  return std::ranges::any_of(trace.uses_of(op), [&](const Use& use) {
    return use.access == Access::write && !trace.storages[use.storage].preexisting;
  });
}

OpId insertion_point(const Trace& trace, OpId id) {
  while (id > 0 && trace.ops[id].graph_member) --id;
  const std::uint16_t thread = trace.ops[id].thread;
  while (id > 0 && trace.ops[id - 1].kind == OpKind::alloc && trace.ops[id - 1].thread == thread) --id;
  return id;
}

OpId last_of_graph(const Trace& trace, OpId op) {
  while (op + 1 < trace.ops.size() && trace.ops[op + 1].graph_member) ++op;
  return op;
}

}  // namespace memwall
