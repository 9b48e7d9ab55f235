#include "models/workload/import/chakra/chakra_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "models/workload/import/chakra/chakra_program.h"
#include "models/workload/import/execution_trace/derived_dataflow.h"
#include "models/workload/import/timed/capture_phases.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// "<prefix>.<rank>.et", by which tools name the files of a job's ranks.
struct RankName {
  std::string prefix;
  std::int64_t rank = -1;
};

RankName rank_name(const fs::path& path) {
  RankName name;
  if (path.extension() != ".et") return name;
  const fs::path stem = path.stem();
  const std::string number = stem.extension().string();
  if (number.size() < 2 || number.size() > 8) return name;
  const char* end = number.data() + number.size();
  if (const auto r = std::from_chars(number.data() + 1, end, name.rank); r.ec != std::errc{} || r.ptr != end)
    return {"", -1};
  name.prefix = stem.stem().string();
  return name;
}

// How many files of the same prefix lie beside, 0 where the name says nothing.
std::uint32_t files_of_job(const fs::path& path) {
  const RankName mine = rank_name(path);
  if (mine.rank < 0) return 0;
  std::uint32_t count = 0;
  std::error_code error;
  for (fs::directory_iterator it(path.has_parent_path() ? path.parent_path() : fs::path("."), error), end;
       !error && it != end && count < 65536; it.increment(error)) {
    const RankName other = rank_name(it->path());
    count += other.rank >= 0 && other.prefix == mine.prefix;
  }
  return count;
}

// Nothing tells phases apart where nodes state no threads.
void set_phases(ImportedTrace& imported, const TimedCapture& capture, const ExecutionOrder& order) {
  if (std::all_of(capture.threads.begin(), capture.threads.end(), [](const CapturedThread& t) { return t.id < 0; }))
    return;
  const CapturePhases phases(capture);
  for (std::size_t id = 0; id < imported.trace.ops.size(); ++id) {
    const std::uint32_t k = imported.operator_of_op[id];
    if (k == kNoIndex) continue;
    const Phase phase = phases.phase(capture.operators[k].thread, logical_issue_time(order, k), k);
    imported.trace.ops[id].phase = phase;
  }
}

class Description {
 public:
  Description(ImportedStep& step, const ChakraGraph& graph, const ChakraOrder& order, const ChakraOperators& operators,
              const ChakraCounts& counts)
      : step_(step), g_(graph), o_(order), operators_(operators), c_(counts) {}

  void write(std::string_view notation, std::uint32_t ranks) {
    step_.report.push_back(fmt::format(
        "Chakra execution trace ({}{}): {} nodes, {} of them host operators; {} kernels, {} memsets, {} copies, {} "
        "collectives.",
        notation, g_.version.empty() ? "" : ", version " + g_.version, g_.nodes.size(), c_.host_nodes, c_.kernels,
        c_.memsets, c_.copies, c_.collectives));
    std::string metadata;
    for (std::size_t i = 0; i < std::min<std::size_t>(g_.metadata.size(), 12); ++i)
      metadata += fmt::format("{}{} {}", metadata.empty() ? "" : ", ", g_.metadata[i].first,
                              g_.metadata[i].second.substr(0, 60));
    if (!metadata.empty()) step_.report.push_back("The file says of itself: " + metadata + ".");
    program();
    faults();
    rank(ranks);
  }

 private:
  void decide(std::string subject, std::string sentence, std::size_t covered = 0, std::size_t of = 0,
              NoteKind kind = NoteKind::counted) {
    step_.decisions.push_back({std::move(subject), std::move(sentence), covered, of, kind});
  }

  void program() {
    const std::size_t device = o_.nodes.size() - c_.host_nodes;
    if (c_.timed > 0 || c_.zero > 0)
      decide("durations",
             fmt::format("Durations are whole microseconds; {} device nodes have none and took less than one, {} have "
                         "none but work to be priced. What lies between the end of a launch and the start of its "
                         "kernel is not in the file and taken as nothing.",
                         c_.zero, c_.priced),
             c_.timed, device, NoteKind::assumed);
    else
      decide("no times",
             "No node has a duration: all is modelled for the machine that is given, from the operations "
             "and bytes that nodes state.", 0, 0, NoteKind::missing);
    decide("streams",
           c_.streams_stated ? "Streams are those that the nodes state."
           : operators_.pieces
               ? "Nodes state no streams; the thread numbers of kernels are taken for them, as old converters write "
                 "them."
               : "Nodes state no streams: one computes, one communicates, one copies, as simulators of Chakra do.", 0, 0, NoteKind::assumed);
    decide("order",
           fmt::format("A graph became a program: nodes that could start at once keep the order of the file. {} waits "
                       "between streams, {} hand-overs between host threads, {} waits of the host for the device.",
                       c_.waits, c_.hand_overs, c_.synchronizes), 0, 0, NoteKind::assumed);
    if (o_.has_host && o_.callers > 0)
      decide("control dependencies", fmt::format("{} control dependencies name the operator around, as the converter "
                                                 "of PyTorch writes them; nothing waits for them.",
                                                 o_.callers), 0, 0, NoteKind::assumed);
    if (operators_.pieces)
      decide("operators in pieces",
             "Operators are cut into the pieces between their launches and made whole again; "
             "callers are not known.", 0, 0, NoteKind::assumed);
    if (c_.unsized_groups > 0)
      decide("size of groups", fmt::format("Of {} collectives nothing says how many ranks take part: what one rank "
                                           "puts in counts as what crosses the wire, and no model can price them.",
                                           c_.unsized_groups), 0, 0, NoteKind::missing);
  }

  void faults() {
    if (o_.dangling > 0)
      decide("dependencies on nothing",
             fmt::format("{} dependencies name ids that no node has; they are left out.", o_.dangling), 0, 0, NoteKind::missing);
    if (o_.broken > 0)
      decide("circles",
             fmt::format("{} dependencies close a circle; they are left out, from the first node of the file on.",
                         o_.broken), 0, 0, NoteKind::missing);
    if (o_.duplicate_ids > 0)
      decide("ids given twice",
             fmt::format("{} nodes have the id of an earlier one; dependencies mean the first.", o_.duplicate_ids), 0, 0, NoteKind::missing);
    if (g_.lists_unread > 0)
      decide("arguments not read",
             fmt::format("{} lists of arguments are damaged or of an unknown kind; what could be read of them counts.",
                         g_.lists_unread), 0, 0, NoteKind::missing);
    if (g_.attributes_skipped > 0)
      decide("attributes skipped", fmt::format("{} attributes have names that are not known.", g_.attributes_skipped), 0, 0, NoteKind::missing);
  }

  void rank(std::uint32_t ranks) {
    const RankName name = rank_name(g_.path);
    if (name.rank < 0) return;
    decide("rank", fmt::format("By its name the file is of rank {}; the content does not say. {} files of this prefix "
                               "lie beside{}.",
                               name.rank, ranks,
                               ranks > 1 ? ": as many ranks are taken for groups whose size nothing states" : ""), 0, 0, NoteKind::assumed);
  }

  ImportedStep& step_;
  const ChakraGraph& g_;
  const ChakraOrder& o_;
  const ChakraOperators& operators_;
  const ChakraCounts& c_;
};

ImportedStep step_of(ChakraGraph graph, std::string_view notation) {
  const ChakraOrder order = order_of(graph);
  ChakraOperators operators = operators_of(graph, order);
  // From here on the graph's names and tensors are the operators'.
  const std::uint32_t files = files_of_job(graph.path);
  ChakraCounts counts;
  ImportedTrace imported = chakra_program(graph, order, operators, files > 1 ? files : 0, counts);
  ImportedStep step;
  Description(step, graph, order, operators, counts).write(notation, files);
  imported.trace.knowledge.shapes = std::any_of(imported.trace.ops.begin(), imported.trace.ops.end(), [](const Op& op) {
    return op.kind == OpKind::kernel && (op.flops > 0 || op.bytes > 0);
  });
  const ExecutionOrder nesting = order_of(operators.execution);
  const TimedCapture capture = logical_clock_capture(operators.execution, nesting);
  set_phases(imported, capture, nesting);
  const bool has_tensors = std::any_of(operators.execution.tensors.begin(), operators.execution.tensors.end(),
                                       [](const TensorUse& t) { return t.on_device && t.defined(); });
  if (has_tensors) {
    const DerivedDataflow derived = add_dataflow(imported, capture, operators.execution, {});
    for (Decision& decision : decisions_of(derived)) step.decisions.push_back(std::move(decision));
  }
  require_sound(imported.trace, graph.path.string());
  step.trace = std::move(imported.trace);
  for (const Decision& decision : step.decisions) step.trace.notes.push_back(decision.sentence);
  step.files.push_back(graph.path);
  return step;
}

}  // namespace

ImportedStep import_chakra_messages(const fs::path& path, const ImportSettings&) {
  return step_of(read_chakra_messages(path), "protobuf");
}

ImportedStep import_chakra_json(const fs::path& path, const ImportSettings&) {
  return step_of(read_chakra_json(path), "JSON");
}

}  // namespace memwall
