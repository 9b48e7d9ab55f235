#include "policies/plan/named_parameters.h"

#include <map>

namespace memwall {
namespace {

// memwall_capture's label of what an optimizer updates and no model names.
constexpr const char* kUnnamed = "parameter";

bool is_name(const std::string& label) {
  return !label.empty() && label != kUnnamed && label.find("::") == label.npos && label.find(' ') == label.npos;
}

}  // namespace

std::vector<NamedParameter> named_parameters(const Trace& trace) {
  std::map<std::string, std::vector<Bytes>> found;
  for (const Storage& s : trace.storages)
    if (s.preexisting && s.kind == StorageKind::parameter && trace.places[s.place] == "hbm" &&
        is_name(trace.strings[s.label]))
      found[trace.strings[s.label]].push_back(s.bytes);
  std::vector<NamedParameter> parameters;
  for (const auto& [name, bytes] : found)
    if (bytes.size() == 1) parameters.push_back({name, bytes.front()});
  return parameters;
}

}  // namespace memwall
