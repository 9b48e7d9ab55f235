#include "tests/support/capture_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace memwall {
namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string microseconds_text(Duration d) {
  return fmt::format("{}.{:06}", d.count() / 1'000'000, d.count() % 1'000'000);
}

class Writer {
 public:
  Writer(const Trace& trace, bool real, bool with_phases) : t_(trace), real_(real), with_phases_(with_phases) {}

  std::string run() {
    text_ = fmt::format(
        R"({{"format":"memwall-capture","version":1,"name":{},"mode":"{}","device":"cuda","samples_per_step":{},"tokens_per_step":{}}})",
        json_text(t_.name), real_ ? "real" : "fake", t_.samples_per_step, t_.tokens_per_step);
    text_ += "\n";
    for (StorageId s = 0; s < t_.storages.size(); ++s) storage(s);
    auto step = t_.steps.begin();
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (step != t_.steps.end() && step->first == id) {
        line("\"step\":" + json_text(step->name), t_.ops[id], false);
        ++step;
      } else {
        op(id);
      }
    }
    return text_;
  }

 private:
  void storage(StorageId id) {
    const Storage& s = t_.storages[id];
    const std::string place = t_.places[s.place] == "hbm" ? "hbm" : s.pinned ? "host_pinned" : "host";
    text_ +=
        fmt::format(R"({{"storage":{},"bytes":{},"kind":"{}","place":"{}","label":{},"preexisting":{},"stream":{}}})",
                    id, s.bytes, to_string(s.kind), place, json_text(t_.strings[s.label]), s.preexisting, s.stream);
    text_ += "\n";
  }

  template <typename Which>
  std::string list(const Op& op, Which which) const {
    std::string text;
    for (const Use& use : t_.uses_of(op))
      if (which(use)) text += (text.empty() ? "" : ",") + std::to_string(use.storage);
    return "[" + text + "]";
  }
  std::string list(const Op& op, Access access) const {
    return list(op, [&](const Use& use) { return use.access == access; });
  }

  // A record: its own members, then those that all records of an op share.
  void line(const std::string& own, const Op& op, bool placed) {
    text_ += fmt::format("{{{},\"thread\":{}", own, op.thread);
    if (placed)
      text_ += fmt::format(",\"module\":{},\"phase\":\"{}\"", json_text(t_.strings[op.module]), to_string(op.phase));
    if (real_)
      text_ +=
          fmt::format(",\"host_us\":{},\"gap_us\":{}", microseconds_text(op.host_cost), microseconds_text(op.host_gap));
    text_ += "}\n";
  }

  std::string work(OpId id) const {
    const Op& op = t_.ops[id];
    std::string text = fmt::format(R"("id":{},"stream":{},"reads":{},"writes":{},"flops":{},"class":"{}","dtype":"{}")",
                                   id, op.stream, list(op, Access::read), list(op, Access::write), op.flops,
                                   to_string(op.operator_class), to_string(op.data_type));
    text += ",\"saves\":" + list(op, [](const Use& use) { return use.saved; });
    text += fmt::format(R"(,"kernels":{},"calls":{},"compiled":{})", op.kernels, op.framework_calls,
                        op.dispatch == Dispatch::compiled);
    if (op.source != kNoOp) text += fmt::format(",\"forward\":{}", op.source);
    if (real_) text += ",\"duration_us\":" + microseconds_text(op.duration);
    return text;
  }

  static std::string place(const std::string& name, bool pageable) {
    return name == "hbm" ? "hbm" : pageable ? "host" : "host_pinned";
  }

  void op(OpId id) {
    const Op& op = t_.ops[id];
    switch (op.kind) {
      case OpKind::kernel:
      case OpKind::memset:
        return line(
            fmt::format("\"op\":{},\"bytes\":{},{}", json_text(t_.strings[op.operator_name]), op.bytes, work(id)), op,
            true);
      case OpKind::copy:
        return line(fmt::format(R"("copy":{},"from":"{}","to":"{}","blocking":{},{})", op.bytes,
                                place(t_.places[op.from], op.pageable), place(t_.places[op.to], op.pageable),
                                op.wait_for == WaitFor::own_op, work(id)),
                    op, true);
      case OpKind::collective:
        return line(fmt::format(R"("collective":"{}","bytes":{},"ranks":{},"group":"all",{})", to_string(op.collective),
                                message(op), t_.ranks, work(id)),
                    op, true);
      case OpKind::alloc:
      case OpKind::free:
        return line(fmt::format("\"{}\":{}", to_string(op.kind), op.target), op, with_phases_);
      case OpKind::event_record:
      case OpKind::event_wait:
        return line(fmt::format(R"("event":"{}","number":{},"stream":{})",
                                op.kind == OpKind::event_record ? "record" : "wait", op.target, op.stream),
                    op, true);
      case OpKind::synchronize:
        return line(fmt::format(R"("synchronize":"{}","number":{},"stream":{})",
                                op.wait_for == WaitFor::event    ? "event"
                                : op.wait_for == WaitFor::stream ? "stream"
                                                                 : "device",
                                op.target & 0x7fffffff, op.stream),
                    op, true);
      default:
        return;  // hand-overs are the reader's to infer
    }
  }

  // The whole buffer of which a rank of two sends `op.bytes`.
  Bytes message(const Op& op) const {
    const double share = (t_.ranks - 1.0) / t_.ranks;
    const bool twice = op.collective == CollectiveKind::all_reduce;
    return std::llround(static_cast<double>(op.bytes) / (twice ? 2 * share : share));
  }

  const Trace& t_;
  bool real_, with_phases_;
  std::string text_;
};

// Events are numbered as they are first recorded.
void renumber_events(Trace& t) {
  std::map<std::uint32_t, std::uint32_t> number;
  for (Op& op : t.ops) {
    if (op.kind == OpKind::event_record) number.try_emplace(op.target, static_cast<std::uint32_t>(number.size()));
    const bool waits =
        op.kind == OpKind::event_wait || (op.kind == OpKind::synchronize && op.wait_for == WaitFor::event);
    if (waits || op.kind == OpKind::event_record) op.target = number.at(op.target);
  }
  t.event_count = static_cast<std::uint32_t>(number.size());
}

void forget_times(Op& op) {
  op.duration = op.host_cost = op.host_gap = op.return_delay = Duration{};
  op.origin = Origin::modelled;
}

}  // namespace

std::string capture_text(const Trace& trace, bool real, bool with_phases) {
  return Writer(trace, real, with_phases).run();
}

Trace as_captured(Trace t, bool real) {
  for (std::size_t i = 0; i < t.streams.size(); ++i) t.streams[i].name = "stream " + std::to_string(i);
  for (std::size_t i = 0; i < t.threads.size(); ++i) t.threads[i].name = "thread " + std::to_string(i);
  std::vector<bool> is_step(t.ops.size(), false);
  for (const Step& step : t.steps) is_step[step.first] = true;
  for (OpId id = 0; id < t.ops.size(); ++id) {
    Op& op = t.ops[id];
    op.added = false;
    if (op.kind == OpKind::memset) op.kind = OpKind::kernel;
    op.return_delay = Duration{};
    if (op.kind == OpKind::kernel) op.name = op.operator_name;
    if (op.kind == OpKind::copy)
      op.name = op.operator_name = t.strings.intern(t.places[op.to] == "hbm" ? "copy host to hbm" : "copy hbm to host");
    if (op.kind == OpKind::collective) op.name = op.operator_name = t.strings.intern(to_string(op.collective));
    if (op.kind == OpKind::hand_over) {
      op.inferred = true;
      op.module = 0;
      op.host_gap = op.host_cost = Duration{};
    }
    const bool dispatched = op.kind == OpKind::kernel || op.kind == OpKind::copy || op.kind == OpKind::collective;
    if (dispatched && op.dispatch == Dispatch::native) op.dispatch = Dispatch::eager;
    op.origin = Origin::measured;
    if (!real) forget_times(op);
  }
  for (const Step& step : t.steps) {
    t.ops[step.first].name = t.strings.intern(step.name);
    t.ops[step.first].module = 0;
    t.ops[step.first].phase = Phase::unknown;
  }
  renumber_events(t);
  t.knowledge.timing = real;
  t.constants = {};
  t.machine.clear();
  return t;
}

namespace {

std::string difference(const Trace& a, const Trace& b, const Op& x, const Op& y) {
  if (x.kind != y.kind) return fmt::format("kind {} and {}", to_string(x.kind), to_string(y.kind));
  if (x.phase != y.phase) return fmt::format("phase {} and {}", to_string(x.phase), to_string(y.phase));
  if (x.origin != y.origin) return fmt::format("origin {} and {}", to_string(x.origin), to_string(y.origin));
  if (x.wait_for != y.wait_for) return "what is waited for";
  if (x.inferred != y.inferred || x.added != y.added || x.placed != y.placed || x.graph_member != y.graph_member)
    return "a flag";
  if (x.thread != y.thread || x.stream != y.stream) return "thread or stream";
  const auto text = [](const Trace& t, StringId id) -> const std::string& { return t.strings[id]; };
  if (text(a, x.name) != text(b, y.name)) return text(a, x.name) + " and " + text(b, y.name);
  if (text(a, x.operator_name) != text(b, y.operator_name)) return "operator";
  if (text(a, x.module) != text(b, y.module)) return text(a, x.module) + " and " + text(b, y.module);
  if (x.host_gap != y.host_gap || x.host_cost != y.host_cost || x.return_delay != y.return_delay) return "host time";
  if (x.duration != y.duration) return fmt::format("durations of {} and {} ps", x.duration.count(), y.duration.count());
  if (x.bytes != y.bytes) return fmt::format("{} and {} bytes", x.bytes, y.bytes);
  if (x.flops != y.flops || x.waves != y.waves) return "FLOPs or waves";
  if (x.target != y.target) return fmt::format("targets {} and {}", x.target, y.target);
  if (x.source != y.source) return "source";
  if (x.from != y.from || x.to != y.to || x.pageable != y.pageable) return "where a copy goes";
  if (x.group != y.group || x.collective != y.collective) return "collective";
  if (x.operator_class != y.operator_class || x.data_type != y.data_type) return "class or data type";
  if (x.kernels != y.kernels || x.framework_calls != y.framework_calls || x.dispatch != y.dispatch)
    return "kernels or framework calls";
  const auto u = a.uses_of(x), v = b.uses_of(y);
  if (u.size() != v.size()) return fmt::format("{} and {} uses", u.size(), v.size());
  for (std::size_t i = 0; i < u.size(); ++i)
    if (u[i].storage != v[i].storage || u[i].version != v[i].version || u[i].access != v[i].access ||
        u[i].saved != v[i].saved)
      return fmt::format("use {}", i);
  return "";
}

bool same(const Knowledge& a, const Knowledge& b) {
  return a.timing == b.timing && a.allocations == b.allocations && a.dataflow == b.dataflow && a.modules == b.modules &&
         a.shapes == b.shapes;
}

std::string difference_of_storages(const Trace& a, const Trace& b) {
  if (a.storages.size() != b.storages.size())
    return fmt::format("{} and {} storages", a.storages.size(), b.storages.size());
  for (std::size_t i = 0; i < a.storages.size(); ++i) {
    const Storage &x = a.storages[i], &y = b.storages[i];
    if (x.bytes != y.bytes || x.kind != y.kind || x.stream != y.stream || a.places[x.place] != b.places[y.place] ||
        a.strings[x.label] != b.strings[y.label] || x.preexisting != y.preexisting || x.pinned != y.pinned)
      return fmt::format("storage {}", i);
  }
  return "";
}

}  // namespace

std::string first_difference(const Trace& a, const Trace& b) {
  if (a.name != b.name || a.machine != b.machine) return "name or machine";
  if (a.places != b.places) return "places";
  if (!same(a.knowledge, b.knowledge)) return "knowledge";
  if (a.samples_per_step != b.samples_per_step || a.tokens_per_step != b.tokens_per_step) return "samples or tokens";
  if (a.ranks != b.ranks || a.event_count != b.event_count) return "ranks or events";
  if (a.threads.size() != b.threads.size() || a.streams.size() != b.streams.size())
    return "number of threads or streams";
  for (std::size_t i = 0; i < a.threads.size(); ++i)
    if (a.threads[i].name != b.threads[i].name) return "name of a thread";
  for (std::size_t i = 0; i < a.streams.size(); ++i)
    if (a.streams[i].name != b.streams[i].name || a.streams[i].role != b.streams[i].role)
      return fmt::format("stream {}", i);
  if (const std::string d = difference_of_storages(a, b); !d.empty()) return d;
  for (std::size_t i = 0; i < std::min(a.ops.size(), b.ops.size()); ++i)
    if (const std::string d = difference(a, b, a.ops[i], b.ops[i]); !d.empty()) return fmt::format("op {}: {}", i, d);
  if (a.ops.size() != b.ops.size()) return fmt::format("{} and {} ops", a.ops.size(), b.ops.size());
  if (a.steps.size() != b.steps.size()) return "number of steps";
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    if (a.steps[i].name != b.steps[i].name || a.steps[i].first != b.steps[i].first ||
        a.steps[i].last != b.steps[i].last)
      return fmt::format("step {}", i);
  return "";
}

}  // namespace memwall
