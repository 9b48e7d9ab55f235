// Which tables and columns a run file has: one list, used for writing and for reading.
// Internal to traces/run; FORMAT.md explains it to readers of the file.
//
// fields(f, row type) calls f(column, member) for every column of a table. Add columns and tables at will and raise
// kRunFormatVersion: every file of a version has all of its tables, and another version is refused.
#pragma once

#include <string>

#include "traces/run/file/column_file.h"
#include "traces/run/run.h"
#include "traces/run/run_source.h"

namespace memwall {

// A member reached through others.
#define MEMWALL_MEMBER(path) \
  [](auto& row) -> auto& { return row.path; }

// An item of a list that belongs to row `owner` of another table.
template <class Item>
struct Owned {
  std::uint32_t owner = 0;
  Item item{};
};
using CurvePoint = std::pair<double, double>;

// How many of the machine's tiers and links are those of one GPU's machine; those of further ranks come after.
struct MachineOfOne {
  std::uint32_t tiers = 0, links = 0;
};

template <class F>
void fields(F&& f, Row<std::string>) {
  f(
      "text", [](auto& text) -> auto& { return text; });
}

template <class F>
void fields(F&& f, Row<MachineOfOne>) {
  f("tiers", &MachineOfOne::tiers);
  f("links", &MachineOfOne::links);
}

template <class F>
void fields(F&& f, Row<std::int32_t>) {
  f(
      "value", [](auto& value) -> auto& { return value; });
}

template <class F>
void fields(F&& f, Row<std::uint32_t>) {
  f(
      "value", [](auto& value) -> auto& { return value; });
}

template <class F>
void fields(F&& f, Row<char>) {
  f(
      "byte", [](const char& c) -> std::int64_t { return static_cast<unsigned char>(c); },
      [](char& c, std::int64_t cell) {
        c = static_cast<char>(cell);
        return cell >= 0 && cell <= 0xff;
      });
}

template <class F>
void fields(F&& f, Row<Run>) {
  f("allocator", &Run::allocator);
  f("allocator_settings", &Run::allocator_settings);
  f("pager", &Run::pager);
  f("step_low_ps", MEMWALL_MEMBER(step_bounds.low));
  f("step_high_ps", MEMWALL_MEMBER(step_bounds.high));
  f("unchanged_step_ps", MEMWALL_MEMBER(unchanged_step));
  f("steady_step_ps", MEMWALL_MEMBER(steady_step));
  f("alone_step_ps", MEMWALL_MEMBER(alone_step));
  f("links_shared_step_ps", MEMWALL_MEMBER(contended_steps.links));
  f("memory_channels_shared_step_ps", MEMWALL_MEMBER(contended_steps.memory_channels));
  f("cores_shared_step_ps", MEMWALL_MEMBER(contended_steps.cores));
  f("storage_shared_step_ps", MEMWALL_MEMBER(contended_steps.storage));
  f("first_step_ps", MEMWALL_MEMBER(first_step));
  f("step_without_changes_ps", MEMWALL_MEMBER(changes.step_without));
  f("transfer_host", MEMWALL_MEMBER(changes.transfer_host));
  f("end_ps", MEMWALL_MEMBER(result.end));
  f("gpu_span_ps", MEMWALL_MEMBER(result.gpu_span));
  f("fits", MEMWALL_MEMBER(result.fits));
  f("events", MEMWALL_MEMBER(result.events));
}

// Of a trace or a rank: ReplayConstants in their member `constants`.
template <class F>
void constants(F&& f) {
  static constexpr const char* kinds[kLaunchKinds] = {"kernel", "copy", "memset"};
  for (int a = 0; a < kLaunchKinds; ++a) {
    f(
        std::string("launch_latency_ps.") + kinds[a], [a](auto& t) -> auto& { return t.constants.launch_latency[a]; });
    for (int b = 0; b < kLaunchKinds; ++b)
      f(
          std::string("stream_gap_ps.") + kinds[a] + "." + kinds[b],
          [ a, b ](auto& t) -> auto& { return t.constants.stream_gap[a][b]; });
  }
  f("graph_gap_ps", MEMWALL_MEMBER(constants.graph_gap));
  f("event_latency_ps", MEMWALL_MEMBER(constants.event_latency));
  f("launch_queue_depth", MEMWALL_MEMBER(constants.launch_queue_depth));
}

template <class F>
void fields(F&& f, Row<Trace>) {
  f("name", &Trace::name);
  f("machine", &Trace::machine);
  f("event_count", &Trace::event_count);
  f("ranks", &Trace::ranks);
  f("job_ranks", &Trace::job_ranks);
  f("samples_per_step", &Trace::samples_per_step);
  f("tokens_per_step", &Trace::tokens_per_step);
  f("untracked_bytes", &Trace::untracked_bytes);
  f("reserved_at_start", &Trace::reserved_at_start);
  f("knows_timing", MEMWALL_MEMBER(knowledge.timing));
  f("knows_allocations", MEMWALL_MEMBER(knowledge.allocations));
  f("knows_dataflow", MEMWALL_MEMBER(knowledge.dataflow));
  f("knows_modules", MEMWALL_MEMBER(knowledge.modules));
  f("knows_shapes", MEMWALL_MEMBER(knowledge.shapes));
  f("completeness", &Trace::completeness);
  f("completeness_reason", &Trace::completeness_reason);
  constants(f);
}

template <class F>
void fields(F&& f, Row<RecipeItem>) {
  f("what", &RecipeItem::what);
  f("value", &RecipeItem::value);
  f("setting", &RecipeItem::setting);
}

template <class F>
void fields(F&& f, Row<MemoryBudget>) {
  f("policy", &MemoryBudget::policy);
  f("bytes", &MemoryBudget::bytes);
  f("over", &MemoryBudget::over);
}

template <class F>
void fields(F&& f, Row<HostThread>) {
  f("name", &HostThread::name);
  f("rank", &HostThread::rank);
}

template <class F>
void fields(F&& f, Row<Stream>) {
  f("name", &Stream::name);
  f("device", &Stream::device);
  f("role", &Stream::role);
  f("rank", &Stream::rank);
}

// No rows where the trace holds one rank.
template <class F>
void fields(F&& f, Row<Rank>) {
  f("number", &Rank::number);
  f("untracked_bytes", &Rank::untracked_bytes);
  f("reserved_at_start", &Rank::reserved_at_start);
  f("samples_per_step", &Rank::samples_per_step);
  f("tokens_per_step", &Rank::tokens_per_step);
  f("ranks", &Rank::ranks);
  constants(f);
}

template <class F>
void fields(F&& f, Row<ProcessGroup>) {
  f("name", &ProcessGroup::name);
  f("ranks", &ProcessGroup::ranks);
}

template <class F>
void fields(F&& f, Row<Owned<std::uint32_t>>) {
  f("owner", &Owned<std::uint32_t>::owner);
  f("value", &Owned<std::uint32_t>::item);
}

template <class F>
void fields(F&& f, Row<Owned<PipelineChunk>>) {
  f("owner", &Owned<PipelineChunk>::owner);
  f("stage", MEMWALL_MEMBER(item.stage));
  f("first_layer", MEMWALL_MEMBER(item.first_layer));
  f("layers", MEMWALL_MEMBER(item.layers));
  f("embedding", MEMWALL_MEMBER(item.embedding));
  f("loss", MEMWALL_MEMBER(item.loss));
}

// A collective that waited for the last of its rendezvous.
struct PeerRow {
  OpId op = kNoOp, peer = kNoOp;
};

template <class F>
void fields(F&& f, Row<PeerRow>) {
  f("op", &PeerRow::op);
  f("peer", &PeerRow::peer);
}

template <class F>
void fields(F&& f, Row<Storage>) {
  f("bytes", &Storage::bytes);
  f("kind", &Storage::kind);
  f("place", &Storage::place);
  f("stream", &Storage::stream);
  f("label", &Storage::label);
  f("preexisting", &Storage::preexisting);
  f("pinned", &Storage::pinned);
}

template <class F>
void fields(F&& f, Row<Use>) {
  f("storage", &Use::storage);
  f("version", &Use::version);
  f("access", &Use::access);
}

template <class F>
void fields(F&& f, Row<Step>) {
  f("name", &Step::name);
  f("first", &Step::first);
  f("last", &Step::last);
}

template <class F>
void fields(F&& f, Row<Op>) {
  f("kind", &Op::kind);
  f("phase", &Op::phase);
  f("origin", &Op::origin);
  f("wait_for", &Op::wait_for);
  f("graph_member", &Op::graph_member);
  f("placed", &Op::placed);
  f("inferred", &Op::inferred);
  f("added", &Op::added);
  f("thread", &Op::thread);
  f("stream", &Op::stream);
  f("name", &Op::name);
  f("operator", &Op::operator_name);
  f("module", &Op::module);
  f("host_gap_ps", &Op::host_gap);
  f("host_cost_ps", &Op::host_cost);
  f("return_delay_ps", &Op::return_delay);
  f("duration_ps", &Op::duration);
  f("bytes", &Op::bytes);
  f("flops", &Op::flops);
  f("waves", &Op::waves);
  f("target", &Op::target);
  f("source", &Op::source);
  f("first_use", &Op::first_use);
  f("use_count", &Op::use_count);
  f("from", &Op::from);
  f("to", &Op::to);
  f("group", &Op::group);
  f("operator_class", &Op::operator_class);
  f("data_type", &Op::data_type);
  f("collective", &Op::collective);
  f("pageable", &Op::pageable);
}

// An end as the time since its begin, which is a smaller number: half the bytes on disk.
template <Time OpRecord::*begin, Time OpRecord::*end, class F>
void time_since(F&& f, const char* name) {
  f(
      name, [](const OpRecord& r) { return r.*begin == kNever ? 0 : (r.*end - r.*begin).count(); },
      [](OpRecord& r, std::int64_t cell) {
        r.*end = r.*begin == kNever ? kNever
                                    : Time(static_cast<std::int64_t>(static_cast<std::uint64_t>((r.*begin).count()) +
                                                                     static_cast<std::uint64_t>(cell)));
        return cell >= 0 && r.*end >= r.*begin;
      });
}

template <class F>
void fields(F&& f, Row<OpRecord>) {
  f("call_begin_ps", &OpRecord::host_start);
  time_since<&OpRecord::host_start, &OpRecord::host_end>(f, "call_time_ps");
  f("begin_ps", &OpRecord::start);
  time_since<&OpRecord::start, &OpRecord::end>(f, "time_ps");
  f("call_cause", &OpRecord::host_cause);
  f("call_reason", &OpRecord::host_reason);
  f("cause", &OpRecord::device_cause);
  f("reason", &OpRecord::device_reason);
  f("return_waited", &OpRecord::host_end_waited);
  f("return_cause", &OpRecord::host_end_cause);
  f("return_reason", &OpRecord::host_end_reason);
}

template <class F>
void fields(F&& f, Row<MoveRecord>) {
  f("begin_ps", &MoveRecord::start);
  f("end_ps", &MoveRecord::end);
  f("storage", &MoveRecord::storage);
  f("from", &MoveRecord::from);
  f("to", &MoveRecord::to);
  f("bytes", &MoveRecord::bytes);
  f("for_op", &MoveRecord::for_op);
}

template <class F>
void fields(F&& f, Row<TierResult>) {
  f("peak_allocated", &TierResult::peak_allocated);
  f("peak_reserved", &TierResult::peak_reserved);
  f("at_peak_allocated", MEMWALL_MEMBER(peak_usage.allocated));
  f("at_peak_requested", MEMWALL_MEMBER(peak_usage.requested));
  f("at_peak_reserved", MEMWALL_MEMBER(peak_usage.reserved));
  f("missing", &TierResult::missing);
  f("peak_time_ps", &TierResult::peak_time);
  for (int k = 0; k < kStorageKinds; ++k)
    f(
        "peak_by_kind." + std::string(to_string(static_cast<StorageKind>(k))), [k](auto& tier) -> auto& {
          return tier.peak_by_kind[k];
        });
  f("device_mallocs", MEMWALL_MEMBER(allocator.device_mallocs));
  f("device_frees", MEMWALL_MEMBER(allocator.device_frees));
  f("retries", MEMWALL_MEMBER(allocator.retries));
  f("device_calls_ps", &TierResult::device_calls);
  f("at_peak_reserved_allocated", MEMWALL_MEMBER(pressure.at_peak_reserved.allocated));
  f("at_peak_reserved_requested", MEMWALL_MEMBER(pressure.at_peak_reserved.requested));
  f("at_peak_reserved_reserved", MEMWALL_MEMBER(pressure.at_peak_reserved.reserved));
  f("peak_reserved_time_ps", MEMWALL_MEMBER(pressure.peak_reserved_time));
  f("ooms", MEMWALL_MEMBER(pressure.ooms));
  // Of the first request that found no memory, what tells of it later: whether there was one, and what was in use.
  f("refused_storage", MEMWALL_MEMBER(refused.storage));
  f("refused_allocated", MEMWALL_MEMBER(refused.usage.allocated));
}

template <class F>
void fields(F&& f, Row<LinkResult>) {
  f("bytes", &LinkResult::bytes);
  f("busy_ps", &LinkResult::busy);
  f("cache_full_ps", &LinkResult::cache_full);
  f("cached", &LinkResult::cached);
}

template <class F>
void fields(F&& f, Row<StepResult>) {
  f("name", &StepResult::name);
  f("step_time_ps", &StepResult::step_time);
  f("gpu_span_ps", &StepResult::gpu_span);
}

template <class F>
void fields(F&& f, Row<MemoryPoint>) {
  f("time_ps", &MemoryPoint::time);
  f("allocated", &MemoryPoint::allocated);
  f("requested", &MemoryPoint::requested);
  f("reserved", &MemoryPoint::reserved);
}

template <class F>
void fields(F&& f, Row<RatePoint>) {
  f("time_ps", &RatePoint::time);
  f("bytes_per_second", &RatePoint::bytes_per_second);
}

template <class F>
void fields(F&& f, Row<Residency>) {
  f("storage", &Residency::storage);
  f("tier", &Residency::tier);
  f("begin_ps", &Residency::begin);
  f("end_ps", &Residency::end);
}

template <class F>
void fields(F&& f, Row<InputFile>) {
  f("name", &InputFile::name);
  f("hash", &InputFile::hash);
}

template <class F>
void fields(F&& f, Row<TriedChange>) {
  f("options", &TriedChange::options);
  f("fits", &TriedChange::fits);
  f("peak_reserved", &TriedChange::peak_reserved);
  f("missing_in", &TriedChange::missing_in);
  f("missing", &TriedChange::missing);
  f("step_time_ps", &TriedChange::step_time);
  f("samples_per_second", &TriedChange::samples_per_second);
}

template <class F>
void fields(F&& f, Row<Speedup>) {
  f("what", &Speedup::what);
  f("step_time_ps", &Speedup::step_time);
}

template <class F>
void fields(F&& f, Row<Provenance>) {
  f("wall_seconds", &Provenance::wall_seconds);
  f("host", &Provenance::host);
  f("date", &Provenance::date);
  f("command_line", &Provenance::command_line);
  f("version", &Provenance::version);
  f("scenario", &Provenance::scenario);
}

// The index: for viewers, who read by range. A run that is read whole builds its own.
template <class F>
void fields(F&& f, Row<RunLane>) {
  f("kind", &RunLane::kind);
  f("index", &RunLane::index);
  f("rank", &RunLane::rank);
  f("from", &RunLane::from);
  f("to", &RunLane::to);
  f("engine", &RunLane::engine);
  f("device", &RunLane::device);
  f("name", &RunLane::name);
  f("spans", &RunLane::spans);
  f("base_log2", &RunLane::base_log2);
  f("levels", &RunLane::levels);
}

template <class F>
void fields(F&& f, Row<LaneCell>) {
  f("bucket", &LaneCell::bucket);
  f("busy_ps", &LaneCell::busy);
  f("begins", &LaneCell::begins);
  f("category", &LaneCell::category);
  f("stall", &LaneCell::stall);
  f("before", &LaneCell::before);
}

template <class F>
void fields(F&& f, Row<Owned<LaneBlock>>) {
  f("owner", &Owned<LaneBlock>::owner);
  f("block", MEMWALL_MEMBER(item.block));
  f("begin_ps", MEMWALL_MEMBER(item.begin));
  f("end_ps", MEMWALL_MEMBER(item.end));
  f("spans", MEMWALL_MEMBER(item.spans));
}

template <class F>
void fields(F&& f, Row<StepWindow>) {
  f("name", &StepWindow::name);
  f("begin_ps", &StepWindow::begin);
  f("end_ps", &StepWindow::end);
  f("rank", &StepWindow::rank);
  f("behind_ps", &StepWindow::behind);
}

template <class F>
void fields(F&& f, Row<MemoryHigh>) {
  f("time_ps", &MemoryHigh::time);
  f("allocated", &MemoryHigh::allocated);
  f("requested", &MemoryHigh::requested);
  f("reserved", &MemoryHigh::reserved);
}

template <class F>
void fields(F&& f, Row<RateHigh>) {
  f("time_ps", &RateHigh::time);
  f("mean", &RateHigh::mean);
  f("high", &RateHigh::high);
}

}  // namespace memwall
