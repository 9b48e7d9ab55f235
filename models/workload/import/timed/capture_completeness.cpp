#include "models/workload/import/timed/capture_completeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "sim/human_text.h"

namespace memwall {
namespace {

constexpr double kMost = 0.5;  // of all: then the rest means nothing
constexpr double kFew = 0.02;  // of all: more is a gap
// More, and a step time is given only to who asks for it: docs/kineto.md has what such a share does to it.
constexpr double kMostAccepted = 0.05;
// Launches of CUDA graphs without their kernels, in all work that is recorded: fewer are a gap. A graph holds hundreds
// of kernels or two; what it leaves out of a step is also seen by the waits that nothing explains.
constexpr double kMostGraphs = 0.1;
constexpr double kMostUnexplained = 0.2;  // of the GPU's span: then nothing is replayed

bool launches_kernel(std::string_view name) {
  return name.find("LaunchKernel") != std::string_view::npos ||
         name.find("LaunchCooperativeKernel") != std::string_view::npos;
}

double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

CaptureCompleteness without_device_work(const LaunchingCalls& l) {
  if (l.kernels + l.graphs == 0)
    return {Completeness::not_a_replay,
            "The file has no work on a GPU and no call that launches some: was ProfilerActivity.CUDA on?"};
  return {Completeness::not_a_replay,
          fmt::format("{} of {} have no work on a GPU in the file: was ProfilerActivity.CUDA on?",
                      l.kernels_without + l.graphs_without, counted_text(l.kernels + l.graphs, "launch", "launches"))};
}

// "12 of 70 launches of CUDA graphs have no kernels in the file".
std::string missing_text(const LaunchingCalls& l) {
  std::string text;
  if (l.graphs_without > 0)
    text = fmt::format("{} of {} of CUDA graphs have no kernels in the file", l.graphs_without,
                       counted_text(l.graphs, "launch", "launches"));
  if (l.kernels_without > 0)
    text += fmt::format("{}{} of {} of kernels have no kernel in the file", text.empty() ? "" : ", ", l.kernels_without,
                        counted_text(l.kernels, "launch", "launches"));
  return text;
}

std::string waits_text(const ImportSummary& s, bool clocks_differ) {
  const std::string text = fmt::format(
      "waits without a cause in the file delay what follows by {:.1f} % of the GPU's span", 100 * s.unexplained_share);
  if (clocks_differ) return text + ", as they do where clocks contradict each other";
  return text + fmt::format(", {:.0f} % are taken for chance, more than {:.0f} % for no replay", 100 * kFew,
                            100 * kMostUnexplained);
}

}  // namespace

LaunchingCalls launching_calls(const JoinedCapture& j) {
  LaunchingCalls all;
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

std::string clock_contradiction(const JoinedCapture& j, const ImportSummary& s) {
  if (s.before_launch + s.early_returns == 0) return "";
  const TimedCapture& c = *j.capture;
  std::string text = "the clocks of host and GPU contradict each other: ";
  if (s.before_launch > 0) {
    const CapturedDeviceOp& most = c.device_ops[s.most_before];
    text += fmt::format(
        "{} of {} on a GPU {} before the call that launches {}, by {} (median) and at most by {}, at {} from the start "
        "({}, stream {})",
        s.before_launch, counted_text(s.launched, "piece of work", "pieces of work"),
        by_number(s.before_launch, "starts", "start"), by_number(s.before_launch, "it", "them"),
        human_time(s.median_before_launch), human_time(s.most_before_launch), human_time(most.start - Time{}),
        c.text(most.name).substr(0, 80), most.stream);
  }
  if (s.early_returns == 0) return text;
  return text + fmt::format(
                    "{}{} of {} {} before the work ends that {}, by {} (median) and at most by {}, at {} from the "
                    "start ({})",
                    s.before_launch > 0 ? "; " : "", s.early_returns,
                    counted_text(s.returns, "call that waits", "calls that wait"),
                    by_number(s.early_returns, "returns", "return"),
                    by_number(s.early_returns, "it waits for", "they wait for"), human_time(s.median_early_return),
                    human_time(s.most_early_return), human_time(s.most_early - Time{}),
                    c.text(s.most_early_name).substr(0, 80));
}

namespace {

// How much of the GPU's span the clocks' contradictions add up to: a replay puts what they contradict that much later.
double contradicted_share(const TimedCapture& c, const ImportSummary& s) {
  Time first = kNever, last{};
  for (const CapturedDeviceOp& op : c.device_ops) {
    first = std::min(first, op.start);
    last = std::max(last, op.end());
  }
  const double sum = static_cast<double>(s.before_launch) * to_seconds(s.median_before_launch) +
                     static_cast<double>(s.early_returns) * to_seconds(s.median_early_return);
  return first < last ? sum / to_seconds(last - first) : 0;
}

}  // namespace

CaptureCompleteness completeness_of(const JoinedCapture& j, const ImportSummary& s) {
  const std::uint64_t work = j.capture->device_ops.size();
  const LaunchingCalls& l = s.launching;
  if (work == 0) return without_device_work(l);
  if (share(s.placed_ops, work) > kMost)
    return {Completeness::not_a_replay,
            fmt::format("{} of {} on a GPU have no call in the file that launches them.", s.placed_ops,
                        counted_text(work, "piece of work", "pieces of work"))};
  const bool lacks_graphs = share(l.graphs_without, l.graphs) > kMost && share(l.graphs_without, work) > kMostGraphs;
  if (lacks_graphs || share(l.kernels_without, l.kernels) > kMost)
    return {Completeness::not_a_replay, missing_text(l) + "."};
  std::string reason;
  double most = 0;  // of the shares that are named
  const auto add = [&](std::string part, double part_of_all) {
    reason += (reason.empty() ? "" : "; ") + part;
    most = std::max(most, part_of_all);
  };
  const double kernels_without = share(l.kernels_without, l.kernels);
  if (l.graphs_without > 0 || kernels_without > kFew)
    add(missing_text(l), std::max(kernels_without, share(l.graphs_without, work)));
  // Waits that nothing explains follow from clocks that contradict each other.
  const bool clocks_differ = share(s.before_launch, work) > kFew || share(s.early_returns, s.returns) > kFew;
  if (clocks_differ) add(clock_contradiction(j, s), contradicted_share(*j.capture, s));
  if (s.unexplained_share > kFew) add(waits_text(s, clocks_differ), s.unexplained_share);
  if (const double early_starts = share(s.early_starts, work); early_starts > kFew)
    add(fmt::format("{} of {} on a GPU start more than 50 us before the end of what was before them in their stream",
                    s.early_starts, counted_text(work, "piece of work", "pieces of work")),
        early_starts);
  if (reason.empty()) return {};
  reason.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(reason.front())));
  if (s.unexplained_share > kMostUnexplained && !clocks_differ) return {Completeness::not_a_replay, reason + "."};
  return {most > kMostAccepted ? Completeness::gaps_over_limit : Completeness::gaps, reason + "."};
}

}  // namespace memwall
