#include "models/workload/import/execution_trace/capture_rank.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "models/workload/import/execution_trace/communication_node.h"
#include "models/workload/import/timed/captured_batches.h"
#include "models/workload/import/timed/captured_communication.h"
#include "models/workload/import/timed/kernel_properties.h"

namespace memwall {
namespace {

using std::string_view;

constexpr std::size_t kMostGroups = 65535;

DataType type_of(string_view name) {
  if (name.starts_with("c10::")) name.remove_prefix(5);
  constexpr std::pair<string_view, DataType> types[] = {
      {"double", DataType::fp64},        {"Double", DataType::fp64},  {"float", DataType::fp32},
      {"Float", DataType::fp32},         {"Half", DataType::fp16},    {"BFloat16", DataType::bf16},
      {"long int", DataType::int64},     {"long", DataType::int64},   {"Long", DataType::int64},
      {"int", DataType::int32},          {"Int", DataType::int32},    {"signed char", DataType::int8},
      {"unsigned char", DataType::int8}, {"Char", DataType::int8},    {"Byte", DataType::int8},
      {"bool", DataType::boolean},       {"Bool", DataType::boolean}, {"Float8_e4m3fn", DataType::fp8},
      {"Float8_e5m2", DataType::fp8}};
  for (const auto& [known, type] : types)
    if (known == name) return type;
  return DataType::unknown;
}

std::optional<std::int64_t> whole_number(string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

string_view quoted_part(string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return {};
  return text.substr(1, text.size() - 2);
}

// The first element of a short JSON list: "[147,false]" gives "147", "[\"0\",\"default_pg\"]" gives "\"0\"".
string_view first_of(string_view text) {
  if (!text.starts_with('[')) return text;
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(",]"));
}

// "nccl:send 0->1" and "nccl:recv 1<-0": ranks within the group.
bool peers_of(string_view range, std::int64_t& source, std::int64_t& destination) {
  const bool sends = range.starts_with("nccl:send ");
  if (!sends && !range.starts_with("nccl:recv ")) return false;
  range.remove_prefix(10);
  const std::size_t arrow = range.find(sends ? "->" : "<-");
  if (arrow == string_view::npos) return false;
  const auto self = whole_number(range.substr(0, arrow)), peer = whole_number(range.substr(arrow + 2));
  if (!self || !peer || *self < 0 || *peer < 0) return false;
  source = sends ? *self : *peer;
  destination = sends ? *peer : *self;
  return true;
}

// The field counts within the group. Files without the spacing of the group's members (before PyTorch 2.2) do not say
// more: there the group is taken for all ranks.
std::int64_t rank_in_job(const NodeCommunication& c, const std::optional<CommunicationNode>& record) {
  if (!record || record->first_rank < 0) return c.rank;
  const bool evenly = record->step > 0 && record->first_rank < kMostRanks && record->step < kMostRanks;
  return evenly && c.rank >= 0 && c.rank < kMostRanks ? record->first_rank + record->step * c.rank : -1;
}

class RankReader {
 public:
  RankReader(const ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace* execution,
             const OperatorMatch* match)
      : t_(imported), c_(capture), execution_(execution), match_(match) {}

  RankCapture read() {
    r_.rank = c_.rank;
    r_.world_size = c_.world_size;
    if (r_.rank < 0 && execution_ != nullptr) r_.rank = rank_of(*execution_);
    find_start();
    count_devices();
    for (OpId id = 0; id < t_.trace.ops.size(); ++id)
      if (t_.trace.ops[id].kind == OpKind::collective) add(id);
    return std::move(r_);
  }

 private:
  void find_start() {
    // Hostile files may have any two numbers here; only differences between captures matter, so wrapping is harmless.
    const std::uint64_t ns = static_cast<std::uint64_t>(c_.base_time_ns) +
                             static_cast<std::uint64_t>(c_.first_event_ns) +
                             static_cast<std::uint64_t>(t_.captured.origin.count() / 1000);
    r_.start_ns = static_cast<std::int64_t>(ns);
    r_.start_fraction = Duration(t_.captured.origin.count() % 1000);
  }

  void count_devices() {
    std::vector<std::uint16_t> devices;
    for (const Stream& stream : t_.trace.streams)
      if (std::find(devices.begin(), devices.end(), stream.device) == devices.end()) devices.push_back(stream.device);
    r_.devices = static_cast<std::uint32_t>(devices.size());
  }

  void add(OpId id) {
    const std::uint32_t device_op = t_.device_of_op[id];
    if (device_op == kNoIndex) return;
    if (const CapturedBatch* batch = batch_of(t_.batches, device_op)) {
      // Where its messages do not say with whom they still say in which group.
      if (!add_batch(id, *batch)) r_.collectives.push_back(grouped(id, *batch, batch->messages.front()));
      return;
    }
    CapturedCollective c = timed(id, device_op);
    const CapturedCommunication* communication = communication_of(c_, device_op, t_.operator_of_op[id]);
    const std::uint32_t range = communication_range(c_, t_.operator_of_op[id]);
    add_message(c, c_.device_ops[device_op], communication, range);
    find_group(c, communication, device_op, t_.operator_of_op[id]);
    find_peers(c, communication, range);
    r_.collectives.push_back(c);
  }

  CapturedCollective timed(OpId id, std::uint32_t device_op) const {
    CapturedCollective c;
    c.op = id;
    c.kind = t_.trace.ops[id].collective;
    c.start = c_.device_ops[device_op].start - t_.captured.origin;
    c.end = c_.device_ops[device_op].end() - t_.captured.origin;
    return c;
  }

  // Each message by itself: ranks may put into one batch what their peers have in two. False where one of them does not
  // say with whom. What a rank sends itself meets nobody.
  bool add_batch(OpId id, const CapturedBatch& batch) {
    std::vector<std::int64_t> peers;
    for (const std::uint32_t message : batch.messages) peers.push_back(peer_of(message));
    if (r_.rank < 0 || std::any_of(peers.begin(), peers.end(), [](std::int64_t peer) { return peer < 0; }))
      return false;
    const std::size_t before = r_.collectives.size();
    std::int64_t first = -1;  // peer
    bool several = false;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] == r_.rank) continue;
      if (first < 0) first = peers[i];
      several = several || peers[i] != first;
      r_.collectives.push_back(message_of(id, batch, batch.messages[i], peers[i]));
    }
    for (std::size_t i = before; i < r_.collectives.size(); ++i) r_.collectives[i].several_peers = several;
    return r_.collectives.size() > before;
  }

  CapturedCollective grouped(OpId id, const CapturedBatch& batch, std::uint32_t message) {
    CapturedCollective c = timed(id, batch.device_op);
    c.kind = CollectiveKind::send_receive;
    find_group(c, &c_.communications[c_.operators[message].communication], batch.device_op, message);
    c.sequence = -1;  // counts this rank's batches, which its peers need not share
    return c;
  }

  CapturedCollective message_of(OpId id, const CapturedBatch& batch, std::uint32_t message, std::int64_t peer) {
    const CapturedCommunication& said = c_.communications[c_.operators[message].communication];
    CapturedCollective c = grouped(id, batch, message);
    c.batched = true;
    c.source = is_sent(c_, message) ? r_.rank : peer;
    c.destination = is_sent(c_, message) ? peer : r_.rank;
    c.elements = said.elements;
    c.type = type_of(c_.text(said.message_type));
    return c;
  }

  // With whom the message is exchanged, as a number in the job; -1 where neither the capture nor the ExecutionTrace
  // say.
  std::int64_t peer_of(std::uint32_t message) const {
    const CapturedCommunication& said = c_.communications[c_.operators[message].communication];
    const std::int64_t peer = is_sent(c_, message) ? said.destination : said.source;
    if (peer >= 0) return std::min<std::int64_t>(peer, kMostRanks);
    const std::uint32_t node = node_around(message);
    NodeCommunication found;
    if (node == kNoIndex || !communication_of_node(*execution_, execution_->nodes[node], found)) return -1;
    return rank_in_job(found, communication_record(*execution_, node));
  }

  void add_message(CapturedCollective& c, const CapturedDeviceOp& kernel, const CapturedCommunication* communication,
                   std::uint32_t range) const {
    string_view type;
    if (const CapturedMessage message = c_.message(kernel); message.elements >= 0) {
      c.elements = message.elements;
      type = c_.text(message.type);
    } else if (communication != nullptr && communication->elements >= 0) {
      c.elements = communication->elements;
      type = c_.text(communication->message_type);
    } else if (range != kNoIndex) {
      c.elements = first_tensor_elements(c_.text(c_.operators[range].input_dims));
      c.type = type_of(first_tensor_type(c_.text(c_.operators[range].input_types)));
    }
    if (!type.empty()) c.type = type_of(type);
  }

  // `operator_index`: innermost around what was recorded of it.
  void find_group(CapturedCollective& c, const CapturedCommunication* communication, std::uint32_t device_op,
                  std::uint32_t operator_index) {
    CapturedGroup group;
    if (communication != nullptr && communication->group_name != 0) {
      group.name = c_.text(communication->group_name);
      group.ranks_text = c_.text(communication->group_ranks);
      group.members = listed_ranks(group.ranks_text);
      if (group.members.empty()) group.members = configured_members(group.name);
      const std::int64_t size =
          communication->group_size > 0 ? communication->group_size : c_.message(c_.device_ops[device_op]).group_size;
      group.ranks = group.members.empty() ? small(size) : static_cast<std::uint32_t>(group.members.size());
      c.sequence = communication->sequence;
      ++r_.named_by_file;
      c.group = number_of("name " + group.name + " " + group.ranks_text, group);
      return;
    }
    std::string key = "stream " + std::to_string(t_.trace.ops[c.op].stream);
    NodeCommunication node;
    if (const std::uint32_t n = node_around(operator_index);
        n != kNoIndex && communication_of_node(*execution_, execution_->nodes[n], node) && !node.group.empty()) {
      c.sequence = node.sequence;
      if (node.group_named) group.name = node.group;
      key = "node " + node.group;
      ++r_.named_by_execution_trace;
    }
    if (communication != nullptr && c.sequence < 0) c.sequence = communication->sequence;
    group.ranks = small(c_.message(c_.device_ops[device_op]).group_size);
    c.group = number_of(key, group);
  }

  // The ExecutionTrace's node record_param_comms around the launch, or kNoIndex.
  std::uint32_t node_around(std::uint32_t operator_index) const {
    if (execution_ == nullptr || match_ == nullptr) return kNoIndex;
    for (std::uint32_t i = operator_index; i != kNoIndex; i = c_.operators[i].parent) {
      const std::uint32_t node = match_->node_of_operator[i];
      NodeCommunication found;
      if (node != kNoIndex && communication_of_node(*execution_, execution_->nodes[node], found)) return node;
    }
    return kNoIndex;
  }

  static std::uint32_t small(std::int64_t ranks) {
    return ranks > 0 && ranks <= kMostRanks ? static_cast<std::uint32_t>(ranks) : 0;
  }

  std::vector<std::uint32_t> configured_members(const std::string& name) const {
    for (const ProcessGroup& group : c_.process_groups)
      if (group.name == name) return group.members;
    return {};
  }

  std::uint16_t number_of(const std::string& key, const CapturedGroup& group) {
    const auto next = static_cast<std::uint16_t>(std::min(r_.groups.size(), kMostGroups - 1));
    const auto [found, is_new] = group_of_key_.try_emplace(key, next);
    if (is_new && r_.groups.size() < kMostGroups) r_.groups.push_back(group);
    return found->second;
  }

  void find_peers(CapturedCollective& c, const CapturedCommunication* communication, std::uint32_t range) const {
    if (c.kind != CollectiveKind::send_receive) return;
    if (communication != nullptr && (communication->source >= 0 || communication->destination >= 0)) {
      c.source = communication->source >= 0 ? communication->source : r_.rank;
      c.destination = communication->destination >= 0 ? communication->destination : r_.rank;
      return;
    }
    if (range == kNoIndex || !peers_of(c_.text(c_.operators[range].name), c.source, c.destination)) return;
    const std::vector<std::uint32_t>& members = r_.groups[c.group].members;
    for (std::int64_t* rank : {&c.source, &c.destination})
      if (!members.empty()) *rank = static_cast<std::size_t>(*rank) < members.size() ? members[*rank] : -1;
  }

  const ImportedTrace& t_;
  const TimedCapture& c_;
  const ExecutionTrace* execution_;
  const OperatorMatch* match_;
  RankCapture r_;
  std::map<std::string, std::uint16_t> group_of_key_;
};

}  // namespace

RankCapture rank_of_capture(const ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace* execution,
                            const OperatorMatch* match) {
  return RankReader(imported, capture, execution, match).read();
}

std::vector<std::uint32_t> listed_ranks(const std::string& text) {
  std::vector<std::uint32_t> ranks;
  string_view rest = text;
  if (rest.size() < 2 || rest.front() != '[' || rest.back() != ']') return {};
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto rank = whole_number(rest.substr(0, comma));
    if (!rank || *rank < 0 || *rank >= kMostRanks) return {};
    ranks.push_back(static_cast<std::uint32_t>(*rank));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::sort(ranks.begin(), ranks.end());
  return std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end() ? ranks : std::vector<std::uint32_t>{};
}

bool communication_of_node(const ExecutionTrace& execution, const ExecutionNode& node, NodeCommunication& result) {
  if (execution.name(node) != "record_param_comms") return false;
  // Behind the tensors, which are none, one or a list.
  for (std::size_t at = 0; at < 2; ++at) {
    const auto sequence = whole_number(first_of(execution.value(node, at)));
    const std::string& group = execution.value(node, at + 1);
    const auto rank = whole_number(execution.value(node, at + 2));
    const string_view name = quoted_part(execution.value(node, at + 3));
    if (!sequence || group.empty() || !rank || name.empty()) continue;
    result.group_named = group.front() == '[' || group.front() == '"';
    result.group = std::string(result.group_named ? quoted_part(first_of(group)) : string_view(group));
    result.sequence = *sequence;
    result.rank = *rank;
    result.collective = std::string(name);
    return true;
  }
  return false;
}

std::int64_t rank_of(const ExecutionTrace& execution) {
  std::int64_t rank = -1;
  for (std::uint32_t node = 0; node < execution.nodes.size(); ++node) {
    NodeCommunication c;
    if (!communication_of_node(execution, execution.nodes[node], c)) continue;
    // Of a broadcast, a reduction to one, a send or a receive the field is the root or the peer.
    const CollectiveKind kind = collective_kind_by_name(c.collective);
    const bool own = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather ||
                     kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
    if (!own) continue;
    const std::int64_t in_job = rank_in_job(c, communication_record(execution, node));
    if (in_job < 0) continue;
    if (rank >= 0 && rank != in_job) return -1;
    rank = in_job;
  }
  return rank;
}

}  // namespace memwall
