// The list of policies. A policy is one file in policies/ that ends with one
// registration; nothing else in the program knows its name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/policy/pager.h"
#include "sim/policy/rewriter.h"

namespace memwall {

struct ParameterInfo {
  std::string name;
  std::string default_value;  // "" = required
  std::string sentence;       // what it means, its unit, its valid values
};

// Settings of one policy as the user gave them: "offload:what=optimizer,to=host". The first may leave out its name if
// it is the policy's first parameter: "batch:8".
class PolicyArguments {
 public:
  PolicyArguments() = default;
  PolicyArguments(std::string policy, std::map<std::string, std::string> values,
                  const std::vector<ParameterInfo>& known);
  // Each throws UsageError naming policy, key, what was found and what is expected.
  std::string text(const std::string& key) const;
  std::string choice(const std::string& key, const std::vector<std::string>& allowed) const;
  std::int64_t integer(const std::string& key, std::int64_t low, std::int64_t high) const;
  double number(const std::string& key, double low, double high) const;
  bool flag(const std::string& key) const;
  Bytes bytes(const std::string& key) const;  // "25MiB", "1e9", "0"

 private:
  std::string policy_;
  std::map<std::string, std::string> values_;  // defaults filled in
};

struct PolicyInfo {
  std::string name;
  std::string sentence;
  std::vector<ParameterInfo> parameters;
  // Exactly one of the two is set.
  std::function<std::unique_ptr<Rewriter>(const PolicyArguments&)> make_rewriter;
  std::function<std::unique_ptr<Pager>(const PolicyArguments&)> make_pager;
};

// All registered policies, by name. Constructed on first use.
const std::map<std::string, PolicyInfo>& policies();

// Used by the registration objects in policies/*.cpp: `static const RegisterPolicy registered{{...}};`
struct RegisterPolicy {
  explicit RegisterPolicy(PolicyInfo info);
};

// A parsed "--policy" or "--pager" value. Throws UsageError, naming the nearest valid name.
struct PolicySpec {
  const PolicyInfo* info = nullptr;
  PolicyArguments arguments;
  std::string text;  // as given
};
PolicySpec parse_policy(const std::string& text);

// Applies rewriters in the fixed order of kinds, checking knowledge before and the trace after
// each. Two rewriters of one kind are refused unless both are offloads of different things. Of a trace of several ranks
// each rank's program is rewritten alone, its rendezvous kept; sharding and model parallelism are refused there.
Trace apply_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                      const Pricer& pricer);

}  // namespace memwall
