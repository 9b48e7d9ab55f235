#include "trace/trace.pb.h"  // made by protoc
#include "traces/trace/chunks.h"
#include "traces/trace/columns.h"

namespace memwall {
namespace {

constexpr std::uint32_t bit(bool value, int position) { return value ? 1u << position : 0u; }

void encode(const ReplayConstants& constants, file::Constants* out) {
  for (int i = 0; i < kLaunchKinds; ++i) out->add_launch_latency(constants.launch_latency[i].count());
  for (int i = 0; i < kLaunchKinds; ++i)
    for (int k = 0; k < kLaunchKinds; ++k) out->add_stream_gap(constants.stream_gap[i][k].count());
  out->set_graph_gap(constants.graph_gap.count());
  out->set_event_latency(constants.event_latency.count());
  out->set_launch_queue_depth(constants.launch_queue_depth);
}

void encode_enums(std::span<const Op> ops, file::Ops* out) {
  using column::put_bytes;
  put_bytes(out->mutable_kind(), ops, [](const Op& op) { return static_cast<unsigned char>(op.kind); });
  put_bytes(out->mutable_phase(), ops, [](const Op& op) { return static_cast<unsigned char>(op.phase); });
  put_bytes(out->mutable_origin(), ops, [](const Op& op) { return static_cast<unsigned char>(op.origin); });
  put_bytes(out->mutable_wait_for(), ops, [](const Op& op) { return static_cast<unsigned char>(op.wait_for); });
  put_bytes(out->mutable_flags(), ops, [](const Op& op) {
    return static_cast<unsigned char>(bit(op.graph_member, 0) | bit(op.placed, 1) | bit(op.inferred, 2) |
                                      bit(op.added, 3) | bit(op.pageable, 4));
  });
  put_bytes(out->mutable_operator_class(), ops,
            [](const Op& op) { return static_cast<unsigned char>(op.operator_class); });
  put_bytes(out->mutable_data_type(), ops, [](const Op& op) { return static_cast<unsigned char>(op.data_type); });
  put_bytes(out->mutable_collective(), ops, [](const Op& op) { return static_cast<unsigned char>(op.collective); });
  put_bytes(out->mutable_dispatch(), ops, [](const Op& op) { return static_cast<unsigned char>(op.dispatch); });
  put_bytes(out->mutable_from(), ops, [](const Op& op) { return op.from; });
  put_bytes(out->mutable_to(), ops, [](const Op& op) { return op.to; });
}

void encode_indices(std::span<const Op> ops, file::Ops* out) {
  using column::put;
  put<std::uint32_t>(out->mutable_thread(), ops, [](const Op& op) { return op.thread; });
  put<std::uint32_t>(out->mutable_stream(), ops, [](const Op& op) { return op.stream; });
  put<std::uint32_t>(out->mutable_name(), ops, [](const Op& op) { return op.name; });
  put<std::uint32_t>(out->mutable_operator_name(), ops, [](const Op& op) { return op.operator_name; });
  put<std::uint32_t>(out->mutable_module(), ops, [](const Op& op) { return op.module; });
  put<std::uint32_t>(out->mutable_target(), ops, [](const Op& op) { return op.target + 1; });
  put<std::uint32_t>(out->mutable_source(), ops, [](const Op& op) { return op.source + 1; });
  put<std::uint32_t>(out->mutable_use_count(), ops, [](const Op& op) { return op.use_count; });
  put<std::uint32_t>(out->mutable_group(), ops, [](const Op& op) { return op.group; });
  put<std::uint32_t>(out->mutable_shape(), ops, [](const Op& op) { return op.shape; });
  put<std::uint32_t>(out->mutable_kernels(), ops, [](const Op& op) { return (op.kernels - 1) & 0xffff; });
  put<std::uint32_t>(out->mutable_framework_calls(), ops, [](const Op& op) { return op.framework_calls; });
  put<std::uint32_t>(out->mutable_error_permille(), ops, [](const Op& op) { return op.error_permille; });
}

void encode(const PipelineChunk& chunk, file::PipelineChunk* out) {
  out->set_stage(chunk.stage);
  out->set_first_layer(chunk.first_layer);
  out->set_layers(chunk.layers);
  out->set_embedding(chunk.embedding);
  out->set_loss(chunk.loss);
}

void encode_ranks(const Trace& trace, file::Header* out) {
  for (const Rank& rank : trace.rank_table) {
    file::Rank* const row = out->add_rank();
    row->set_number(rank.number);
    encode(rank.constants, row->mutable_constants());
    row->set_untracked_bytes(rank.untracked_bytes);
    row->set_reserved_at_start(rank.reserved_at_start);
    row->set_samples_per_step(rank.samples_per_step);
    row->set_tokens_per_step(rank.tokens_per_step);
    row->set_ranks(rank.ranks);
    for (const std::uint32_t number : rank.stands_for) row->add_stands_for(number);
    for (const PipelineChunk& chunk : rank.chunks) encode(chunk, row->add_chunk());
  }
  if (!trace.rank_table.empty()) {
    for (const HostThread& thread : trace.threads) out->add_thread_rank(thread.rank);
    for (const Stream& stream : trace.streams) out->add_stream_rank(stream.rank);
  }
  out->set_job_ranks(trace.job_ranks);
  for (const ProcessGroup& group : trace.groups) {
    file::ProcessGroup* const row = out->add_group();
    row->set_name(group.name);
    row->set_ranks(group.ranks);
    for (const std::uint32_t member : group.members) row->add_member(member);
  }
}

}  // namespace

void encode(const Trace& trace, file::Header* out) {
  out->set_name(trace.name);
  out->set_machine(trace.machine);
  for (const HostThread& thread : trace.threads) out->add_thread(thread.name);
  for (const Stream& stream : trace.streams) {
    out->add_stream(stream.name);
    out->add_stream_device(stream.device);
    out->mutable_stream_role()->push_back(static_cast<char>(stream.role));
  }
  for (const std::string& place : trace.places) out->add_place(place);
  for (const Step& step : trace.steps) {
    file::Step* const row = out->add_step();
    row->set_name(step.name);
    row->set_first(step.first);
    row->set_last(step.last);
  }
  encode(trace.constants, out->mutable_constants());
  const Knowledge& k = trace.knowledge;
  out->set_knowledge(bit(k.timing, 0) | bit(k.allocations, 1) | bit(k.dataflow, 2) | bit(k.modules, 3) |
                     bit(k.shapes, 4));
  out->set_event_count(trace.event_count);
  out->set_ranks(trace.ranks);
  encode_ranks(trace, out);
  out->set_samples_per_step(trace.samples_per_step);
  out->set_tokens_per_step(trace.tokens_per_step);
  out->set_untracked_bytes(trace.untracked_bytes);
  out->set_reserved_at_start(trace.reserved_at_start);
  out->set_reuse_distance(trace.reuse_distance);
  for (const std::string& note : trace.notes) out->add_note(note);
  out->set_completeness(static_cast<std::uint32_t>(trace.completeness));
  out->set_completeness_reason(trace.completeness_reason);
  for (const RecipeItem& item : trace.recipe) {
    file::RecipeItem* row = out->add_recipe();
    row->set_what(item.what);
    row->set_value(item.value);
    row->set_setting(item.setting);
  }
  out->set_strings(trace.strings.size() - 1);  // the empty string goes without saying
  out->set_shapes(trace.shapes.size() - 1);
  out->set_storages(trace.storages.size());
  out->set_ops(trace.ops.size());
  out->set_uses(trace.uses.size());
}

void encode(const StringTable& strings, std::size_t first, std::size_t count, file::Strings* out) {
  for (std::size_t i = first; i < first + count; ++i) {
    const std::string& text = strings[static_cast<StringId>(i)];
    out->add_length(static_cast<std::uint32_t>(text.size()));
    out->mutable_text()->append(text);
  }
}

void encode(const ShapeTable& shapes, std::size_t first, std::size_t count, file::Shapes* out) {
  for (std::size_t i = first; i < first + count; ++i) {
    const Shape& shape = shapes[static_cast<ShapeId>(i)];
    out->add_rank(static_cast<std::uint32_t>(shape.size()));
    for (const std::int64_t extent : shape) out->add_extent(extent);
  }
}

void encode(std::span<const Storage> storages, file::Storages* out) {
  out->set_rows(static_cast<std::uint32_t>(storages.size()));
  column::put<std::int64_t>(out->mutable_bytes(), storages, [](const Storage& s) { return s.bytes; });
  column::put_bytes(out->mutable_kind(), storages, [](const Storage& s) { return static_cast<unsigned char>(s.kind); });
  column::put_bytes(out->mutable_place(), storages, [](const Storage& s) { return s.place; });
  column::put<std::uint32_t>(out->mutable_stream(), storages, [](const Storage& s) { return s.stream; });
  column::put<std::uint32_t>(out->mutable_label(), storages, [](const Storage& s) { return s.label; });
  column::put<std::uint32_t>(out->mutable_shape(), storages, [](const Storage& s) { return s.shape; });
  column::put_bytes(out->mutable_flags(), storages, [](const Storage& s) {
    return static_cast<unsigned char>(bit(s.preexisting, 0) | bit(s.pinned, 1));
  });
  column::put<std::uint32_t>(out->mutable_last_referenced(), storages,
                             [](const Storage& s) { return s.last_referenced + 1; });
}

void encode(std::span<const Op> ops, std::uint32_t& uses_end, file::Ops* out) {
  using column::put;
  out->set_rows(static_cast<std::uint32_t>(ops.size()));
  encode_enums(ops, out);
  encode_indices(ops, out);
  put<std::int64_t>(out->mutable_host_gap(), ops, [](const Op& op) { return op.host_gap.count(); });
  put<std::int64_t>(out->mutable_host_cost(), ops, [](const Op& op) { return op.host_cost.count(); });
  put<std::int64_t>(out->mutable_return_delay(), ops, [](const Op& op) { return op.return_delay.count(); });
  put<std::int64_t>(out->mutable_duration(), ops, [](const Op& op) { return op.duration.count(); });
  put<std::int64_t>(out->mutable_bytes(), ops, [](const Op& op) { return op.bytes; });
  put<double>(out->mutable_flops(), ops, [](const Op& op) { return op.flops; });
  put<float>(out->mutable_waves(), ops, [](const Op& op) { return op.waves; });
  std::vector<std::int32_t> jumps;
  jumps.reserve(ops.size());
  for (const Op& op : ops) {
    jumps.push_back(static_cast<std::int32_t>(op.first_use - uses_end));  // modulo 2^32 on both sides
    uses_end = op.first_use + op.use_count;
  }
  put<std::int32_t>(out->mutable_first_use(), std::span<const std::int32_t>(jumps),
                    [](std::int32_t jump) { return jump; });
}

void encode(std::span<const Use> uses, file::Uses* out) {
  out->set_rows(static_cast<std::uint32_t>(uses.size()));
  std::vector<std::int32_t> jumps;
  jumps.reserve(uses.size());
  std::uint32_t previous = 0;
  for (const Use& use : uses) {
    jumps.push_back(static_cast<std::int32_t>(use.storage - previous));
    previous = use.storage;
  }
  column::put<std::int32_t>(out->mutable_storage(), std::span<const std::int32_t>(jumps),
                            [](std::int32_t jump) { return jump; });
  column::put<std::uint32_t>(out->mutable_version(), uses, [](const Use& use) { return use.version; });
  column::put_bytes(out->mutable_access(), uses, [](const Use& use) { return static_cast<unsigned char>(use.access); });
  column::put_bytes(out->mutable_saved(), uses, [](const Use& use) { return static_cast<unsigned char>(use.saved); });
}

}  // namespace memwall
