#include "sim/policy/applied_policy.h"

namespace memwall {
namespace {

template <class Held>
const Held* held(const AppliedValue* value) {
  return value == nullptr ? nullptr : std::get_if<Held>(value);
}

}  // namespace

const AppliedValue* AppliedPolicy::find(std::string_view setting) const {
  for (const auto& [name, value] : settings)
    if (name == setting) return &value;
  return nullptr;
}

bool AppliedPolicy::flag(std::string_view setting, bool otherwise) const {
  const bool* const found = held<bool>(find(setting));
  return found == nullptr ? otherwise : *found;
}

std::int64_t AppliedPolicy::integer(std::string_view setting, std::int64_t otherwise) const {
  const std::int64_t* const found = held<std::int64_t>(find(setting));
  return found == nullptr ? otherwise : *found;
}

double AppliedPolicy::number(std::string_view setting, double otherwise) const {
  if (const double* const found = held<double>(find(setting))) return *found;
  const std::int64_t* const whole = held<std::int64_t>(find(setting));
  return whole == nullptr ? otherwise : static_cast<double>(*whole);
}

std::string AppliedPolicy::word(std::string_view setting) const {
  const std::string* const found = held<std::string>(find(setting));
  return found == nullptr ? "" : *found;
}

std::vector<std::string> AppliedPolicy::list(std::string_view setting) const {
  if (const auto* const found = held<std::vector<std::string>>(find(setting))) return *found;
  const std::string one = word(setting);
  return one.empty() ? std::vector<std::string>{} : std::vector<std::string>{one};
}

}  // namespace memwall
