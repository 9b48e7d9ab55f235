#include "models/workload/import/chakra/chakra_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "models/workload/import/execution_trace/communication_node.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "models/workload/operator_class.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::size_t kMostStreams = 60'000;

// What a device node is waited for with, or a host node is continued from.
struct Marks {
  std::vector<bool> event;           // by position: a device node needs one recorded behind it
  std::vector<bool> op;              // by position: a host node needs an op of its own
  std::vector<std::uint32_t> waits;  // positions, grouped by first_wait: what this node really has to ask for
  std::vector<std::size_t> first_wait;
};

class Program {
 public:
  Program(const ChakraGraph& graph, const ChakraOrder& order, const ChakraOperators& operators, std::uint32_t ranks,
          ChakraCounts& counts)
      : ranks_(ranks),
        g_(graph),
        o_(order),
        operators_(operators),
        text_(operators.execution.strings),
        counts_(counts) {}

  ImportedTrace run() && {
    timed_ = std::any_of(o_.nodes.begin(), o_.nodes.end(), [&](std::uint32_t i) { return g_.nodes[i].duration > 0; });
    t().name = g_.path.filename().string();
    t().place("hbm");
    t().place("host");
    t().groups = listed_groups(operators_.execution);
    for (std::size_t i = 0; i < t().groups.size(); ++i) {
      groups_.emplace(t().groups[i].name, static_cast<std::uint16_t>(i));
      t().job_ranks = std::max(t().job_ranks, t().groups[i].ranks);
    }
    place_nodes();
    find_marks();
    begin();
    for (std::uint32_t p = 0; p < o_.nodes.size(); ++p)
      if (o_.on_host[p])
        write_host(p);
      else
        write_device(p);
    flush_hosts();
    t().steps[0].last = static_cast<OpId>(t().ops.size());
    t().knowledge.timing = timed_;
    return std::move(imported_);
  }

 private:
  Trace& t() { return imported_.trace; }
  const ChakraNode& node(std::uint32_t p) const { return g_.nodes[o_.nodes[p]]; }
  [[noreturn]] void fail(const std::string& sentence) const {
    throw InputError(fmt::format("{}: {}", g_.path.string(), sentence));
  }

  void place_nodes();
  std::uint16_t thread_by_id(std::int64_t id);
  std::uint16_t stream_of(std::uint32_t p);
  void find_marks();
  void begin();
  OpId append(Op op, std::uint32_t p);
  Op plain(OpKind kind, std::uint16_t thread);
  void ask(std::uint32_t p);
  void write_host(std::uint32_t p);
  void write_device(std::uint32_t p);
  void fill_collective(const ChakraNode& n, const std::string& name, Op& op);
  void fill_copy(const ChakraNode& n, const std::string& name, Op& op);
  void fill_kernel(const ChakraNode& n, const std::string& name, Op& op);
  Bytes bytes_of_arguments(std::uint32_t p) const;
  void flush_hosts();

  std::uint32_t ranks_;  // of groups of unknown size
  const ChakraGraph& g_;
  const ChakraOrder& o_;
  const ChakraOperators& operators_;
  const StringTable& text_;
  ChakraCounts& counts_;
  ImportedTrace imported_;
  bool timed_ = false;
  std::map<std::int64_t, std::uint16_t> threads_;
  std::map<std::pair<int, std::int64_t>, std::uint16_t> streams_;  // by where the number is from, and the number
  std::map<std::string, std::uint16_t> groups_;
  std::vector<std::uint16_t> lane_;    // by position: thread of a host node, stream of a device node
  std::vector<std::uint16_t> thread_;  // by position
  Marks marks_;
  std::vector<Duration> pending_;  // by thread: host time since its last op
  std::vector<OpId> op_of_;        // by position: the op to continue from, or kNoOp
  std::vector<std::uint32_t> event_of_;
};

std::uint16_t Program::thread_by_id(std::int64_t id) {
  const auto [entry, is_new] = threads_.try_emplace(id, static_cast<std::uint16_t>(t().threads.size()));
  if (is_new) {
    if (t().threads.size() == kMostStreams) fail("names more than 60000 threads.");
    t().threads.push_back({id < 0 ? "host" : fmt::format("thread {}", id), 0});
  }
  return entry->second;
}

std::uint16_t Program::stream_of(std::uint32_t p) {
  const ChakraNode& n = node(p);
  enum : int { kStated, kOldThread, kByKind };
  std::pair<int, std::int64_t> key{kByKind, 0};
  std::string name;
  const bool communicates =
      n.type == ChakraNodeType::collective || n.type == ChakraNodeType::send || n.type == ChakraNodeType::receive;
  const bool copies = n.type == ChakraNodeType::memory_load || n.type == ChakraNodeType::memory_store;
  if (n.stream >= 0) {
    key = {kStated, n.stream};
    name = fmt::format("stream {}", n.stream);
    counts_.streams_stated = true;
  } else if (n.thread >= 0 && o_.has_host && operators_.pieces) {
    key = {kOldThread, n.thread};
    name = fmt::format("stream {}", n.thread);
  } else {
    key.second = communicates ? 1 : copies ? 2 : 0;
    name = communicates ? "communication" : copies ? "copies" : "compute";
  }
  const auto [entry, is_new] = streams_.try_emplace(key, static_cast<std::uint16_t>(t().streams.size()));
  if (is_new) {
    if (t().streams.size() == kMostStreams) fail("names more than 60000 streams.");
    const StreamRole role = communicates ? StreamRole::communication : copies ? StreamRole::copy : StreamRole::compute;
    t().streams.push_back({name, 0, role, 0});
  }
  // A stream that communicates and computes too is one for computing.
  if (!communicates && !copies) t().streams[entry->second].role = StreamRole::compute;
  return entry->second;
}

void Program::place_nodes() {
  lane_.resize(o_.nodes.size());
  thread_.resize(o_.nodes.size());
  std::uint16_t last = 0;
  bool any = false;
  for (std::uint32_t p = 0; p < o_.nodes.size(); ++p) {
    if (o_.on_host[p]) {
      lane_[p] = thread_[p] = thread_by_id(node(p).thread);
      last = thread_[p];
      any = true;
    } else {
      lane_[p] = stream_of(p);
      if (!any && operators_.launched_by[p] == kNone) last = thread_by_id(-1);
      any = true;
      thread_[p] = operators_.launched_by[p] != kNone ? thread_[operators_.launched_by[p]] : last;
    }
  }
  if (t().threads.empty()) thread_by_id(-1);
  if (t().streams.empty())
    fail(fmt::format("none of its {} nodes runs on a GPU; expected device work besides {} host operators.",
                     g_.nodes.size(), o_.nodes.size()));
}

// Who asked once for a place in a stream or thread need not ask for an earlier one.
void Program::find_marks() {
  const std::size_t count = o_.nodes.size();
  marks_.event.assign(count, false);
  marks_.op.assign(count, false);
  std::map<std::tuple<bool, std::uint16_t, bool, std::uint16_t>, std::uint32_t> seen;  // who, whom: last position + 1
  const auto must_ask = [&](bool host, std::uint16_t lane, std::uint32_t producer) {
    std::uint32_t& known = seen[{host, lane, o_.on_host[producer], lane_[producer]}];
    if (known > producer) return false;
    known = producer + 1;
    return true;
  };
  marks_.first_wait.push_back(0);
  for (std::uint32_t p = 0; p < count; ++p) {
    const std::span<const std::uint32_t> producers = o_.producers_of(p);
    for (auto it = producers.rbegin(); it != producers.rend(); ++it) {  // the latest first
      const std::uint32_t q = *it;
      if (o_.on_host[q]) {
        if (lane_[q] == thread_[p] || !must_ask(true, thread_[p], q)) continue;
        marks_.op[q] = true;
      } else {
        const bool same = !o_.on_host[p] && lane_[q] == lane_[p];
        if (same || !must_ask(o_.on_host[p], lane_[p], q)) continue;
        marks_.event[q] = true;
      }
      marks_.waits.push_back(q);
    }
    marks_.first_wait.push_back(marks_.waits.size());
  }
  pending_.assign(t().threads.size(), Duration{});
  op_of_.assign(count, kNoOp);
  event_of_.assign(count, 0);
}

Op Program::plain(OpKind kind, std::uint16_t thread) {
  Op op;
  op.kind = kind;
  op.thread = thread;
  op.origin = timed_ ? Origin::measured : Origin::modelled;
  return op;
}

OpId Program::append(Op op, std::uint32_t p) {
  op.host_gap = std::exchange(pending_[op.thread], Duration{});
  t().ops.push_back(op);
  imported_.operator_of_op.push_back(p == kNone ? kNone : operators_.operator_of[p]);
  return static_cast<OpId>(t().ops.size() - 1);
}

void Program::begin() {
  Op mark = plain(OpKind::mark, thread_.empty() ? 0 : thread_[0]);
  mark.name = t().strings.intern("step");
  t().steps.push_back({"step", 0, 0});
  append(mark, kNone);
}

void Program::ask(std::uint32_t p) {
  for (std::size_t w = marks_.first_wait[p]; w < marks_.first_wait[p + 1]; ++w) {
    const std::uint32_t q = marks_.waits[w];
    if (o_.on_host[q]) {
      Op op = plain(OpKind::hand_over, thread_[p]);
      op.target = op_of_[q];
      append(op, kNone);
      ++counts_.hand_overs;
      continue;
    }
    if (thread_[q] != thread_[p]) {  // the event has been recorded by then
      Op op = plain(OpKind::hand_over, thread_[p]);
      op.target = op_of_[q];
      append(op, kNone);
      ++counts_.hand_overs;
    }
    Op op = plain(o_.on_host[p] ? OpKind::synchronize : OpKind::event_wait, thread_[p]);
    if (o_.on_host[p]) op.wait_for = WaitFor::event;
    op.stream = o_.on_host[p] ? lane_[q] : lane_[p];
    op.target = event_of_[q];
    append(op, kNone);
    ++(o_.on_host[p] ? counts_.synchronizes : counts_.waits);
  }
}

void Program::write_host(std::uint32_t p) {
  ++counts_.host_nodes;
  ask(p);
  pending_[thread_[p]] += microseconds(node(p).duration);
  if (!marks_.op[p]) return;
  Op mark = plain(OpKind::mark, thread_[p]);
  mark.name = mark.operator_name = t().strings.intern(text_[node(p).name]);
  op_of_[p] = append(mark, p);
}

// The bytes of the first tensor of the operator that launched it.
Bytes Program::bytes_of_arguments(std::uint32_t p) const {
  const std::uint32_t k = operators_.operator_of[p];
  if (k == kNone) return 0;
  const ExecutionNode& n = operators_.execution.nodes[k];
  const std::span<const TensorUse> inputs = operators_.execution.inputs(n), outputs = operators_.execution.outputs(n);
  return !inputs.empty() ? inputs[0].bytes() : !outputs.empty() ? outputs[0].bytes() : 0;
}

void Program::fill_collective(const ChakraNode& n, const std::string& name, Op& op) {
  using Kind = CollectiveKind;
  static constexpr Kind kKinds[] = {Kind::all_reduce,     Kind::reduce,    Kind::all_gather, Kind::send_receive,
                                    Kind::send_receive,   Kind::broadcast, Kind::all_to_all, Kind::reduce_scatter,
                                    Kind::reduce_scatter, Kind::barrier};
  op.kind = OpKind::collective;
  if (n.type != ChakraNodeType::collective)
    op.collective = Kind::send_receive;
  else if (n.communication >= 0 && n.communication < static_cast<std::int64_t>(std::size(kKinds)))
    op.collective = kKinds[n.communication];
  else
    op.collective = collective_kind(name, "") != Kind::none ? collective_kind(name, "") : collective_by_name(name);
  const std::string& group = text_[n.group];
  const auto [entry, is_new] = groups_.try_emplace(group, static_cast<std::uint16_t>(t().groups.size()));
  if (is_new) {
    if (t().groups.size() == kMostStreams) fail("names more than 60000 process groups.");
    t().groups.push_back({group, ranks_, {}});
    t().job_ranks = std::max(t().job_ranks, ranks_);
  }
  op.group = entry->second;
  const std::uint32_t ranks = t().groups[op.group].ranks;
  counts_.unsized_groups += ranks == 0 && op.collective != Kind::send_receive;
  const Bytes message = std::max<std::int64_t>(n.message, 0);
  op.bytes = ranks == 1 ? 0 : wire_bytes(op.collective, message, ranks);
  ++counts_.collectives;
}

void Program::fill_copy(const ChakraNode& n, const std::string& name, Op& op) {
  op.kind = OpKind::copy;
  op.operator_class = OperatorClass::memory;
  CopyDirection d = copy_direction(name);
  if (n.type == ChakraNodeType::memory_load) d = {.from_host = true};
  if (n.type == ChakraNodeType::memory_store) d = {.to_host = true};
  op.from = t().place(d.from_host ? "host" : "hbm");
  op.to = t().place(d.to_host ? "host" : d.between_devices ? "peer_hbm" : "hbm");
  op.pageable = d.pageable;
  ++counts_.copies;
}

void Program::fill_kernel(const ChakraNode& n, const std::string& name, Op& op) {
  op.kind = name.starts_with("Memset") ? OpKind::memset : OpKind::kernel;
  const std::string& operator_name = op.operator_name != 0 ? imported_.trace.strings[op.operator_name] : name;
  op.operator_class = operator_class(operator_name, name);
  if (n.operations > 0) op.flops = static_cast<double>(n.operations);
  if (n.tensor_bytes > 0) op.bytes = n.tensor_bytes;
  ++(op.kind == OpKind::memset ? counts_.memsets : counts_.kernels);
}

void Program::write_device(std::uint32_t p) {
  ask(p);
  const ChakraNode& n = node(p);
  const std::string& name = text_[n.name];
  Op op = plain(OpKind::kernel, thread_[p]);
  op.stream = lane_[p];
  op.name = t().strings.intern(name);
  if (operators_.operator_of[p] != kNone)
    op.operator_name =
        t().strings.intern(operators_.execution.name(operators_.execution.nodes[operators_.operator_of[p]]));
  const bool memory = n.type == ChakraNodeType::memory_load || n.type == ChakraNodeType::memory_store;
  if (n.type == ChakraNodeType::collective || n.type == ChakraNodeType::send || n.type == ChakraNodeType::receive)
    fill_collective(n, name, op);
  else if (memory || name.starts_with("Memcpy"))
    fill_copy(n, name, op);
  else
    fill_kernel(n, name, op);
  if ((op.kind == OpKind::copy || op.kind == OpKind::memset) && op.bytes == 0)
    op.bytes = n.tensor_bytes > 0 ? n.tensor_bytes : bytes_of_arguments(p);
  op.duration = microseconds(n.duration);
  const bool work = n.operations > 0 || n.tensor_bytes > 0 || (n.message > 0 && !o_.has_host);
  if (n.duration > 0) {
    ++counts_.timed;
  } else if (!timed_ || work) {
    op.origin = Origin::modelled;
    ++counts_.priced;
  } else {
    ++counts_.zero;
  }
  op_of_[p] = append(op, p);
  if (!marks_.event[p]) return;
  Op record = plain(OpKind::event_record, thread_[p]);
  record.stream = op.stream;
  record.target = event_of_[p] = t().event_count++;
  op_of_[p] = append(record, kNone);
}

// Host time behind a thread's last op is part of the step.
void Program::flush_hosts() {
  for (std::uint16_t thread = 0; thread < pending_.size(); ++thread)
    if (pending_[thread] > Duration{}) append(plain(OpKind::mark, thread), kNone);
}

}  // namespace

ImportedTrace chakra_program(const ChakraGraph& graph, const ChakraOrder& order, const ChakraOperators& operators,
                             std::uint32_t ranks, ChakraCounts& counts) {
  return Program(graph, order, operators, ranks, counts).run();
}

}  // namespace memwall
