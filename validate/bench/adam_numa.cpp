// The optimizer on the CPU where its arrays lie on the NUMA node of its cores, or on another one.
#include <algorithm>

#include "validate/bench/adam_state.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/numa_nodes.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

// Threads that are started meanwhile run there, too.
class CoresOfNode {
 public:
  explicit CoresOfNode(const NumaNode& node) { run_on_cores(node.cores); }
  ~CoresOfNode() { run_on_cores(allowed_cores()); }
  CoresOfNode(const CoresOfNode&) = delete;
  CoresOfNode& operator=(const CoresOfNode&) = delete;
};

void adam_between(BenchmarkRun& run, const NumaNode& cores, int memory, unsigned threads, std::size_t count) {
  Measurement m = run.row({{"bytes", std::to_string(kAdamBytesPerElement * count)},
                           {"threads", std::to_string(threads)},
                           {"cores_of_node", std::to_string(cores.number)},
                           {"memory_of_node", std::to_string(memory)}});
  m.bytes = AdamState::bytes_of(count);
  m.flops = AdamState::flops_of(count);
  const CoresOfNode placed(cores);
  ThreadTeam team(threads);
  AdamState state(count);
  if (!state.bind(memory)) throw NotApplicable("the system does not let memory be put on a NUMA node");
  state.randomize(team, count, run.settings().seed);
  run.sample(m, [&] { return state.step(team); });
  m.note = state.fault();
  if (!m.note.empty()) m.status = MeasurementStatus::failed;
  run.report(m);
}

void adam_host_numa(BenchmarkRun& run) {
  const std::vector<NumaNode> nodes = numa_nodes();
  std::vector<int> memories;
  for (const NumaNode& node : nodes)
    if (node.has_memory) memories.push_back(node.number);
  if (memories.size() < 2)
    throw NotApplicable("this computer has one NUMA node; its memory is as near to every core, see adam_host");
  const auto home = std::find_if(nodes.begin(), nodes.end(), [](const NumaNode& n) { return !n.cores.empty(); });
  if (home == nodes.end()) throw NotApplicable("no NUMA node has a core that may be used");
  const std::size_t most = std::min(run.settings().largest_buffer / 4, std::size_t{1} << 26);
  const std::size_t count = std::max(most, std::size_t{1024});
  for (const int memory : memories)
    for (unsigned threads = static_cast<unsigned>(home->cores.size()); threads > 0; threads /= 2) {
      if (run.out_of_time()) return;
      adam_between(run, *home, memory, threads, count);
    }
}

const RegisterBenchmark registered_adam_host_numa{
    {"adam_host_numa", "steps of Adam on the cores of one NUMA node, with the arrays on each of the nodes",
     BenchmarkPlace::computer, 57, adam_host_numa}};

}  // namespace
}  // namespace memwall
