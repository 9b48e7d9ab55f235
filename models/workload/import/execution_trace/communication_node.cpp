#include "models/workload/import/execution_trace/communication_node.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "models/workload/import/timed/kernel_properties.h"

namespace memwall {
namespace {

namespace dom = simdjson::dom;

std::int64_t number(const std::string& text) {
  std::int64_t n = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc{} && end == text.data() + text.size() ? n : -1;
}

std::string without_quotes(const std::string& text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2) : text;
}

// "0" of ["0","default_pg"]; a number stays as it is.
std::string group_name(const std::string& text) {
  if (!text.starts_with('[')) return without_quotes(text);
  const std::size_t open = text.find('"'), close = open == std::string::npos ? open : text.find('"', open + 1);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

std::uint32_t elements_of_list(const std::string& text) {
  if (text.size() < 3 || text.front() != '[') return 0;
  return static_cast<std::uint32_t>(
      std::min<std::ptrdiff_t>(std::count(text.begin(), text.end(), ',') + 1, kMostRanks));
}

std::uint32_t ranks_of(std::int64_t n) { return n > 0 && n <= kMostRanks ? static_cast<std::uint32_t>(n) : 0; }

Bytes bytes_on_device(std::span<const TensorUse> tensors) {
  Bytes bytes = 0;
  for (const TensorUse& t : tensors)
    if (t.on_device && t.defined()) bytes = std::min(bytes + t.bytes(), Bytes{1} << 50);
  return bytes;
}

void read_attributes(const ExecutionTrace& execution, std::uint32_t node, CommunicationNode& c) {
  const auto found = std::lower_bound(execution.collectives.begin(), execution.collectives.end(), node,
                                      [](const CollectiveAttributes& a, std::uint32_t n) { return a.node < n; });
  if (found == execution.collectives.end() || found->node != node) return;
  if (found->name != 0) c.name = execution.strings[found->name];
  if (found->group != 0) c.group = execution.strings[found->group];
  if (found->ranks > 0) c.ranks = ranks_of(found->ranks);
  if (found->first_rank >= 0) c.first_rank = found->first_rank;
  if (found->step >= 0) c.step = found->step;
}

}  // namespace

CollectiveKind collective_by_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(name.rfind(':') + 1))
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  static constexpr std::pair<std::string_view, CollectiveKind> kNames[] = {
      {"allreduce", CollectiveKind::all_reduce}, {"reducescatter", CollectiveKind::reduce_scatter},
      {"allgather", CollectiveKind::all_gather}, {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},  {"barrier", CollectiveKind::barrier},
      {"reduce", CollectiveKind::reduce},        {"send", CollectiveKind::send_receive},
      {"recv", CollectiveKind::send_receive},    {"gather", CollectiveKind::send_receive},
      {"scatter", CollectiveKind::send_receive}};
  if (plain.find("barrier") != std::string::npos) return CollectiveKind::barrier;
  for (const auto& [text, kind] : kNames)
    if (plain.starts_with(text)) return kind;
  return CollectiveKind::none;
}

std::optional<CommunicationNode> communication_record(const ExecutionTrace& execution, std::uint32_t n) {
  const ExecutionNode& node = execution.nodes[n];
  if (execution.name(node) != "record_param_comms") return std::nullopt;
  CommunicationNode c;
  std::size_t at = 0;  // of the name, the first text
  while (at < node.value_count && !execution.value(node, at).starts_with('"')) ++at;
  if (at < node.value_count) {
    c.name = without_quotes(execution.value(node, at));
    if (at >= 3) c.number = number(execution.value(node, at - 3));
    if (at >= 2) c.group = group_name(execution.value(node, at - 2));
    if (at >= 1) c.rank = number(execution.value(node, at - 1));
    c.ranks =
        std::max(elements_of_list(execution.value(node, at + 1)), elements_of_list(execution.value(node, at + 2)));
    const std::size_t rest = node.value_count - std::min<std::size_t>(node.value_count, at + 3);
    if (rest >= 1) c.ranks = std::max(c.ranks, ranks_of(number(execution.value(node, node.value_count - 1))));
    if (rest >= 3) {
      c.first_rank = number(execution.value(node, at + 3));
      c.step = number(execution.value(node, at + 4));
    }
  }
  read_attributes(execution, n, c);
  c.kind = collective_by_name(c.name);
  c.message = bytes_on_device(execution.inputs(node));
  return c;
}

CommunicationNode communication_of(const ExecutionTrace& execution, const ExecutionOrder& order, std::uint32_t n) {
  CommunicationNode c;
  bool recorded = false;
  for (std::uint32_t around = n, depth = 0; around != kNoIndex && depth < 4 && !recorded;
       around = order.parent[around], ++depth)
    if (const auto record = communication_record(execution, around)) {
      c = *record;
      recorded = true;
    }
  const ExecutionNode& node = execution.nodes[n];
  if (c.kind == CollectiveKind::none) c.kind = collective_by_name(execution.name(node));
  if (c.message == 0) c.message = bytes_on_device(execution.inputs(node));
  if (c.name.empty()) c.name = execution.name(node);
  return c;
}

std::vector<ProcessGroup> listed_groups(const ExecutionTrace& execution) {
  std::vector<ProcessGroup> groups;
  dom::parser parser;
  for (const ExecutionNode& node : execution.nodes) {
    if (!execution.name(node).starts_with("## process_group:init")) continue;
    const std::string& quoted = execution.value(node, 0);  // a JSON text of JSON
    dom::element outer, list;
    std::string_view text;
    if (parser.parse(quoted).get(outer) != simdjson::SUCCESS || outer.get(text) != simdjson::SUCCESS) continue;
    const std::string inner(text);
    dom::array array;
    if (parser.parse(inner).get(list) != simdjson::SUCCESS || list.get(array) != simdjson::SUCCESS) continue;
    for (const dom::element entry : array) {
      ProcessGroup group;
      if (std::string_view name; entry["pg_name"].get(name) == simdjson::SUCCESS) group.name = name;
      for (const char* key : {"group_size", "pg_size"})
        if (std::int64_t size = 0; entry[key].get(size) == simdjson::SUCCESS) group.ranks = ranks_of(size);
      dom::array ranks;
      if (entry["ranks"].get(ranks) == simdjson::SUCCESS)
        for (const dom::element rank : ranks)
          if (std::uint64_t r = 0; rank.get(r) == simdjson::SUCCESS && r < kMostRanks)
            group.members.push_back(static_cast<std::uint32_t>(r));
      std::sort(group.members.begin(), group.members.end());
      group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
      if (!group.members.empty()) group.ranks = static_cast<std::uint32_t>(group.members.size());
      const bool known =
          std::any_of(groups.begin(), groups.end(), [&](const ProcessGroup& g) { return g.name == group.name; });
      if (!known && groups.size() < 60000) groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace memwall
