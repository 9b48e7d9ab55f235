#include "models/workload/import/timed/captured_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr double kShareOfRank = 0.1;  // of the busiest process's time: less is a helper of one
constexpr std::size_t kMostNamed = 16;

std::vector<std::size_t> ranks_of(const std::vector<CapturedProcess>& processes) {
  double most = 0;
  for (const CapturedProcess& process : processes) most = std::max(most, process.busy_ns);
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < processes.size(); ++i)
    if (processes[i].busy_ns >= kShareOfRank * most) ranks.push_back(i);
  const auto place = [&](std::size_t i) {
    const CapturedProcess& process = processes[i];
    return std::tuple(process.devices.empty() ? 0xffffffffu : *process.devices.begin(), process.id);
  };
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return ranks;
}

std::string described(const CapturedProcess& process) {
  if (process.devices.empty()) return fmt::format("process {}", process.id);
  return fmt::format("process {}, GPU {}", process.id, fmt::join(process.devices, " and "));
}

std::string listed(const std::vector<CapturedProcess>& processes, const std::vector<std::size_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", i, described(processes[ranks[i]]));
  return ranks.size() > kMostNamed ? fmt::format("{}, ... up to {}", text, ranks.size() - 1) : text;
}

}  // namespace

ProcessChoice choose_process(const std::filesystem::path& path, std::string_view file,
                             const std::vector<CapturedProcess>& processes, std::optional<std::uint32_t> rank) {
  const std::vector<std::size_t> ranks = ranks_of(processes);
  if (rank && *rank >= ranks.size())
    throw UsageError(fmt::format("--rank {}: {} holds {}: {}; expected {}.", *rank, path.string(),
                                 ranks.size() == 1 ? "one rank" : fmt::format("{} ranks", ranks.size()),
                                 listed(processes, ranks),
                                 ranks.size() == 1 ? "0" : fmt::format("0 to {}", ranks.size() - 1)));
  if (!rank && ranks.size() > 1)
    throw InputError(
        fmt::format("{}: the {} holds {} ranks: {}; a trace is that of one. Import one by its number: "
                    "`memwall import {} --rank 0 -o rank0.mwt`.",
                    path.string(), file, ranks.size(), listed(processes, ranks), path.string()));
  ProcessChoice choice;
  choice.process = ranks[rank.value_or(0)];
  if (processes.size() == 1) return choice;
  double total = 0;
  for (const CapturedProcess& process : processes) total += process.busy_ns;
  const CapturedProcess& chosen = processes[choice.process];
  choice.sentence = fmt::format(" The {} holds {} processes with device work; this one has {:.1f} % of its time.", file,
                                processes.size(), total > 0 ? chosen.busy_ns / total * 100 : 100.0);
  if (ranks.size() > 1)
    choice.sentence += fmt::format(" It is rank {} of {}, {}, by --rank.", *rank, ranks.size(), described(chosen));
  return choice;
}

}  // namespace memwall
