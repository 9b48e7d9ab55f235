#include "models/workload/import/timed/stream_edges.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace memwall {
namespace {

using std::string_view;

constexpr Duration kClockGrain = microseconds(1);  // of files until 2023

class EdgeFinder {
 public:
  explicit EdgeFinder(const JoinedCapture& joined) : j_(joined), c_(*joined.capture) {}

  StreamEdges run() {
    bool stated = false;
    for (const CapturedSync& row : c_.syncs) stated = stated || row.kind == SyncKind::stream_wait_event;
    if (stated)
      read_rows();
    else
      infer();
    std::stable_sort(found_.edges.begin(), found_.edges.end(), [&](const StreamEdge& a, const StreamEdge& b) {
      return j_.device_ops[a.consumer].call < j_.device_ops[b.consumer].call;
    });
    return std::move(found_);
  }

 private:
  struct PendingWait {
    std::uint32_t call = 0;
    bool collectives_only = false;  // waits for communication streams only
  };

  void add(std::uint32_t producer, std::uint32_t consumer, bool inferred) {
    if (seen_.insert({producer, consumer}).second) found_.edges.push_back({producer, consumer, inferred});
  }

  // --- stated by the file ---
  void read_rows() {
    for (const CapturedSync& row : c_.syncs) {
      if (row.kind != SyncKind::stream_wait_event) continue;
      const auto wait = j_.call_of_correlation.find(row.correlation);
      const auto record = j_.call_of_correlation.find(row.record_correlation);
      const int consumer_stream = j_.stream_index(row.device, row.stream);
      const int producer_stream = j_.stream_index(row.device, row.awaited_stream);
      if (row.record_correlation <= 0 || wait == j_.call_of_correlation.end() ||
          record == j_.call_of_correlation.end() || consumer_stream < 0 || producer_stream < 0 ||
          consumer_stream == producer_stream)
        continue;
      const auto producer = j_.last_before(static_cast<std::uint16_t>(producer_stream), record->second);
      const auto consumer = j_.first_after(static_cast<std::uint16_t>(consumer_stream), wait->second);
      if (producer && consumer)
        add(j_.streams[producer_stream].order[*producer], j_.streams[consumer_stream].order[*consumer], false);
    }
  }

  // --- concluded ---
  void infer() {
    waits_.resize(c_.threads.size());
    current_.assign(c_.threads.size(), -1);
    for (std::uint32_t call = 0; call < j_.calls.size(); ++call) {
      const JoinedCall& joined = j_.calls[call];
      if (!j_.thread_kept[c_.calls[call].thread]) continue;
      if (joined.launched > 0)
        launched(call);
      else if (c_.text(c_.calls[call].name).find("StreamWaitEvent") != std::string::npos)
        waited(call);
    }
  }

  void waited(std::uint32_t call) {
    const std::uint32_t op = j_.calls[call].operator_index;
    const string_view name = op == kNoIndex ? string_view() : string_view(c_.text(c_.operators[op].name));
    if (name.starts_with("nccl:")) {
      ++found_.ignored_waits;
      return;
    }
    const bool collectives_only = name == "record_param_comms" || name.starts_with("c10d::");
    waits_[c_.calls[call].thread].push_back({call, collectives_only});
  }

  void launched(std::uint32_t call) {
    const JoinedCall& joined = j_.calls[call];
    const std::uint16_t thread = c_.calls[call].thread;
    const std::uint32_t consumer = j_.launched[joined.first_launched];
    std::vector<PendingWait>& waits = waits_[thread];
    if (j_.device_ops[consumer].collective) {
      if (!waits.empty()) {
        communication_waits(waits.back().call, thread, consumer);
        waits.pop_back();
      }
      return;
    }
    for (const PendingWait& wait : waits) computation_waits(wait, joined.stream, consumer);
    waits.clear();
    current_[thread] = last_current_ = joined.stream;
  }

  // A communication stream waits for everything so far on the stream that the thread works on.
  void communication_waits(std::uint32_t wait, std::uint16_t thread, std::uint32_t consumer) {
    const int stream = current_[thread] >= 0 ? current_[thread] : last_current_;
    if (stream < 0 || stream == j_.device_ops[consumer].stream) return;
    if (const auto producer = j_.last_before(static_cast<std::uint16_t>(stream), wait))
      add(j_.streams[stream].order[*producer], consumer, true);
  }

  void computation_waits(const PendingWait& wait, std::uint16_t own, std::uint32_t consumer) {
    for (std::uint16_t stream = 0; stream < j_.streams.size(); ++stream) {
      if (stream == own || j_.streams[stream].device != j_.streams[own].device) continue;
      if (wait.collectives_only && j_.streams[stream].role != StreamRole::communication) continue;
      const auto last = j_.last_before(stream, wait.call);
      if (!last) continue;
      const std::vector<std::uint32_t>& order = j_.streams[stream].order;
      std::int64_t at = *last;
      while (at >= 0 && (contradicted(order[static_cast<std::size_t>(at)], consumer) || inside_graph(order, at))) --at;
      found_.moved += at != static_cast<std::int64_t>(*last);
      if (at >= 0) add(order[static_cast<std::size_t>(at)], consumer, true);
    }
  }

  // An event can be recorded behind a graph, not between its nodes.
  bool inside_graph(const std::vector<std::uint32_t>& order, std::int64_t at) const {
    const std::size_t next = static_cast<std::size_t>(at) + 1;
    return next < order.size() && j_.device_ops[order[next]].call != kNoIndex &&
           j_.device_ops[order[next]].call == j_.device_ops[order[next - 1]].call;
  }

  bool contradicted(std::uint32_t producer, std::uint32_t consumer) const {
    return c_.device_ops[producer].end() > c_.device_ops[consumer].start + kClockGrain;
  }

  const JoinedCapture& j_;
  const TimedCapture& c_;
  StreamEdges found_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen_;
  std::vector<std::vector<PendingWait>> waits_;  // per thread, since its last launch
  std::vector<int> current_;                     // per thread: stream of its last launch that is no collective
  int last_current_ = -1;                        // of any thread
};

}  // namespace

StreamEdges find_stream_edges(const JoinedCapture& joined) { return EdgeFinder(joined).run(); }

}  // namespace memwall
