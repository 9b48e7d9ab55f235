#include "models/workload/import/tables/triosim_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "models/workload/import/tables/longest_step.h"
#include "models/workload/import/tables/triosim_costs.h"
#include "models/workload/import/tables/triosim_tables.h"
#include "models/workload/import/timed/imported_step.h"
#include "sim/error.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

Phase phase_of_stage(const std::string& stage) {
  if (stage == "forward") return Phase::forward;
  if (stage == "backward") return Phase::backward;
  return stage == "optimizer" ? Phase::optimizer : Phase::unknown;
}

// One life of a storage number.
struct Piece {
  Bytes bytes = 0;
  std::size_t first = 0, last = 0;  // operators
  std::uint32_t tensor = 0;         // its largest, for the label
  bool preexisting = false, parameter = false, counted = false, for_optimizer = false, written = false;
  Phase made = Phase::unknown;
};

struct Uses {
  std::vector<std::uint32_t> reads, writes;  // pieces, each once
};

class Converter {
 public:
  explicit Converter(const TrioSimTables& tables) : t_(tables), costs_(costs_of(tables)) {}

  ImportedStep run() {
    find_frontiers();
    uses_.resize(t_.operators.size());
    for (std::size_t i = 0; i < t_.operators.size(); ++i) resolve(i);
    build();
    finish();
    return std::move(step_);
  }

 private:
  const TrioSimTensor& tensor(std::uint32_t index) const { return t_.tensors[index]; }

  // The highest tensor number that the operators up to each have named.
  void find_frontiers() {
    std::int64_t highest = 0;
    for (const TrioSimOperator& op : t_.operators) {
      for (const auto* list : {&op.inputs, &op.outputs})
        for (const std::uint32_t index : *list) highest = std::max(highest, tensor(index).id);
      frontier_.push_back(highest);
    }
  }

  static void add_once(std::vector<std::uint32_t>& list, std::uint32_t piece) {
    if (std::find(list.begin(), list.end(), piece) == list.end()) list.push_back(piece);
  }

  void resolve(std::size_t at) {
    const TrioSimOperator& op = t_.operators[at];
    Uses& uses = uses_[at];
    std::set<std::uint32_t> inputs, reads;
    std::vector<std::uint32_t> order;
    for (const std::uint32_t index : op.inputs) {
      if (tensor(index).storage == 0) continue;
      const std::uint32_t piece = input_piece(at, index);
      if (inputs.insert(piece).second) order.push_back(piece);
      order_of_input_.push_back(piece);
    }
    uses.reads = order;
    if (op.name.ends_with('_')) write_in_place(op, uses);
    order_of_input_.clear();
    for (const std::uint32_t index : op.outputs) {
      if (tensor(index).storage == 0) continue;
      if (is_view(index, inputs)) continue;
      const std::uint32_t piece = add_piece(at, index);
      pieces_[piece].written = true;
      uses.writes.push_back(piece);
    }
    for (const auto* list : {&uses.reads, &uses.writes})
      for (const std::uint32_t piece : *list) {
        pieces_[piece].last = std::max(pieces_[piece].last, at);
        pieces_[piece].for_optimizer |= phase_of_stage(op.stage) == Phase::optimizer;
      }
  }

  // An operator that writes its first argument: of one on lists, the first list.
  void write_in_place(const TrioSimOperator& op, Uses& uses) {
    const bool lists = op.name.find("_foreach_") != std::string::npos;
    const std::size_t written = lists ? first_list(op, t_.operators) : 1;
    for (std::size_t i = 0; i < std::min(written, order_of_input_.size()); ++i) {
      add_once(uses.writes, order_of_input_[i]);
      Piece& piece = pieces_[order_of_input_[i]];
      piece.counted |= phase_of_stage(op.stage) == Phase::forward;
    }
  }

  bool is_view(std::uint32_t index, const std::set<std::uint32_t>& inputs) const {
    const auto current = current_.find(tensor(index).storage);
    return current != current_.end() && inputs.contains(current->second) &&
           tensor(index).bytes <= pieces_[current->second].bytes;
  }

  std::uint32_t input_piece(std::size_t at, std::uint32_t index) {
    if (const auto seen = of_tensor_.find(index); seen != of_tensor_.end()) return note_role(seen->second, index);
    const auto current = current_.find(tensor(index).storage);
    if (current != current_.end()) {
      Piece& piece = pieces_[current->second];
      if (piece.preexisting && tensor(index).bytes > piece.bytes) piece.bytes = tensor(index).bytes;
      if (tensor(index).bytes <= piece.bytes) {
        of_tensor_.emplace(index, current->second);
        return note_role(current->second, index);
      }
    }
    return note_role(first_seen_as_input(at, index), index);
  }

  std::uint32_t note_role(std::uint32_t piece, std::uint32_t index) {
    pieces_[piece].parameter |= pieces_[piece].preexisting && tensor(index).parameter;
    return piece;
  }

  std::uint32_t first_seen_as_input(std::size_t at, std::uint32_t index) {
    const Phase phase = phase_of_stage(t_.operators[at].stage);
    const bool older = at > 0 && tensor(index).id <= frontier_[at - 1];
    std::size_t maker = at;
    if (!tensor(index).parameter && older)
      maker = static_cast<std::size_t>(std::lower_bound(frontier_.begin(), frontier_.end(), tensor(index).id) -
                                       frontier_.begin());
    const bool made = !tensor(index).parameter && (older || phase == Phase::backward);
    const std::uint32_t piece = add_piece(made ? maker : at, index);
    pieces_[piece].preexisting = !made;
    pieces_[piece].written = made;
    if (!made) return piece;
    ++(older ? made_inside_ : made_unlisted_);
    uses_[maker].writes.push_back(piece);
    return piece;
  }

  std::uint32_t add_piece(std::size_t at, std::uint32_t index) {
    Piece piece;
    piece.bytes = tensor(index).bytes;
    piece.first = piece.last = at;
    piece.tensor = index;
    piece.made = phase_of_stage(t_.operators[at].stage);
    piece.for_optimizer = piece.made == Phase::optimizer;
    const auto id = static_cast<std::uint32_t>(pieces_.size());
    pieces_.push_back(piece);
    recycled_ += current_.contains(tensor(index).storage);
    current_[tensor(index).storage] = id;
    of_tensor_[index] = id;
    return id;
  }

  StorageKind kind_of(const Piece& piece) const {
    if (piece.preexisting) {
      if (piece.parameter || piece.counted) return StorageKind::parameter;
      return piece.made == Phase::optimizer ? StorageKind::optimizer_state : StorageKind::input;
    }
    if (piece.made == Phase::optimizer) return StorageKind::workspace;
    return piece.made == Phase::backward && piece.for_optimizer ? StorageKind::gradient : StorageKind::activation;
  }

  void build() {
    builder_.add_thread("host");
    std::map<std::int64_t, std::uint16_t> stream_of_gpu;
    for (const TrioSimOperator& op : t_.operators)
      if (stream_of_gpu.try_emplace(op.gpu, static_cast<std::uint16_t>(stream_of_gpu.size())).second)
        builder_.add_stream(fmt::format("GPU {}", op.gpu), StreamRole::compute,
                            static_cast<std::uint16_t>(stream_of_gpu.size() - 1));
    std::vector<std::vector<StorageId>> born(t_.operators.size()), dead(t_.operators.size());
    for (std::uint32_t i = 0; i < pieces_.size(); ++i) add_storage(i, stream_of_gpu, born, dead);
    const StringId boundary = builder_.trace().strings.intern("iteration");
    Op mark;
    mark.name = boundary;
    const OpId first = builder_.append(mark);
    for (std::size_t i = 0; i < t_.operators.size(); ++i) {
      for (const StorageId s : born[i]) mark_derived(builder_.alloc(s, 0));
      append(i, stream_of_gpu.at(t_.operators[i].gpu));
      for (const StorageId s : dead[i]) mark_derived(builder_.free(s, 0));
    }
    const OpId last = builder_.append(mark);
    step_.trace = std::move(builder_).finish();
    step_.trace.steps.push_back({"iteration", first, last});
  }

  // Uses say when a storage lives, not the file (sim/trace/derived_lives.h).
  void mark_derived(OpId life) { builder_.trace().ops[life].inferred = true; }

  void add_storage(std::uint32_t index, const std::map<std::int64_t, std::uint16_t>& stream_of_gpu,
                   std::vector<std::vector<StorageId>>& born, std::vector<std::vector<StorageId>>& dead) {
    const Piece& piece = pieces_[index];
    const std::string label = fmt::format("tensor {}", tensor(piece.tensor).id);
    const StorageId id = builder_.add_storage(piece.bytes, kind_of(piece), "hbm", label, piece.preexisting);
    Storage& storage = builder_.trace().storages[id];
    storage.stream = stream_of_gpu.at(t_.operators[piece.first].gpu);
    const Shape& shape = tensor(piece.tensor).shape;
    if (known_elements(shape) * tensor(piece.tensor).element_bytes == piece.bytes)
      storage.shape = builder_.trace().shapes.intern(shape);
    if (piece.preexisting) return;
    born[piece.first].push_back(id);
    dead[piece.last].push_back(id);
  }

  void append(std::size_t at, std::uint16_t stream) {
    const TrioSimOperator& row = t_.operators[at];
    const TrioSimCost& cost = costs_.of_operator[at];
    Trace& trace = builder_.trace();
    Op op;
    op.kind = OpKind::kernel;
    op.phase = phase_of_stage(row.stage);
    op.stream = stream;
    op.wait_for = WaitFor::own_op;
    op.name = trace.strings.intern(row.name);
    op.operator_name = trace.strings.intern(operator_name(row.name));
    op.duration = row.busy;
    op.host_gap = std::max(row.span - row.busy, Duration{});
    waiting_ += op.host_gap;
    busy_ += row.busy;
    spans_ += std::max(row.span, row.busy);
    if (spans_ > kLongestStep)
      throw InputError(
          fmt::format("{}:{}: the operators up to here take more than ten days.", t_.trace.string(), row.line));
    op.flops = cost.flops;
    op.bytes = cost.bytes;
    op.operator_class = cost.operator_class;
    op.data_type = cost.data_type;
    if (!cost.shape.empty()) op.shape = trace.shapes.intern(cost.shape);
    builder_.append(op, uses_of(at));
  }

  std::vector<Use> uses_of(std::size_t at) const {
    std::vector<Use> uses;
    for (const std::uint32_t piece : uses_[at].reads)
      // What no row makes and the row itself first takes is made by it.
      if (!(std::find(uses_[at].writes.begin(), uses_[at].writes.end(), piece) != uses_[at].writes.end() &&
            !pieces_[piece].preexisting && pieces_[piece].first == at))
        uses.push_back({piece, TraceBuilder::kLatest, Access::read});
    for (const std::uint32_t piece : uses_[at].writes) uses.push_back({piece, 0, Access::write});
    return uses;
  }

  double batch_size() const {
    for (const std::uint32_t index : t_.operators.front().inputs)
      if (!tensor(index).parameter && tensor(index).shape.size() > 1)
        return static_cast<double>(tensor(index).shape[0]);
    return 0;
  }

  void finish();

  const TrioSimTables& t_;
  TrioSimCosts costs_;
  std::vector<std::int64_t> frontier_;  // by operator
  std::vector<Piece> pieces_;
  std::vector<Uses> uses_;                                      // by operator
  std::vector<std::uint32_t> order_of_input_;                   // of the operator at hand: its inputs' pieces
  std::unordered_map<std::int64_t, std::uint32_t> current_;     // by storage number
  std::unordered_map<std::uint32_t, std::uint32_t> of_tensor_;  // by tensor index
  TraceBuilder builder_;
  ImportedStep step_;
  Duration busy_{}, spans_{}, waiting_{};
  std::uint64_t recycled_ = 0, made_inside_ = 0, made_unlisted_ = 0;
};

void Converter::finish() {
  Trace& trace = step_.trace;
  trace.knowledge = {.timing = true, .allocations = true, .dataflow = true, .shapes = true};
  trace.constants = ReplayConstants{.event_latency = Duration{}, .launch_queue_depth = 0};
  trace.samples_per_step = batch_size();
  const std::filesystem::path folder = std::filesystem::absolute(t_.trace).parent_path().filename();
  trace.name = folder.empty() ? "TrioSim workload" : folder.string();
  step_.files = {t_.trace, t_.tensor};
  std::map<std::string, std::uint64_t> stages;
  std::uint64_t parallel = 0, with_flops = 0, inferred = 0;
  for (std::size_t i = 0; i < t_.operators.size(); ++i) {
    ++stages[t_.operators[i].stage.empty() ? "without stage" : t_.operators[i].stage];
    parallel += t_.operators[i].tensor_parallel;
    with_flops += costs_.of_operator[i].flops > 0;
    inferred += costs_.of_operator[i].inferred;
  }
  std::string line = fmt::format("{} operators", t_.operators.size());
  for (const auto& [stage, count] : stages) line += fmt::format(", {} {}", count, stage);
  step_.report.push_back(fmt::format("{}; {} tensors; {} operators that tensor parallelism splits (tpflag).", line,
                                     t_.tensors.size(), parallel));
  const auto ms = [](Duration d) { return to_seconds(d) * 1e3; };
  add_decision(
      step_, "time of operators",
      fmt::format("An op lasts as long as its kernels alone ({:.3f} ms in all); what its span is longer ({:.3f} ms "
                  "in all) is host time before it, and the host waits for each op: the step takes {:.3f} ms. Time "
                  "between operators is not in the file.",
                  ms(busy_), ms(waiting_), ms(spans_)), 0, 0, NoteKind::assumed);
  step_.decisions.push_back(
      {"machine", "The file does not say which GPU it was captured on: --measured-on does.", 0, 0});
  add_decision(
      step_, "storages by number",
      fmt::format("{} storages: {} numbers came back for another storage; {} were made inside an operator and {} by "
                  "operators that are not listed (they count as made by the op that first takes them).",
                  pieces_.size(), recycled_, made_inside_, made_unlisted_),
      pieces_.size() - made_unlisted_, pieces_.size());
  add_decision(step_, "lives of storages",
               "A storage is freed after the last op that uses it: a lower bound of its real life.", 0, 0, NoteKind::assumed);
  add_decision(
      step_, "FLOPs by shapes",
      fmt::format("{} of {} operators have FLOPs; {} backward products have those of their forward operator, twice "
                  "({} found none).",
                  with_flops, t_.operators.size(), inferred, costs_.products_without_forward),
      with_flops, t_.operators.size(), NoteKind::assumed);
  if (costs_.halves > 0)
    add_decision(step_, "data types", "Elements of 2 bytes count as fp16; the file does not tell them from bf16.",
                 costs_.halves, t_.operators.size(), NoteKind::assumed);
  if (t_.contradicting_rows > 0)
    add_decision(step_, "rows of tensors",
                 fmt::format("{} rows give a tensor another size or storage than its first row, which counts.",
                             t_.contradicting_rows), 0, 0, NoteKind::missing);
  if (trace.samples_per_step > 0)
    add_decision(
        step_, "samples per step",
        fmt::format("{} samples per step: the first extent of what the first operator takes.", trace.samples_per_step), 0, 0, NoteKind::assumed);
}

}  // namespace

bool recognizes_triosim(const FileHead& head) { return is_triosim_table(head.text); }

ImportedStep import_triosim(const std::filesystem::path& path, const ImportSettings&) {
  const TrioSimTables tables = read_triosim(path);
  return Converter(tables).run();
}

}  // namespace memwall
