#include "models/workload/import/execution_trace/storage_join.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace memwall {
namespace {

constexpr Bytes kUnsplit = Bytes{1} << 20;  // the most that the large pool leaves unsplit

// A new storage, at the operator that first has it.
struct Birth {
  std::uint32_t node = kNoIndex;
  std::uint32_t tensor = kNoIndex;  // the output
  Bytes bytes = 0;
  StorageId storage = kNoStorage;
};

// What one storage id meant for a while.
struct Content {
  std::uint32_t birth = kNoIndex;   // kNoIndex: older than the window
  std::uint32_t tensor = kNoIndex;  // the first use
  Bytes bytes = 0;
  std::int64_t last_op = -1;  // of the operators that mention it
  StorageId storage = kNoStorage;
};

class Joiner {
 public:
  Joiner(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
         const OperatorMatch& match)
      : imported_(imported), trace_(imported.trace), capture_(capture), execution_(execution), match_(match) {}

  StorageJoin run() && {
    locate_ops();
    find_births();
    claim_allocations();
    resolve_contents();
    adopt_freed();
    create_storages();
    fill_result();
    return std::move(result_);
  }

 private:
  static bool real(const TensorUse& t) { return t.on_device && t.defined() && t.bytes() > 0; }

  void locate_ops();
  void find_births();
  void group_births();
  struct Frame {  // an operator that has begun and not ended
    std::uint32_t node = 0;
    std::vector<std::int64_t> received;  // storage ids of its inputs, sorted
  };
  struct Thread {
    std::vector<Frame> open;
    std::unordered_map<std::int64_t, std::uint32_t> newest;  // storage id -> its last birth
  };
  void open(Thread& thread, std::uint32_t node) const;
  void close_last(Thread& thread);
  void claim_allocations();
  bool claim(StorageId storage, std::uint32_t captured_operator);
  bool claim_for_node(StorageId storage, std::uint32_t node, Bytes slack);
  void mark_operators_around_free(StorageId storage);
  bool freed_inside(std::uint32_t captured_operator) const { return around_free_[captured_operator] == claims_; }
  void resolve_contents();
  void resolve_inputs(std::uint32_t node);
  void begin_births(std::uint32_t node);
  bool alive_at(const Content& content, std::int64_t position) const;
  void adopt_freed();
  void create_storages();
  void fill_result();
  std::uint32_t operator_of(std::uint32_t op) const { return imported_.operator_of_op[op]; }
  std::uint32_t parent(std::uint32_t captured_operator) const { return capture_.operators[captured_operator].parent; }

  ImportedTrace& imported_;
  Trace& trace_;
  const TimedCapture& capture_;
  const ExecutionTrace& execution_;
  const OperatorMatch& match_;

  std::vector<std::int64_t> alloc_op_, free_op_;  // by storage; -1 = none
  std::vector<std::int64_t> first_op_, last_op_;  // by captured operator, those inside included
  std::vector<Birth> births_;                     // grouped by node after find_births
  std::vector<std::uint32_t> first_birth_;        // by node, one more than nodes
  std::vector<std::uint32_t> birth_of_tensor_;    // by tensor (outputs)
  std::vector<std::uint32_t> around_free_;        // by captured operator: the last claim it was marked for
  std::uint32_t claims_ = 0;
  std::vector<std::uint32_t> content_of_birth_;
  std::vector<std::uint32_t> content_of_tensor_;
  std::vector<Content> contents_;
  std::unordered_map<std::int64_t, std::uint32_t> current_;  // storage id -> content; looked up only
  StorageJoin result_;
};

// Where in the program each captured operator stands.
void Joiner::locate_ops() {
  alloc_op_.assign(trace_.storages.size(), -1);
  free_op_.assign(trace_.storages.size(), -1);
  first_op_.assign(capture_.operators.size(), -1);
  last_op_.assign(capture_.operators.size(), -1);
  for (std::uint32_t id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.kind == OpKind::alloc) alloc_op_[op.target] = id;
    if (op.kind == OpKind::free) free_op_[op.target] = id;
    for (std::uint32_t k = operator_of(id); k != kNoIndex; k = parent(k)) {
      if (first_op_[k] < 0) first_op_[k] = id;
      last_op_[k] = id;
    }
  }
  // An operator without ops stands after the latest op of those that began before it on its thread.
  std::vector<std::int64_t> latest(capture_.threads.size(), 0);
  for (std::uint32_t k = 0; k < capture_.operators.size(); ++k) {
    std::int64_t& before = latest[capture_.operators[k].thread];
    if (first_op_[k] < 0)
      first_op_[k] = before;
    else
      before = std::max(before, first_op_[k]);
  }
}

// Nodes of a thread nest; an operator's births are known when all operators inside it are.
void Joiner::find_births() {
  std::map<std::int64_t, Thread> threads;
  birth_of_tensor_.assign(execution_.tensors.size(), kNoIndex);
  for (std::uint32_t n = 0; n < execution_.nodes.size(); ++n) {
    Thread& thread = threads[execution_.nodes[n].thread];
    while (!thread.open.empty() && execution_.nodes[thread.open.back().node].id != execution_.nodes[n].parent)
      close_last(thread);
    open(thread, n);
  }
  for (auto& [number, thread] : threads)
    while (!thread.open.empty()) close_last(thread);
  group_births();
}

void Joiner::group_births() {
  std::vector<std::uint32_t> order(births_.size()), place(births_.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return births_[a].node < births_[b].node; });
  std::vector<Birth> sorted;
  sorted.reserve(births_.size());
  first_birth_.assign(execution_.nodes.size() + 1, 0);
  for (const std::uint32_t i : order) {
    place[i] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(births_[i]);
    ++first_birth_[births_[i].node + 1];
  }
  for (std::size_t n = 1; n < first_birth_.size(); ++n) first_birth_[n] += first_birth_[n - 1];
  for (std::uint32_t& birth : birth_of_tensor_)
    if (birth != kNoIndex) birth = place[birth];
  births_ = std::move(sorted);
}

void Joiner::open(Thread& thread, std::uint32_t node) const {
  Frame frame;
  frame.node = node;
  for (const TensorUse& t : execution_.inputs(execution_.nodes[node])) frame.received.push_back(t.storage);
  std::sort(frame.received.begin(), frame.received.end());
  thread.open.push_back(std::move(frame));
}

void Joiner::close_last(Thread& thread) {
  const std::uint32_t node = thread.open.back().node;
  const ExecutionNode& n = execution_.nodes[node];
  // What an operator around received is alive while it runs: its id cannot mean another storage.
  const auto received = [&](std::int64_t id) {
    return std::any_of(thread.open.rbegin(), thread.open.rend(), [&](const Frame& frame) {
      return std::binary_search(frame.received.begin(), frame.received.end(), id);
    });
  };
  for (std::uint32_t i = n.first_output; i < n.first_output + n.output_count; ++i) {
    const TensorUse& t = execution_.tensors[i];
    if (!real(t) || received(t.storage)) continue;
    const auto found = thread.newest.find(t.storage);
    // Nodes are numbered in the order in which they began: a birth with a higher number is inside.
    if (found != thread.newest.end() && births_[found->second].node >= node) {
      births_[found->second].bytes = std::max(births_[found->second].bytes, t.bytes());
      birth_of_tensor_[i] = found->second;
      continue;
    }
    birth_of_tensor_[i] = thread.newest[t.storage] = static_cast<std::uint32_t>(births_.size());
    births_.push_back({node, i, t.bytes(), kNoStorage});
  }
  thread.open.pop_back();
}

void Joiner::claim_allocations() {
  around_free_.assign(capture_.operators.size(), 0);
  for (std::uint32_t id = 0; id < trace_.ops.size(); ++id) {
    const Op& op = trace_.ops[id];
    if (op.kind != OpKind::alloc) continue;
    ++result_.allocations;
    if (!claim(op.target, operator_of(id))) ++result_.workspaces;
  }
}

bool Joiner::claim(StorageId storage, std::uint32_t innermost) {
  mark_operators_around_free(storage);
  for (std::uint32_t k = innermost; k != kNoIndex && !freed_inside(k); k = parent(k))
    if (match_.node_of_operator[k] != kNoIndex && claim_for_node(storage, match_.node_of_operator[k], 0)) return true;
  for (std::uint32_t k = innermost; k != kNoIndex && !freed_inside(k); k = parent(k)) {
    const std::uint32_t node = match_.node_of_operator[k];
    if (node == kNoIndex || first_birth_[node] == first_birth_[node + 1]) continue;
    return trace_.storages[storage].bytes > kUnsplit && claim_for_node(storage, node, kUnsplit);
  }
  return false;
}

bool Joiner::claim_for_node(StorageId storage, std::uint32_t node, Bytes slack) {
  Birth* best = nullptr;
  Bytes least = slack + 1;
  for (std::uint32_t i = first_birth_[node]; i < first_birth_[node + 1]; ++i) {
    const Bytes spare = trace_.storages[storage].bytes - rounded_size(births_[i].bytes);
    if (births_[i].storage != kNoStorage || spare < 0 || spare >= least) continue;
    best = &births_[i];
    least = spare;
  }
  if (best == nullptr) return false;
  best->storage = storage;
  return true;
}

// What is freed inside an operator is its scratch memory, not what it returns.
void Joiner::mark_operators_around_free(StorageId storage) {
  ++claims_;
  if (free_op_[storage] < 0) return;
  for (std::uint32_t k = operator_of(static_cast<std::uint32_t>(free_op_[storage])); k != kNoIndex; k = parent(k))
    around_free_[k] = claims_;
}

void Joiner::resolve_contents() {
  content_of_tensor_.assign(execution_.tensors.size(), kNoIndex);
  content_of_birth_.assign(births_.size(), kNoIndex);
  for (std::uint32_t node = 0; node < execution_.nodes.size(); ++node) {
    resolve_inputs(node);
    begin_births(node);
  }
  for (std::uint32_t i = 0; i < birth_of_tensor_.size(); ++i)
    if (birth_of_tensor_[i] != kNoIndex) content_of_tensor_[i] = content_of_birth_[birth_of_tensor_[i]];
  for (std::uint32_t node = 0; node < execution_.nodes.size(); ++node) {
    const std::uint32_t k = match_.operator_of_node[node];
    if (k == kNoIndex) continue;
    const ExecutionNode& n = execution_.nodes[node];
    for (const auto& [first, count] :
         {std::pair(n.first_input, n.input_count), std::pair(n.first_output, n.output_count)})
      for (std::uint32_t i = first; i < first + count; ++i)
        if (content_of_tensor_[i] != kNoIndex) {
          Content& content = contents_[content_of_tensor_[i]];
          content.last_op = std::max({content.last_op, first_op_[k], last_op_[k]});
        }
  }
}

// Inputs, and the outputs that are inputs (views, in-place results).
void Joiner::resolve_inputs(std::uint32_t node) {
  const ExecutionNode& n = execution_.nodes[node];
  for (const bool inputs : {true, false}) {
    const std::uint32_t first = inputs ? n.first_input : n.first_output;
    const std::uint32_t count = inputs ? n.input_count : n.output_count;
    for (std::uint32_t i = first; i < first + count; ++i) {
      const TensorUse& t = execution_.tensors[i];
      if (!real(t)) continue;
      if (!inputs && birth_of_tensor_[i] != kNoIndex) continue;
      const auto [entry, is_new] = current_.try_emplace(t.storage, static_cast<std::uint32_t>(contents_.size()));
      if (is_new) contents_.push_back({kNoIndex, i, 0, -1, kNoStorage});
      Content& content = contents_[entry->second];
      if (content.birth == kNoIndex) content.bytes = std::max(content.bytes, t.bytes());
      content_of_tensor_[i] = entry->second;
    }
  }
}

void Joiner::begin_births(std::uint32_t node) {
  const bool allocations_known = trace_.knowledge.allocations;
  const std::uint32_t k = match_.operator_of_node[node];
  for (std::uint32_t b = first_birth_[node]; b < first_birth_[node + 1]; ++b) {
    const std::int64_t id = execution_.tensors[births_[b].tensor].storage;
    if (allocations_known && births_[b].storage == kNoStorage && k != kNoIndex) {
      const auto found = current_.find(id);
      if (found != current_.end() && alive_at(contents_[found->second], first_op_[k]) &&
          births_[b].bytes <= contents_[found->second].bytes) {
        content_of_birth_[b] = found->second;
        ++result_.aliases;
        continue;
      }
    }
    current_[id] = content_of_birth_[b] = static_cast<std::uint32_t>(contents_.size());
    contents_.push_back({b, births_[b].tensor, births_[b].bytes, -1, births_[b].storage});
    ++result_.births;
    result_.birth_bytes += rounded_size(births_[b].bytes);
    if (births_[b].storage == kNoStorage) continue;
    ++result_.claimed;
    result_.claimed_bytes += rounded_size(births_[b].bytes);
  }
}

bool Joiner::alive_at(const Content& content, std::int64_t position) const {
  if (content.birth == kNoIndex) return true;
  return content.storage != kNoStorage && (free_op_[content.storage] < 0 || free_op_[content.storage] > position);
}

// Frees of unknown addresses are of storages older than the window; some of them operators used.
void Joiner::adopt_freed() {
  std::multimap<Bytes, std::uint32_t> older;  // size -> content
  for (std::uint32_t c = 0; c < contents_.size(); ++c)
    if (contents_[c].birth == kNoIndex) older.emplace(rounded_size(contents_[c].bytes), c);
  std::vector<std::pair<std::int64_t, StorageId>> freed;
  for (StorageId s = 0; s < free_op_.size(); ++s)
    if (trace_.storages[s].preexisting && free_op_[s] >= 0) freed.emplace_back(free_op_[s], s);
  std::sort(freed.begin(), freed.end());
  for (const auto& [op, storage] : freed) {
    const auto [first, last] = older.equal_range(trace_.storages[storage].bytes);
    auto best = last;
    for (auto it = first; it != last; ++it) {
      const std::int64_t used = contents_[it->second].last_op;
      if (used >= 0 && used <= op && (best == last || used > contents_[best->second].last_op)) best = it;
    }
    if (best == last) continue;
    contents_[best->second].storage = storage;
    ++result_.preexisting_matched;
    older.erase(best);
  }
}

void Joiner::create_storages() {
  const std::uint8_t hbm = trace_.place("hbm");
  for (Content& content : contents_) {
    if (content.storage != kNoStorage) continue;
    const bool older = content.birth == kNoIndex;
    if (!older && trace_.knowledge.allocations) continue;  // nothing was allocated for it
    content.storage = static_cast<StorageId>(trace_.storages.size());
    Storage storage;
    storage.bytes = rounded_size(content.bytes);
    storage.place = hbm;
    storage.preexisting = older;
    trace_.storages.push_back(storage);
    if (!older || !trace_.knowledge.allocations) continue;
    const Bytes known = std::min(storage.bytes, trace_.untracked_bytes);
    trace_.untracked_bytes -= known;
    result_.overdrawn_bytes += storage.bytes - known;
  }
}

void Joiner::fill_result() {
  result_.storage_of_tensor.assign(execution_.tensors.size(), kNoStorage);
  result_.node_of_storage.assign(trace_.storages.size(), kNoIndex);
  result_.tensor_of_storage.assign(trace_.storages.size(), kNoIndex);
  for (std::size_t i = 0; i < content_of_tensor_.size(); ++i)
    if (content_of_tensor_[i] != kNoIndex) result_.storage_of_tensor[i] = contents_[content_of_tensor_[i]].storage;
  for (const Content& content : contents_) {
    const bool older = content.birth == kNoIndex;
    if (older) ++result_.preexisting;
    if (content.storage == kNoStorage) continue;
    if (older) result_.preexisting_bytes += trace_.storages[content.storage].bytes;
    result_.tensor_of_storage[content.storage] = content.tensor;
    if (!older) result_.node_of_storage[content.storage] = births_[content.birth].node;
  }
}

}  // namespace

StorageJoin join_storages(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                          const OperatorMatch& match) {
  return Joiner(imported, capture, execution, match).run();
}

}  // namespace memwall
