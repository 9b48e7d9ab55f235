#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "models/workload/frameworks/configuration_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Kind = ConfigurationValue::Kind;

constexpr int kMostNested = 64;

// Types of plain scalars as YAML 1.1, which PyYAML reads, has them; a quoted one is a text.
ConfigurationValue scalar(const YAML::Node& node) {
  ConfigurationValue value;
  value.kind = Kind::text;
  value.text = node.Scalar();
  if (node.Tag() == "!") return value;
  bool truth = false;
  double number = 0;
  if (YAML::convert<double>::decode(node, number)) {
    value.kind = Kind::number;
    value.number = number;
  } else if (YAML::convert<bool>::decode(node, truth)) {
    value.kind = Kind::boolean;
    value.truth = truth;
  }
  return value;
}

class Flattener {
 public:
  explicit Flattener(const std::string& name) : name_(name) {}

  void add(const std::string& path, const YAML::Node& node, int depth) {
    // Anchors make one node stand in many places: what they say of each other grows without bound.
    if (depth > kMostNested || entries_.size() > kMostEntries)
      throw InputError(
          fmt::format("{}: it is nested deeper than {} or has more than {} values; expected a configuration.", name_,
                      kMostNested, kMostEntries));
    ConfigurationValue value;
    switch (node.Type()) {
      case YAML::NodeType::Map:
        for (const auto& member : node) {
          if (!member.first.IsScalar())
            throw InputError(fmt::format("{}:{}: found a key that is no text; expected a configuration.", name_,
                                         member.first.Mark().line + 1));
          const std::string& key = member.first.Scalar();
          add(path.empty() ? key : fmt::format("{}.{}", path, key), member.second, depth + 1);
        }
        return;
      case YAML::NodeType::Sequence:
        value.kind = Kind::list;
        for (const YAML::Node& each : node)
          if (each.IsScalar()) value.list.push_back(each.Scalar());
        value.text = fmt::format("a list of {}", node.size());
        break;
      case YAML::NodeType::Scalar:
        value = scalar(node);
        break;
      default:
        value.text = "null";
    }
    entries_.emplace_back(path, std::move(value));
  }

  ConfigurationEntries take() { return std::move(entries_); }

 private:
  static constexpr std::size_t kMostEntries = 10'000;

  const std::string& name_;
  ConfigurationEntries entries_;
};

}  // namespace

ConfigurationEntries entries_of_yaml(std::string_view text, const std::string& name) {
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) throw InputError(fmt::format("{}: found YAML without keys; expected a configuration.", name));
    Flattener flattener(name);
    flattener.add("", root, 0);
    return flattener.take();
  } catch (const YAML::Exception& error) {
    throw InputError(
        fmt::format("{}:{}:{}: the YAML is damaged: {}.", name, error.mark.line + 1, error.mark.column + 1, error.msg));
  }
}

}  // namespace memwall
