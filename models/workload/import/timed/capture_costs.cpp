#include "models/workload/import/timed/capture_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "models/workload/import/timed/clock_comparison.h"
#include "models/workload/import/timed/kernel_properties.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr Duration kQueuedFor = microseconds(20);   // a predecessor that runs this long after the call: queued
constexpr Duration kLongestGap = microseconds(20);  // more is no gap but a wait for something else
constexpr Duration kWaitingCall = microseconds(8);  // a call that waits costs about this by itself
constexpr Duration kUnexplained = microseconds(50);
constexpr std::size_t kFewSamples = 3;
constexpr std::uint32_t kQueueFull = 1000;  // CUDA holds about 1,020
constexpr float kSeveralWaves = 1.5f;
constexpr Bytes kWideCopy = 4'000'000;
// Where a file has no sample: medians over the captures from which the rules were found.
constexpr Duration kUsualLatency[kLaunchKinds] = {microseconds(2), microseconds(3), nanoseconds(2500)};
constexpr Duration kUsualGap = nanoseconds(1300);

// The mean without the top hundredth: in files with a clock of 1 us a median would be biased.
Duration trimmed_mean(std::vector<Duration>& samples) {
  std::sort(samples.begin(), samples.end());
  samples.resize(samples.size() - samples.size() / 100);
  std::int64_t sum = 0;
  for (const Duration d : samples) sum += d.count();
  return Duration(sum / static_cast<std::int64_t>(samples.size()));
}

int kind_of(const CapturedDeviceOp& op) {
  switch (op.work) {
    case DeviceWork::copy:
      return static_cast<int>(LaunchKind::copy);
    case DeviceWork::memset:
      return static_cast<int>(LaunchKind::memset);
    default:
      return static_cast<int>(LaunchKind::kernel);
  }
}

class CostFinder {
 public:
  CostFinder(const JoinedCapture& joined, const StreamEdges& edges, ImportSummary& summary)
      : j_(joined), c_(*joined.capture), summary_(summary), clocks_(joined, summary) {
    costs_.calls.resize(c_.calls.size());
    producers_.resize(c_.device_ops.size());
    is_producer_.resize(c_.device_ops.size(), 0);
    for (const StreamEdge& edge : edges.edges) {
      producers_[edge.consumer].push_back(edge.producer);
      is_producer_[edge.producer] = 1;
    }
  }

  CaptureCosts run() {
    costs_.constants.launch_queue_depth = j_.rocm ? 0 : 1020;
    find_launch_latencies();
    find_gaps();
    for (std::uint32_t i = 0; i < c_.calls.size(); ++i) costs_.calls[i].own = c_.calls[i].duration;
    find_queue_stalls();
    find_blocking_calls();
    find_unexplained();
    clocks_.finish();
    return std::move(costs_);
  }

 private:
  const CapturedDeviceOp& op(std::uint32_t i) const { return c_.device_ops[i]; }
  bool is_launch(std::uint32_t i) const {
    const std::uint32_t call = j_.device_ops[i].call;
    return call != kNoIndex && j_.calls[call].role == CallRole::launch && j_.calls[call].wait_for == WaitFor::nothing;
  }
  // The node of a graph right behind another of the same graph.
  bool inside_graph(std::uint32_t i) const {
    const std::uint32_t before = j_.predecessor(i), call = j_.device_ops[i].call;
    return before != kNoIndex && call != kNoIndex && j_.device_ops[before].call == call;
  }

  // One or two late starts are no constant of the file.
  static bool is_chance(std::vector<Duration> samples) {
    return !samples.empty() && samples.size() < kFewSamples && upper_median(samples) > kUnexplained;
  }

  void find_launch_latencies() {
    std::vector<Duration> samples[kLaunchKinds];
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {
      if (!is_launch(i) || !producers_[i].empty()) continue;
      const CapturedCall& call = c_.calls[j_.device_ops[i].call];
      const std::uint32_t before = j_.predecessor(i);
      if (before != kNoIndex && op(before).end() > call.start) continue;
      samples[kind_of(op(i))].push_back(op(i).start - call.end());
    }
    for (int kind = 0; kind < kLaunchKinds; ++kind) {
      if (is_chance(samples[kind])) samples[kind].clear();
      summary_.samples.launch_latency[kind] = samples[kind].size();
      costs_.constants.launch_latency[kind] = samples[kind].empty() ? kUsualLatency[kind] : upper_median(samples[kind]);
    }
  }

  void find_gaps() {
    std::vector<Duration> samples[kLaunchKinds][kLaunchKinds], in_graph, all;
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {
      const std::uint32_t before = j_.predecessor(i), call = j_.device_ops[i].call;
      if (before == kNoIndex || call == kNoIndex) continue;
      const Duration gap = op(i).start - op(before).end();
      if (gap > kLongestGap || gap < -kLongestGap) continue;
      if (inside_graph(i)) {
        in_graph.push_back(gap);
      } else if (op(before).end() >= c_.calls[call].end() + kQueuedFor) {
        samples[kind_of(op(before))][kind_of(op(i))].push_back(gap);
        all.push_back(gap);
      }
    }
    summary_.samples.graph_gap = in_graph.size();
    const Duration usual = all.empty() ? kUsualGap : trimmed_mean(all);
    costs_.constants.graph_gap = in_graph.empty() ? usual : trimmed_mean(in_graph);
    for (int a = 0; a < kLaunchKinds; ++a)
      for (int b = 0; b < kLaunchKinds; ++b) {
        summary_.samples.stream_gap[a][b] = samples[a][b].size();
        costs_.constants.stream_gap[a][b] = samples[a][b].empty() ? usual : trimmed_mean(samples[a][b]);
      }
  }

  // A launch into a full queue waits for room; the simulation will know for how long.
  void find_queue_stalls() {
    std::vector<Duration> launch_costs;
    std::vector<std::uint32_t> full;
    std::vector<std::size_t> started(j_.streams.size(), 0);  // positions in the order, captured as started
    std::vector<std::uint32_t> submitted(j_.streams.size(), 0), begun(j_.streams.size(), 0);
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      const JoinedCall& joined = j_.calls[call];
      if (joined.launched == 0) continue;
      const std::vector<std::uint32_t>& order = j_.streams[joined.stream].order;
      std::size_t& at = started[joined.stream];
      for (; at < order.size() && op(order[at]).start <= c_.calls[call].start; ++at)
        begun[joined.stream] += j_.device_ops[order[at]].call != kNoIndex && !inside_graph(order[at]);
      if (submitted[joined.stream] >= begun[joined.stream] + kQueueFull && !j_.rocm) full.push_back(call);
      ++submitted[joined.stream];
      if (joined.role == CallRole::launch && joined.wait_for == WaitFor::nothing)
        launch_costs.push_back(c_.calls[call].duration);
    }
    summary_.queue_limited_launches = full.size();
    if (full.empty() || launch_costs.empty()) return;
    const Duration median = upper_median(launch_costs);
    for (const std::uint32_t call : full) costs_.calls[call].own = std::min(costs_.calls[call].own, median);
  }

  // --- calls that wait ---
  struct Wait {
    std::uint32_t call = 0;
    Time awaited_end{};
    bool waited = false;
  };

  std::string kind_of_call(std::uint32_t call) const {
    std::string kind = c_.text(c_.calls[call].name);
    if (j_.calls[call].wait_for == WaitFor::own_op)
      kind += ", " + c_.text(op(j_.launched[j_.calls[call].first_launched]).name);
    return kind;
  }

  void find_blocking_calls() {
    std::vector<Time> stream_end(j_.streams.size());  // of what was submitted so far
    Time device_end{};
    std::map<std::string, std::vector<Wait>> waits;
    for (const JoinedStream& stream : j_.streams)
      for (const std::uint32_t i : stream.order)
        if (j_.device_ops[i].placement == Placement::head) {
          Time& end = stream_end[static_cast<std::size_t>(&stream - j_.streams.data())];
          end = std::max(end, op(i).end());
          device_end = std::max(device_end, end);
        }
    for (std::uint32_t call = 0; call < c_.calls.size(); ++call) {
      const JoinedCall& joined = j_.calls[call];
      for (std::uint32_t k = 0; k < joined.launched; ++k) {
        const std::uint32_t i = j_.launched[joined.first_launched + k];
        Time& end = stream_end[j_.device_ops[i].stream];
        end = std::max(end, op(i).end());
        device_end = std::max(device_end, end);
      }
      if (joined.role == CallRole::host_work && c_.text(c_.calls[call].name) == "cudaFree" &&
          device_end > c_.calls[call].start)
        ++summary_.frees_with_pending_work;
      if (joined.wait_for == WaitFor::nothing) continue;
      Time end{};
      switch (joined.wait_for) {
        case WaitFor::own_op:
          end = op(j_.launched[joined.first_launched]).end();
          break;
        case WaitFor::stream:
          end = stream_end[joined.stream];
          break;
        case WaitFor::event:
          end = event_end(joined);
          break;
        default:
          end = device_end;
      }
      waits[kind_of_call(call)].push_back({call, end, end > c_.calls[call].start});
      clocks_.add_return(call, end);
      if (end > c_.calls[call].start) awaited_ends_.insert(end);
    }
    for (auto& [kind, list] : waits) settle(kind, list);
  }

  Time event_end(const JoinedCall& joined) const {
    const auto last = j_.last_before(joined.stream, joined.awaited_record);
    return last ? op(j_.streams[joined.stream].order[*last]).end() : Time{};
  }

  void settle(const std::string& kind, const std::vector<Wait>& waits) {
    BlockingCalls& counted = summary_.blocking[kind];
    std::vector<Duration> delays;
    for (const Wait& wait : waits) {
      ++(wait.waited ? counted.waited : counted.did_not_wait);
      if (wait.waited) delays.push_back(c_.calls[wait.call].end() - wait.awaited_end);
    }
    counted.return_delay_samples = delays.size();
    counted.return_delay = delays.empty() ? Duration{} : upper_median(delays);
    for (const Wait& wait : waits) {
      costs_.calls[wait.call].return_delay = counted.return_delay;
      if (wait.waited && j_.calls[wait.call].wait_for != WaitFor::own_op)
        costs_.calls[wait.call].own =
            std::min(c_.calls[wait.call].duration, kWaitingCall + std::max(counted.return_delay, Duration{}));
    }
    settle_copies(waits, counted.return_delay);
  }

  // Host work before a copy that its call waits for. It shows only where the copy found its stream
  // idle, and differs from call to call; elsewhere the stream hid it.
  void settle_copies(const std::vector<Wait>& waits, Duration return_delay) {
    std::vector<Duration> shown;
    std::vector<std::uint32_t> hidden;
    for (const Wait& wait : waits) {
      if (j_.calls[wait.call].wait_for != WaitFor::own_op) continue;
      const std::uint32_t copy = j_.launched[j_.calls[wait.call].first_launched];
      const std::uint32_t before = j_.predecessor(copy);
      const CapturedCall& call = c_.calls[wait.call];
      const bool busy =
          before != kNoIndex && op(before).end() > call.start && op(copy).start - op(before).end() < kLongestGap;
      if (busy || !producers_[copy].empty()) {
        hidden.push_back(wait.call);
        continue;
      }
      const Duration own = std::max(call.duration - op(copy).duration - return_delay, Duration{});
      costs_.calls[wait.call].own = own;
      shown.push_back(own);
    }
    const Duration usual = shown.empty() ? kWaitingCall : upper_quantile(shown, 0.1);
    for (const std::uint32_t call : hidden) costs_.calls[call].own = std::min(usual, c_.calls[call].duration);
  }

  // --- does the capture explain itself? ---
  void find_unexplained() {
    Time first = kNever, last{};
    std::vector<std::uint32_t> recent;  // kernels of several waves that ran lately
    Time engine_end[2] = {};
    for (std::uint32_t i = 0; i < c_.device_ops.size(); ++i) {  // by start
      first = std::min(first, op(i).start);
      last = std::max(last, op(i).end());
      std::erase_if(recent, [&](std::uint32_t k) { return op(k).end() < op(i).start - microseconds(1000); });
      if (j_.device_ops[i].placement != Placement::head) {
        const Duration wait = op(i).start - lower_bound(i, recent, engine_end);
        summary_.early_starts += is_early(i) ? 1 : 0;
        clocks_.add_start(i);
        if (wait > kUnexplained) {
          ++summary_.unexplained_waits;
          summary_.unexplained_time += wait;
          summary_.unexplained_delay += passed_on(i, wait);
        }
      }
      if (is_multi_wave(i)) recent.push_back(i);
      const CopyDirection d = copy_direction(c_.text(op(i).name));
      if (op(i).work == DeviceWork::copy && d.from_host != d.to_host) engine_end[d.to_host] = op(i).end();
    }
    if (first >= last) return;
    summary_.unexplained_share =
        static_cast<double>(summary_.unexplained_delay.count()) / static_cast<double>((last - first).count());
  }

  // Before its stream was free, whatever the file's constants are.
  bool is_early(std::uint32_t i) const {
    const std::uint32_t before = j_.predecessor(i);
    return before != kNoIndex && op(i).start + kUnexplained < op(before).end();
  }

  // How much of a late start is still felt by whoever waits for its stream: the ops behind it start
  // late by no more than they could have started earlier, and a host-bound stream soon catches up.
  Duration passed_on(std::uint32_t late, Duration wait) const {
    constexpr std::uint32_t kFarEnough = 10'000;  // a delay that lasts that long is a delay
    const std::vector<std::uint32_t>& order = j_.streams[j_.device_ops[late].stream].order;
    const std::size_t first = j_.device_ops[late].position,
                      end = std::min<std::size_t>(order.size(), first + kFarEnough);
    for (std::size_t at = first; at < end; ++at) {
      if (at > first) wait = std::min(wait, op(order[at]).start - launch_bound(order[at]));
      if (wait <= kLongestGap) return Duration{};
      if (is_producer_[order[at]] || awaited_ends_.contains(op(order[at]).end())) return wait;
    }
    return wait;
  }

  bool is_multi_wave(std::uint32_t i) const {
    if (op(i).work == DeviceWork::kernel) return j_.device_ops[i].waves > kSeveralWaves;
    const CopyDirection d = copy_direction(c_.text(op(i).name));
    return op(i).work == DeviceWork::copy && !d.from_host && !d.to_host && op(i).bytes > kWideCopy;
  }

  // By its launch and its edges alone.
  Time launch_bound(std::uint32_t i) const {
    const std::uint32_t launching = j_.device_ops[i].call;
    Time bound{};
    if (launching != kNoIndex) {
      const CapturedCall& call = c_.calls[launching];
      bound = j_.calls[launching].wait_for == WaitFor::own_op
                  ? call.start + costs_.calls[launching].own
                  : call.end() + costs_.constants.launch_latency[kind_of(op(i))];
    }
    for (const std::uint32_t producer : producers_[i])
      bound = std::max(bound, op(producer).end() + costs_.constants.event_latency);
    return bound;
  }

  Time lower_bound(std::uint32_t i, const std::vector<std::uint32_t>& wide, const Time (&engine_end)[2]) const {
    const JoinedDeviceOp& joined = j_.device_ops[i];
    const std::uint32_t before = j_.predecessor(i);
    Time bound{};
    if (before != kNoIndex) {
      const Duration gap = inside_graph(i) ? costs_.constants.graph_gap
                                           : costs_.constants.stream_gap[kind_of(op(before))][kind_of(op(i))];
      bound = std::max(bound, op(before).end() + gap);
    }
    bound = std::max(bound, launch_bound(i));
    const CopyDirection d = copy_direction(c_.text(op(i).name));
    const bool by_engine = op(i).work == DeviceWork::copy && d.from_host != d.to_host;
    if (by_engine) return std::max(bound, engine_end[d.to_host]);
    if (op(i).work == DeviceWork::memset) return bound;
    const Time ready = bound;
    for (const std::uint32_t other : wide) {
      if (j_.device_ops[other].stream == joined.stream || op(other).device != op(i).device) continue;
      if (op(other).start > ready || op(other).end() <= ready) continue;
      const double waves = op(other).work == DeviceWork::kernel ? static_cast<double>(j_.device_ops[other].waves) : 0;
      const Duration last_wave(
          waves > 0 ? static_cast<std::int64_t>(static_cast<double>(op(other).duration.count()) / waves) : 0);
      bound = std::max(bound, op(other).end() - last_wave);
    }
    return bound;
  }

  const JoinedCapture& j_;
  const TimedCapture& c_;
  ImportSummary& summary_;
  CaptureCosts costs_;
  std::vector<std::vector<std::uint32_t>> producers_;  // per device op
  std::vector<std::uint8_t> is_producer_;              // likewise: does another stream wait for it?
  ClockComparison clocks_;
  std::set<Time> awaited_ends_;  // device ends for which a call really waited
};

}  // namespace

CaptureCosts find_costs(const JoinedCapture& joined, const StreamEdges& edges, ImportSummary& summary) {
  return CostFinder(joined, edges, summary).run();
}

}  // namespace memwall
