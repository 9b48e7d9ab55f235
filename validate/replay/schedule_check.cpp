// Can every op of a schedule be executed? Asked of what a file says and of what a trace became.
#include <algorithm>
#include <vector>

#include "validate/replay/schedule.h"
#include "validate/replay/schedule_lines.h"

namespace memwall {
namespace {

constexpr Duration kLongestStandIn = nanoseconds(600'000'000'000);

class ExecutableCheck {
 public:
  explicit ExecutableCheck(const Trace& trace) : t_(trace) {}

  std::string run() {
    std::string fault = tables();
    for (OpId id = 0; id < t_.ops.size() && fault.empty(); ++id) {
      const std::string why = of(t_.ops[id]);
      if (!why.empty()) fault = describe(id) + " " + why;
    }
    return fault;
  }

 private:
  std::string describe(OpId id) const {
    const Op& op = t_.ops[id];
    return "Op " + std::to_string(id) + " (" + std::string(to_string(op.kind)) +
           (op.name == 0 ? "" : " '" + excerpt(t_.strings[op.name]) + "'") + ")";
  }

  static bool known(const std::string& place) { return place == "hbm" || place == "host" || place == "nvme"; }

  std::string tables() const {
    if (!is_timeless(t_)) return "It holds times; expected a schedule, which has none.";
    if (t_.ranks != 1) return "It has " + std::to_string(t_.ranks) + " ranks; expected 1.";
    if (t_.untracked_bytes != 0) return "It has bytes held before the window that are no storage.";
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      const Storage& s = t_.storages[id];
      if (!known(t_.places[s.place]))
        return "Storage " + std::to_string(id) + " is in '" + t_.places[s.place] +
               "'; expected hbm, host or nvme (one GPU and its computer).";
      if (s.pinned && t_.places[s.place] != "host")
        return "Storage " + std::to_string(id) + " is page-locked, but not in host memory.";
    }
    return "";
  }

  const std::string& place_of(const Use& use) const { return t_.places[t_.storages[use.storage].place]; }

  bool all_in(const Op& op, const std::string& place) const {
    const auto uses = t_.uses_of(op);
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return place_of(use) == place; });
  }

  std::string of(const Op& op) {
    if (op.graph_member || op.placed) return "is no call of a host thread; expected one.";
    if (runs_on_device(op.kind)) {
      if (op.wait_for == WaitFor::event || op.wait_for == WaitFor::device)
        return "waits for an event or the device; expected an op that waits for itself, its stream or nothing.";
      if (t_.streams[op.stream].device != device_ && device_known_)
        return "is on device " + std::to_string(t_.streams[op.stream].device) + ", others on device " +
               std::to_string(device_) + "; expected one GPU.";
      device_ = t_.streams[op.stream].device;
      device_known_ = true;
    }
    switch (op.kind) {
      case OpKind::kernel:
        if (op.bytes == 0 && op.flops == 0) return "has neither FLOPs nor bytes; expected one of them.";
        if (!all_in(op, "hbm")) return "uses a storage that is not in device memory; expected hbm.";
        return "";
      case OpKind::memset:
        return memset(op);
      case OpKind::copy:
      case OpKind::storage_io:
        return transfer(op);
      case OpKind::host_work:
        return host_work(op);
      case OpKind::collective:
        return collective(op);
      case OpKind::graph_launch:
        return "cannot be executed on one GPU as it stands; expected kernels.";
      default:
        return "";
    }
  }

  std::string collective(const Op& op) const {
    if (op.group >= t_.groups.size()) return "is of a group that is not listed.";
    if (t_.groups[op.group].ranks == 1) return "is a collective of one rank; expected a kernel.";
    const auto picoseconds = op.duration.count();
    if (picoseconds <= 0 || op.duration > kLongestStandIn || picoseconds % 1000 != 0)
      return "stands in for a collective during " + std::to_string(picoseconds) +
             " ps; expected whole nanoseconds, one to ten minutes' worth.";
    if (!(op.waves >= 0 && op.waves <= 1)) return "takes a share of the multiprocessors that is not from 0 to 1.";
    if (!all_in(op, "hbm")) return "uses a storage that is not in device memory; expected hbm.";
    return "";
  }

  std::string memset(const Op& op) const {
    const auto uses = t_.uses_of(op);
    if (uses.size() != 1 || uses[0].access != Access::write || place_of(uses[0]) != "hbm")
      return "names " + std::to_string(uses.size()) + " storages; expected one in hbm, to be written.";
    return size_fault(op);
  }

  std::string transfer(const Op& op) const {
    const auto uses = t_.uses_of(op);
    if (uses.size() != 2 || uses[0].access != Access::read || uses[1].access != Access::write)
      return "names " + std::to_string(uses.size()) + " storages; expected one to read, then one to write.";
    if (uses[0].storage == uses[1].storage) return "moves a storage into itself.";
    const std::string &from = place_of(uses[0]), &to = place_of(uses[1]);
    if (from != t_.places[op.from] || to != t_.places[op.to])
      return "moves from " + t_.places[op.from] + " to " + t_.places[op.to] + ", its storages are in " + from +
             " and " + to + ".";
    const bool nvme = (from == "host" && to == "nvme") || (from == "nvme" && to == "host");
    const bool memory = from != "nvme" && to != "nvme" && (from == "hbm" || to == "hbm");
    if (op.kind == OpKind::copy ? !memory : !nvme)
      return "moves from " + from + " to " + to + ", which is not implemented; expected " +
             (op.kind == OpKind::copy ? "hbm and host, or hbm and hbm." : "host and nvme.");
    for (const Use& use : uses)
      if (op.kind == OpKind::copy && place_of(use) == "host" && op.pageable == t_.storages[use.storage].pinned)
        return std::string("is ") + (op.pageable ? "" : "not ") + "pageable; expected the same of its host memory.";
    return size_fault(op);
  }

  std::string host_work(const Op& op) const {
    if (op.bytes == 0) return "moves no bytes; expected some.";
    if (!all_in(op, "host")) return "uses a storage that is not in host memory; expected host.";
    if (op.wait_for == WaitFor::event && op.target >= t_.event_count) return "waits for an event that is not counted.";
    return "";
  }

  // Of ops that move as many bytes as they say.
  std::string size_fault(const Op& op) const {
    Bytes room = op.bytes;
    for (const Use& use : t_.uses_of(op)) room = std::min(room, t_.storages[use.storage].bytes);
    if (op.bytes > 0 && room == op.bytes) return "";
    return "moves " + std::to_string(op.bytes) + " bytes; expected 1 to " + std::to_string(room) +
           ", which its storages hold.";
  }

  const Trace& t_;
  std::uint16_t device_ = 0;
  bool device_known_ = false;
};

}  // namespace

std::string not_executable(const Trace& trace) { return ExecutableCheck(trace).run(); }

}  // namespace memwall
