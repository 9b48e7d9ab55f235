#include "models/workload/import/rocm/rocm_process.h"

#include <map>
#include <utility>
#include <vector>

namespace memwall {
namespace {

// Numbers of the GPUs, by process and agent.
std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> gpu_numbers(const RocmProfile& profile) {
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> numbers;
  for (const RocmAgent& agent : profile.agents)
    if (agent.gpu && agent.ordinal >= 0 && agent.ordinal < 4096)
      numbers.try_emplace({agent.process, agent.id}, static_cast<std::uint32_t>(agent.ordinal));
  return numbers;
}

}  // namespace

ProcessChoice choose_rocm_process(const RocmProfile& profile, std::optional<std::uint32_t> rank) {
  const auto numbers = gpu_numbers(profile);
  std::map<std::uint32_t, CapturedProcess> found;  // by index; who recorded nothing is not there
  for (const RocmWork& work : profile.work) {
    CapturedProcess& process = found[work.process];
    process.busy_ns += static_cast<double>(work.end - work.start);
    for (const std::int64_t agent : {work.agent, work.source_agent, work.destination_agent})
      if (const auto gpu = numbers.find({work.process, agent}); gpu != numbers.end())
        process.devices.insert(gpu->second);
  }
  if (profile.work.empty())
    for (const RocmCall& call : profile.calls) ++found[call.process].busy_ns;
  std::vector<CapturedProcess> processes;
  std::vector<std::uint32_t> indices;
  for (auto& [index, process] : found) {
    process.id = profile.processes[index].id;
    processes.push_back(std::move(process));
    indices.push_back(index);
  }
  ProcessChoice choice = choose_process(profile.path, "file", processes, rank);
  choice.process = indices[choice.process];
  return choice;
}

}  // namespace memwall
