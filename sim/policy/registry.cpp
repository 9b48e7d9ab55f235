#include "sim/policy/registry.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "sim/byte_units.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

std::map<std::string, PolicyInfo>& registered() {
  static std::map<std::string, PolicyInfo> all;
  return all;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : " Did you mean '" + nearest + "'?";
}

// "a=1,b=2" -> map. A value may hold '+' for lists, never ','. A first item without a name is the value of the first
// parameter: "batch:8".
std::map<std::string, std::string> key_values(const std::string& policy, const std::string& text,
                                              const std::vector<ParameterInfo>& known) {
  const auto is_name = [&](const std::string& item) {
    return std::any_of(known.begin(), known.end(), [&](const ParameterInfo& p) { return p.name == item; });
  };
  std::map<std::string, std::string> values;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    if (begin == 0 && !item.empty() && item.find('=') == std::string::npos && !known.empty() && !is_name(item))
      item = known.front().name + "=" + item;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("Policy '" + policy + "': found '" + item + "', expected key=value.");
    if (!values.emplace(item.substr(0, equals), item.substr(equals + 1)).second)
      throw UsageError("Policy '" + policy + "': '" + item.substr(0, equals) + "' is given twice.");
    begin = end + 1;
  }
  return values;
}

void require_knowledge(const PolicySpec& spec, const Knowledge& needs, const Trace& trace) {
  const Knowledge& has = trace.knowledge;
  std::vector<std::string> missing;
  if (needs.timing && !has.timing) missing.push_back("timing");
  if (needs.allocations && !has.allocations) missing.push_back("allocations");
  if (needs.dataflow && !has.dataflow) missing.push_back("dataflow");
  if (needs.modules && !has.modules) missing.push_back("modules");
  if (needs.shapes && !has.shapes) missing.push_back("shapes");
  if (missing.empty()) return;
  throw UsageError("Policy '" + spec.info->name + "' needs " + joined(missing) + ", which trace '" + trace.name +
                   "' does not know. `memwall inspect` lists what it knows; an ExecutionTrace of the same run "
                   "(--et) adds dataflow.");
}

}  // namespace

PolicyArguments::PolicyArguments(std::string policy, std::map<std::string, std::string> values,
                                 const std::vector<ParameterInfo>& known)
    : policy_(std::move(policy)), values_(std::move(values)) {
  std::vector<std::string> names;
  for (const ParameterInfo& p : known) names.push_back(p.name);
  for (const auto& [key, value] : values_)
    if (std::find(names.begin(), names.end(), key) == names.end())
      throw UsageError("Policy '" + policy_ + "' has no parameter '" + key + "'." + did_you_mean(key, names) +
                       " It has: " + joined(names) + ".");
  for (const ParameterInfo& p : known) {
    if (values_.contains(p.name)) continue;
    if (p.default_value.empty()) throw UsageError("Policy '" + policy_ + "' needs '" + p.name + "=…': " + p.sentence);
    values_[p.name] = p.default_value;
  }
}

std::string PolicyArguments::text(const std::string& key) const {
  assert(values_.contains(key));
  return values_.at(key);
}

std::string PolicyArguments::choice(const std::string& key, const std::vector<std::string>& allowed) const {
  const std::string value = text(key);
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    throw UsageError("Policy '" + policy_ + "': " + key + "=" + value + " is not valid; expected one of " +
                     joined(allowed) + "." + did_you_mean(value, allowed));
  return value;
}

double PolicyArguments::number(const std::string& key, double low, double high) const {
  const std::string value = text(key);
  char* end = nullptr;
  const double n = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != 0 || !(n >= low && n <= high))
    throw UsageError("Policy '" + policy_ + "': " + key + "=" + value + " is not a number between " +
                     shortest_text(low) + " and " + shortest_text(high) + ".");
  return n;
}

std::int64_t PolicyArguments::integer(const std::string& key, std::int64_t low, std::int64_t high) const {
  const std::string value = text(key);
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (error != std::errc() || end != value.data() + value.size() || n < low || n > high)
    throw UsageError("Policy '" + policy_ + "': " + key + "=" + value + " is not a whole number between " +
                     std::to_string(low) + " and " + std::to_string(high) + ".");
  return n;
}

bool PolicyArguments::flag(const std::string& key) const { return choice(key, {"0", "1"}) == "1"; }

Bytes PolicyArguments::bytes(const std::string& key) const {
  const std::string value = text(key);
  const std::optional<Bytes> bytes = parse_bytes(value);
  if (!bytes)
    throw UsageError("Policy '" + policy_ + "': " + key + "=" + value +
                     " is not a size; expected a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, e.g. 25MiB.");
  return *bytes;
}

const std::map<std::string, PolicyInfo>& policies() { return registered(); }

RegisterPolicy::RegisterPolicy(PolicyInfo info) {
  assert(!info.make_rewriter != !info.make_pager);
  [[maybe_unused]] const bool is_new = registered().emplace(info.name, std::move(info)).second;
  assert(is_new && "two policies of one name");
}

PolicySpec parse_policy(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const auto found = policies().find(name);
  if (found == policies().end()) {
    std::vector<std::string> names;
    for (const auto& [known, info] : policies()) names.push_back(known);
    throw UsageError("There is no policy '" + name + "'." + did_you_mean(name, names) + " Known: " + joined(names) +
                     ".");
  }
  const std::string rest = colon < text.size() ? text.substr(colon + 1) : "";
  return {&found->second,
          PolicyArguments(name, key_values(name, rest, found->second.parameters), found->second.parameters), text};
}

namespace {

using ChosenRewriters = std::vector<std::pair<std::unique_ptr<Rewriter>, const PolicySpec*>>;

// A rewriter may repeat a collective (recompute): the ranks that all do meet once more, in a rendezvous of its own.
// `first_free`: larger than any rendezvous's number, the same for all ranks.
void separate_rendezvous(Trace& trace, std::uint64_t first_free, const std::string& policy) {
  std::map<std::uint32_t, std::uint64_t> times;
  for (Op& op : trace.ops) {
    if (!has_rendezvous(op) || op.target >= first_free) continue;
    const std::uint64_t rendezvous = op.target + first_free * times[op.target]++;
    if (rendezvous >= kNoRendezvous)
      throw UsageError("Policy '" + policy + "' repeats collectives of several ranks more often than can be numbered.");
    op.target = static_cast<std::uint32_t>(rendezvous);
  }
}

// `first_free` 0: the trace meets nobody.
Trace rewritten(Trace trace, const ChosenRewriters& rewriters, const Machine& machine, const Pricer& pricer,
                std::uint64_t first_free) {
  for (const auto& [rewriter, spec] : rewriters) {
    require_knowledge(*spec, rewriter->needs(), trace);
    trace = rewriter->rewrite(trace, machine, pricer);
    if (first_free > 0) separate_rendezvous(trace, first_free, spec->text);
    require_sound(trace, "after policy '" + spec->text + "'");
  }
  return trace;
}

// Each rank's program alone; what joins them are the collectives that stay in place.
Trace rewritten_by_rank(const Trace& trace, const ChosenRewriters& rewriters, const Machine& machine,
                        const Pricer& pricer) {
  for (const auto& [rewriter, spec] : rewriters)
    if (rewriter->kind() == RewriterKind::sharding || rewriter->kind() == RewriterKind::model_parallelism)
      throw UsageError("Policy '" + spec->text +
                       "' puts collectives of its own between ranks that all run one program; "
                       "trace '" +
                       trace.name + "' holds " + std::to_string(rank_count(trace)) +
                       " ranks with programs of their own. Expected a trace of one rank.");
  std::uint64_t first_free = 1;
  for (const Op& op : trace.ops)
    if (has_rendezvous(op)) first_free = std::max<std::uint64_t>(first_free, op.target + std::uint64_t{1});
  std::vector<RankProgram> ranks;
  for (std::uint16_t r = 0; r < rank_count(trace); ++r)
    ranks.push_back(
        {trace.rank_table[r].number, rewritten(one_rank(trace, r), rewriters, machine, pricer, first_free)});
  Trace joined = joined_ranks(std::move(ranks));
  require_sound(joined, "after the policies, of all ranks");
  return joined;
}

}  // namespace

Trace apply_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                      const Pricer& pricer) {
  ChosenRewriters rewriters;
  std::set<std::string> seen;
  for (const PolicySpec& spec : specs) {
    if (!spec.info->make_rewriter)
      throw UsageError("'" + spec.info->name + "' is a pager: give it with --pager, not --policy.");
    auto rewriter = spec.info->make_rewriter(spec.arguments);
    // Offloads of different things compose; everything else has a meaning only once.
    const bool may_repeat = rewriter->kind() == RewriterKind::offload;
    const std::string key = may_repeat ? spec.text : std::string(to_string(rewriter->kind()));
    if (!seen.insert(key).second)
      throw UsageError("Policy '" + spec.text + "' and an earlier one are both of the kind '" +
                       std::string(to_string(rewriter->kind())) + "'; their combination has no defined meaning.");
    rewriters.emplace_back(std::move(rewriter), &spec);
  }
  std::stable_sort(rewriters.begin(), rewriters.end(), [](const auto& a, const auto& b) {
    if (a.first->kind() != b.first->kind()) return a.first->kind() < b.first->kind();
    return a.second->text < b.second->text;  // the order of flags decides nothing
  });
  if (rewriters.empty()) return trace;
  return rank_count(trace) == 1 ? rewritten(trace, rewriters, machine, pricer, 0)
                                : rewritten_by_rank(trace, rewriters, machine, pricer);
}

}  // namespace memwall
