#include "gui/model/details.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/model/detail_text.h"
#include "gui/model/navigation.h"
#include "gui/model/peer_text.h"
#include "gui/model/wait_reason_text.h"

namespace memwall::gui {
namespace {

constexpr std::size_t kMostFollowers = 20, kMostStorages = 200;

class OpDetails {
 public:
  OpDetails(const OpenRun& run, OpRef ref) : run_(run), ref_(ref), detail_(run.source->op(ref.op)) {}

  std::vector<DetailSection> sections() {
    add("Time", time());
    add("Work", work());
    add("Waits for", waits());
    add("Followed by", followers());
    add("Storages", storages());
    return std::move(sections_);
  }

 private:
  void add(std::string title, std::vector<DetailLine> lines) {
    if (!lines.empty()) sections_.push_back({std::move(title), std::move(lines)});
  }
  const Op& op() const { return detail_.op; }
  const OpRecord& record() const { return detail_.record; }
  const Run& outline() const { return run_.outline().run; }
  bool works() const { return record().start != kNever; }

  static DetailLine line(std::string name, std::string value) {
    return {std::move(name), std::move(value), std::nullopt, std::nullopt};
  }
  DetailLine op_line(std::string name, OpId id, std::string after = "") const {
    DetailLine out = line(std::move(name), describe_op(run_, id) + after);
    out.op = OpRef{ref_.run, id, false};
    return out;
  }

  std::vector<DetailLine> time() const {
    std::vector<DetailLine> lines{line("op", fmt::format("#{} {}", detail_.id, title_of(detail_)))};
    if (!op().placed && !op().graph_member)
      lines.push_back(line("call", stretch(record().host_start, record().host_end)));
    if (works()) lines.push_back(line("work", stretch(record().start, record().end)));
    if (runs_on_device(op().kind) || op().kind == OpKind::host_work)
      lines.push_back(line("duration", format_time(op().duration) + " alone, " + origin_text(op())));
    if (works() && record().end - record().start > op().duration)
      lines.push_back(line("longer by", format_time(record().end - record().start - op().duration) +
                                            ": it shared what it runs on, or waited for others"));
    return lines;
  }

  std::vector<DetailLine> work() const {
    std::vector<DetailLine> lines{line("kind", std::string(to_string(op().kind)))};
    if (!detail_.name.empty()) lines.push_back(line("name", detail_.name));
    if (!detail_.operator_name.empty()) lines.push_back(line("operator", detail_.operator_name));
    if (op().operator_class != OperatorClass::other)
      lines.push_back(line("class", std::string(to_string(op().operator_class))));
    if (op().phase != Phase::unknown) lines.push_back(line("phase", std::string(to_string(op().phase))));
    if (!detail_.module.empty()) lines.push_back(line("module", detail_.module));
    if (works() && op().stream < outline().trace->streams.size())
      lines.push_back(line("stream", outline().trace->streams[op().stream].name));
    if (!op().placed && op().thread < outline().trace->threads.size())
      lines.push_back(line("thread", outline().trace->threads[op().thread].name));
    if (op().kind == OpKind::collective) lines.push_back(line("collective", std::string(to_string(op().collective))));
    if (op().kind == OpKind::copy || op().kind == OpKind::storage_io) lines.push_back(line("from, to", route()));
    if (op().added) lines.push_back(line("added", "by a policy; not in the trace before it"));
    if (op().source != kNoOp) lines.push_back(op_line(repeats(op()) ? "repeats" : "backward of", op().source));
    add_rates(lines);
    return lines;
  }

  std::string route() const {
    const auto& places = outline().trace->places;
    const auto name = [&](std::uint8_t place) { return place < places.size() ? places[place] : std::string("?"); };
    return name(op().from) + " to " + name(op().to) + (op().pageable ? ", pageable" : "");
  }

  // Bytes and FLOPs, and what share of the machine's rates they achieve.
  void add_rates(std::vector<DetailLine>& lines) const {
    const double seconds = works() ? to_seconds(record().end - record().start) : 0;
    if (op().bytes > 0) {
      std::string text = format_bytes(op().bytes);
      if (seconds > 0) {
        const double rate = static_cast<double>(op().bytes) / seconds;
        text += ", " + format_rate(rate) + share_of(rate, bandwidth_limit());
      }
      lines.push_back(line("bytes", text));
    }
    if (op().flops > 0) {
      std::string text = flops_text(op().flops, "FLOP");
      if (seconds > 0) {
        const double rate = op().flops / seconds;
        text += ", " + flops_text(rate, "FLOP/s") + share_of(rate, flops_limit(rate));
      }
      lines.push_back(line("FLOPs", text));
    }
  }

  struct Limit {
    double rate = 0;
    std::string of;
  };
  static std::string share_of(double rate, const Limit& limit) {
    return limit.rate > 0 ? fmt::format(": {:.0f} % of {}", 100 * rate / limit.rate, limit.of) : "";
  }
  // Tensors of fp32 whose products are faster than fp32 allows were multiplied as tf32.
  Limit flops_limit(double rate) const {
    const Limit own = peak_in(op().data_type);
    if (op().data_type != DataType::fp32 || own.rate <= 0 || rate <= own.rate) return own;
    const Limit tensor_cores = peak_in(DataType::tf32);
    return tensor_cores.rate > 0 ? tensor_cores : own;
  }
  Limit peak_in(DataType type) const {
    for (const PeakRate& peak : outline().machine.gpu.peaks)
      if (peak.data_type == type)
        return {peak.flops, fmt::format("the GPU's {} in {}", flops_text(peak.flops, "FLOP/s"), to_string(type))};
    return {};
  }
  Limit bandwidth_limit() const {
    const Machine& machine = outline().machine;
    if (op().kind == OpKind::kernel || op().kind == OpKind::memset) {
      if (machine.hbm_link >= machine.links.size()) return {};
      const Link& link = machine.links[machine.hbm_link];
      return {link.bandwidth, fmt::format("{}'s {}", link.name, format_rate(link.bandwidth))};
    }
    if (op().kind != OpKind::copy && op().kind != OpKind::storage_io) return {};
    const auto& places = outline().trace->places;
    if (op().from >= places.size() || op().to >= places.size()) return {};
    const Route* route = machine.route(machine.tier(places[op().from]), machine.tier(places[op().to]), op().pageable);
    if (!route) return {};
    return {route->bandwidth, fmt::format("the route's {}", format_rate(route->bandwidth))};
  }

  // What the call, its return and the work waited for.
  std::vector<DetailLine> waits() const {
    std::vector<DetailLine> lines;
    const auto add_wait = [&](const char* what, WaitReason reason, OpId cause, Duration waited) {
      if (reason == WaitReason::none && cause == kNoOp) return;
      std::string text = std::string(wait_reason_text(reason));
      if (waited > Duration{}) text += ", waited " + format_time(waited);
      if (cause == kNoOp) return lines.push_back(line(what, text));
      DetailLine wait = op_line(what, cause);
      wait.value = text + ": " + wait.value;
      lines.push_back(std::move(wait));
    };
    if (!op().placed && !op().graph_member) {
      add_wait("call", record().host_reason, record().host_cause, {});
      if (record().host_end_waited) {
        const Duration longer = record().host_end - record().host_start - op().host_cost;
        add_wait("return", record().host_end_reason, record().host_end_cause, longer);
      }
    }
    if (works()) {
      // From the end of its call, when nothing but the device could hold it back.
      const Duration since = op().placed || op().graph_member ? Duration{} : record().start - record().host_end;
      add_wait("work", record().device_reason, record().device_cause, since);
      if (record().peer != kNoOp)
        lines.push_back(op_line("last to come", record().peer, " of " + rank_and_node(run_, record().peer)));
    }
    add_neighbours(lines);
    add_writers(lines);
    return lines;
  }

  void add_neighbours(std::vector<DetailLine>& lines) const {
    if (!run_.spans) return;
    OpRef part = ref_;
    part.call = ref_.call || !works();
    if (const auto before = next_in_lane(run_, part, Direction::back)) {
      lines.push_back(op_line("before it", before->op));
      lines.back().op = OpRef{ref_.run, before->op, before->call};
    }
  }

  // Who wrote the versions that it reads.
  void add_writers(std::vector<DetailLine>& lines) const {
    std::size_t read = 0;
    for (const Use& use : detail_.uses) {
      if (use.access != Access::read || use.version == 0) continue;
      if (++read > kMostFollowers) continue;
      const auto writer = writer_of(use);
      if (writer) lines.push_back(op_line(fmt::format("storage {}", use.storage), *writer, ", which wrote it"));
    }
    if (read > kMostFollowers)
      lines.push_back(line("", fmt::format("{} more storages that it reads", read - kMostFollowers)));
  }

  std::optional<OpId> writer_of(const Use& read) const {
    const auto find = [&](const std::vector<StorageUse>& uses) -> std::optional<OpId> {
      for (const StorageUse& use : uses)
        if (use.access == Access::write && use.version == read.version) return use.op;
      return std::nullopt;
    };
    return find(run_.spans->load_uses(read.storage)->uses);
  }

  std::vector<DetailLine> followers() const {
    std::vector<DetailLine> lines;
    const std::vector<OpId> all = run_.source->followers(ref_.op, 1000);
    for (std::size_t i = 0; i < all.size() && i < kMostFollowers; ++i) lines.push_back(op_line("", all[i]));
    if (all.size() > kMostFollowers)
      lines.push_back(line("", fmt::format("{}{} more", all.size() - kMostFollowers, all.size() == 1000 ? " or" : "")));
    return lines;
  }

  std::vector<DetailLine> storages() const {
    std::vector<DetailLine> lines;
    const auto add_storage = [&](const char* what, StorageId storage) {
      DetailLine out = line(what, describe_storage(run_, storage));
      out.storage = StorageRef{ref_.run, storage};
      lines.push_back(std::move(out));
    };
    if (op().kind == OpKind::alloc || op().kind == OpKind::free)
      add_storage(op().kind == OpKind::alloc ? "allocates" : "frees", op().target);
    for (const Access access : {Access::read, Access::write}) {
      std::size_t count = 0;
      for (const Use& use : detail_.uses)
        if (use.access == access && ++count <= kMostStorages)
          add_storage(access == Access::read ? "reads" : "writes", use.storage);
      if (count > kMostStorages) lines.push_back(line("", fmt::format("{} more", count - kMostStorages)));
    }
    return lines;
  }

  const OpenRun& run_;
  OpRef ref_;
  OpDetail detail_;
  std::vector<DetailSection> sections_;
};

}  // namespace

std::vector<DetailSection> details_of(const OpenRun& run, OpRef op) { return OpDetails(run, op).sections(); }

std::string to_text(const std::vector<DetailSection>& sections) {
  std::string text;
  for (const DetailSection& section : sections) {
    text += section.title + "\n";
    for (const DetailLine& line : section.lines)
      text += line.name.empty() ? "  " + line.value + "\n" : fmt::format("  {}: {}\n", line.name, line.value);
  }
  return text;
}

}  // namespace memwall::gui
