#include "policies/trace/module_blocks.h"

#include <map>
#include <utility>

namespace memwall {
namespace {

// A module's name without its number: "layers.3" -> "layers.", "Block_3" -> "Block_", "3" -> "."; "" if it has none.
std::string stem(const std::string& part, BlockRule rule) {
  const std::size_t digits = part.find_last_not_of("0123456789") + 1;
  if (digits == part.size()) return "";
  if (digits == 0) return rule == BlockRule::numbered ? "." : "";
  const char before = part[digits - 1];
  const bool separate = before == '.' || before == '_';
  return separate || rule == BlockRule::numbered ? part.substr(0, digits) : "";
}

// PyTorch's containers only hold other modules: what they hold are the blocks.
bool is_container(const std::string& part) {
  const std::string name = part.substr(part.rfind('.') + 1);
  return name.starts_with("Sequential") || name.starts_with("ModuleList") || name.starts_with("ModuleDict");
}

}  // namespace

std::vector<std::string> leading_parts(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i <= path.size(); ++i)
    if (i == path.size() || path[i] == '.') parts.push_back(path.substr(0, i));
  return parts;
}

ModuleBlocks::ModuleBlocks(const std::set<std::string>& paths, BlockRule rule) {
  const bool alike = rule == BlockRule::alike;
  std::map<std::string, std::set<std::string>> inside;  // of numbered modules: kinds of modules right inside
  for (const std::string& path : paths) {
    const std::vector<std::string> parts = leading_parts(path);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (stem(parts[i], rule).empty()) continue;
      std::set<std::string>& kinds = inside[parts[i]];
      if (!alike || i + 1 == parts.size()) continue;
      const std::string kind = stem(parts[i + 1], rule);
      kinds.insert((kind.empty() ? parts[i + 1] : kind).substr(parts[i].size()));
    }
  }
  std::map<std::pair<std::string, std::set<std::string>>, std::vector<std::string>> siblings;
  for (const auto& [part, kinds] : inside) siblings[{stem(part, rule), kinds}].push_back(part);
  for (const auto& [key, members] : siblings)
    for (const std::string& part : members)
      if (alike ? members.size() > 1 : !is_container(part) && (key.first.back() == '.' || members.size() > 1))
        blocks_.insert(part);
}

std::string ModuleBlocks::of(const std::string& path) const {
  for (const std::string& part : leading_parts(path))
    if (blocks_.contains(part)) return part;
  return "";
}

}  // namespace memwall
