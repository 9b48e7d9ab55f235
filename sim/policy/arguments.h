// The settings of one policy as the user gave them, checked against their declarations, defaults filled in.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/policy/parameter.h"

namespace memwall {

class PolicyArguments {
 public:
  PolicyArguments() = default;
  // Throws UsageError for an unknown key, an invalid value and where a required one is missing.
  PolicyArguments(const std::string& policy, const std::map<std::string, std::string>& values,
                  const std::vector<ParameterInfo>& known);
  // Of "what=optimizer,to=host". The first may leave out its name if it is the policy's first parameter: "8".
  static PolicyArguments parse(const std::string& policy, const std::string& text,
                               const std::vector<ParameterInfo>& known);

  // Each REQUIRES a declared parameter of that type.
  const std::string& choice(const std::string& key) const;
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  bool flag(const std::string& key) const;
  Bytes bytes(const std::string& key) const;   // of bytes_or_share, too; 0 where a share is given
  double share(const std::string& key) const;  // of bytes_or_share: from 0 to 1, 0 where bytes are given
  const std::string& tier(const std::string& key) const;
  const std::vector<std::string>& list(const std::string& key) const;  // choices, tiers, patterns
  // Has it a value? False where the word stands that says that none is given (ParameterInfo::unset).
  bool is_set(const std::string& key) const { return at(key).set; }
  std::int64_t integer_or(const std::string& key, std::int64_t otherwise) const;
  bool flag_or(const std::string& key, bool otherwise) const;
  // As given.
  const std::string& text(const std::string& key) const { return at(key).text; }

 private:
  const ParameterValue& at(const std::string& key) const;

  std::map<std::string, ParameterValue> values_;
};

}  // namespace memwall
