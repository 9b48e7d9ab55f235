#include "models/workload/import/timed/capture_completeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr double kMost = 0.5;             // of all: then the rest means nothing
constexpr double kFew = 0.02;             // of all: more is a gap
// Launches of CUDA graphs without their kernels, in all work that is recorded: fewer are a gap. A graph holds hundreds
// of kernels or two; what it leaves out of a step is also seen by the waits that nothing explains.
constexpr double kMostGraphs = 0.1;
constexpr double kMostUnexplained = 0.2;  // of the GPU's span: then nothing is replayed

struct Launches {
  std::uint64_t kernels = 0, graphs = 0;                  // calls that launch one
  std::uint64_t kernels_without = 0, graphs_without = 0;  // of them, without work on a GPU
};

bool launches_kernel(std::string_view name) {
  return name.find("LaunchKernel") != std::string_view::npos ||
         name.find("LaunchCooperativeKernel") != std::string_view::npos;
}

Launches launches(const JoinedCapture& j) {
  Launches all;
  const TimedCapture& c = *j.capture;
  for (std::uint32_t i = 0; i < c.calls.size(); ++i) {
    const std::string_view name = c.text(c.calls[i].name);
    const bool is_graph = name.find("GraphLaunch") != std::string_view::npos;
    if (!is_graph && !launches_kernel(name)) continue;
    ++(is_graph ? all.graphs : all.kernels);
    if (j.calls[i].launched == 0) ++(is_graph ? all.graphs_without : all.kernels_without);
  }
  return all;
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

CaptureCompleteness without_device_work(const Launches& l) {
  if (l.kernels + l.graphs == 0)
    return {Completeness::not_a_replay, "The file has no work on a GPU and no call that launches some."};
  return {Completeness::not_a_replay,
          fmt::format("{} of {} have no work on a GPU in the file: was ProfilerActivity.CUDA on?",
                      l.kernels_without + l.graphs_without, counted_text(l.kernels + l.graphs, "launch", "launches"))};
}

// "12 of 70 launches of CUDA graphs have no kernels in the file".
std::string missing_text(const Launches& l) {
  std::string text;
  if (l.graphs_without > 0)
    text = fmt::format("{} of {} of CUDA graphs have no kernels in the file", l.graphs_without,
                       counted_text(l.graphs, "launch", "launches"));
  if (l.kernels_without > 0)
    text += fmt::format("{}{} of {} of kernels have no kernel in the file", text.empty() ? "" : ", ", l.kernels_without,
                        counted_text(l.kernels, "launch", "launches"));
  return text;
}

}  // namespace

std::string clock_contradiction(const JoinedCapture& j, const ImportSummary& s) {
  if (s.before_launch == 0) return "";
  const TimedCapture& c = *j.capture;
  const CapturedDeviceOp& most = c.device_ops[s.most_before];
  return fmt::format(
      "the clocks of host and GPU contradict each other: {} of {} on a GPU {} before the call that launches {}, by {} "
      "(median) and at most by {}, at {} from the start ({}, stream {})",
      s.before_launch, counted_text(s.launched, "piece of work", "pieces of work"),
      s.before_launch == 1 ? "starts" : "start", s.before_launch == 1 ? "it" : "them",
      human_time(s.median_before_launch), human_time(s.most_before_launch), human_time(most.start - Time{}),
      c.text(most.name).substr(0, 80), most.stream);
}

CaptureCompleteness completeness_of(const JoinedCapture& j, const ImportSummary& s) {
  const std::uint64_t work = j.capture->device_ops.size();
  const Launches l = launches(j);
  if (work == 0) return without_device_work(l);
  if (share(s.placed_ops, work) > kMost)
    return {Completeness::not_a_replay,
            fmt::format("{} of {} on a GPU have no call in the file that launches them.", s.placed_ops,
                        counted_text(work, "piece of work", "pieces of work"))};
  const bool lacks_graphs = share(l.graphs_without, l.graphs) > kMost && share(l.graphs_without, work) > kMostGraphs;
  if (lacks_graphs || share(l.kernels_without, l.kernels) > kMost)
    return {Completeness::not_a_replay, missing_text(l) + "."};
  if (s.unexplained_share > kMostUnexplained || share(l.graphs_without, l.graphs) > 0 ||
      share(l.kernels_without, l.kernels) > kFew || s.unexplained_share > kFew || share(s.early_starts, work) > kFew ||
      share(s.before_launch, work) > kFew) {
    std::string reason = missing_text(l);
    const auto add = [&](std::string part) { reason += (reason.empty() ? "" : "; ") + part; };
    if (s.unexplained_share > kFew)
      add(fmt::format(
          "waits without a cause in the file delay what follows by {:.1f} % of the GPU's span, {:.0f} % are "
          "taken for chance, more than {:.0f} % for no replay",
          100 * s.unexplained_share, 100 * kFew, 100 * kMostUnexplained));
    if (share(s.before_launch, work) > kFew) add(clock_contradiction(j, s));
    if (share(s.early_starts, work) > kFew)
      add(fmt::format("{} of {} on a GPU start more than 50 us before the end of what was before them in their stream",
                      s.early_starts, counted_text(work, "piece of work", "pieces of work")));
    reason.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(reason.front())));
    return {s.unexplained_share > kMostUnexplained ? Completeness::not_a_replay : Completeness::gaps, reason + "."};
  }
  return {};
}

}  // namespace memwall
