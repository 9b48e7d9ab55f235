#include <algorithm>
#include <cmath>
#include <string_view>

#include "trace/trace.pb.h"  // made by protoc
#include "traces/trace/chunks.h"
#include "traces/trace/columns.h"

namespace memwall {
namespace {

using column::Rows;
using column::take;
using column::take_up_to;

constexpr std::uint64_t kIndex16 = 0xffff;
constexpr std::uint64_t kAnyByte = 0xff;

bool has_bit(std::uint32_t flags, int position) { return (flags >> position & 1u) != 0; }

void require(bool holds, const std::string& sentence) {
  if (!holds) throw ColumnError(sentence);
}

void decode(const file::Constants& in, ReplayConstants& constants) {
  require(in.launch_latency_size() == kLaunchKinds && in.stream_gap_size() == kLaunchKinds * kLaunchKinds,
          "holds launch latencies or stream gaps of another number than its kinds of launches");
  for (int i = 0; i < kLaunchKinds; ++i) constants.launch_latency[i] = Duration(in.launch_latency(i));
  for (int i = 0; i < kLaunchKinds; ++i)
    for (int k = 0; k < kLaunchKinds; ++k) constants.stream_gap[i][k] = Duration(in.stream_gap(i * kLaunchKinds + k));
  constants.graph_gap = Duration(in.graph_gap());
  constants.event_latency = Duration(in.event_latency());
  constants.launch_queue_depth = in.launch_queue_depth();
}

void decode_streams(const file::Header& in, Trace& trace) {
  const int count = in.stream_size();
  require(in.stream_device_size() == count && in.stream_role().size() == static_cast<std::size_t>(count),
          "describes streams of which some lack a device or a role");
  trace.streams.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Stream& stream = trace.streams[static_cast<std::size_t>(i)];
    stream.name = in.stream(i);
    require(in.stream_device(i) <= kIndex16, "has a stream of device " + std::to_string(in.stream_device(i)));
    stream.device = static_cast<std::uint16_t>(in.stream_device(i));
    const auto role = static_cast<unsigned char>(in.stream_role()[static_cast<std::size_t>(i)]);
    require(role <= static_cast<unsigned char>(StreamRole::storage),
            "has a stream of the unknown role " + std::to_string(role));
    stream.role = static_cast<StreamRole>(role);
  }
}

template <class E, class Member>
void take_enum(E largest, const std::string& in, const Rows<Op>& ops, const char* name, Member member) {
  take_up_to(static_cast<std::uint64_t>(largest), in, ops, name,
             [member](Op& op, char value) { op.*member = static_cast<E>(static_cast<unsigned char>(value)); });
}

void decode_enums(const file::Ops& in, const Rows<Op>& ops) {
  take_enum(OpKind::mark, in.kind(), ops, "kind", &Op::kind);
  take_enum(Phase::optimizer, in.phase(), ops, "phase", &Op::phase);
  take_enum(Origin::modelled, in.origin(), ops, "origin", &Op::origin);
  take_enum(WaitFor::device, in.wait_for(), ops, "wait_for", &Op::wait_for);
  take_enum(OperatorClass::memory, in.operator_class(), ops, "operator_class", &Op::operator_class);
  take_enum(DataType::boolean, in.data_type(), ops, "data_type", &Op::data_type);
  take_enum(CollectiveKind::barrier, in.collective(), ops, "collective", &Op::collective);
  take_enum(Dispatch::compiled, in.dispatch(), ops, "dispatch", &Op::dispatch);
  take_up_to(31, in.flags(), ops, "flags", [](Op& op, char value) {
    const auto flags = static_cast<unsigned char>(value);
    op.graph_member = has_bit(flags, 0);
    op.placed = has_bit(flags, 1);
    op.inferred = has_bit(flags, 2);
    op.added = has_bit(flags, 3);
    op.pageable = has_bit(flags, 4);
  });
  take_up_to(kAnyByte, in.from(), ops, "from", [](Op& op, char value) { op.from = static_cast<std::uint8_t>(value); });
  take_up_to(kAnyByte, in.to(), ops, "to", [](Op& op, char value) { op.to = static_cast<std::uint8_t>(value); });
}

template <class Field>
void take_index(const Field& in, const Rows<Op>& ops, const char* name, std::uint16_t Op::*member) {
  take_up_to(kIndex16, in, ops, name,
             [member](Op& op, std::uint32_t value) { op.*member = static_cast<std::uint16_t>(value); });
}

template <class Field>
void take_duration(const Field& in, const Rows<Op>& ops, const char* name, Duration Op::*member) {
  take(in, ops, name, [member](Op& op, std::int64_t value) { op.*member = Duration(value); });
}

void decode_indices(const file::Ops& in, const Rows<Op>& ops) {
  take_index(in.thread(), ops, "thread", &Op::thread);
  take_index(in.stream(), ops, "stream", &Op::stream);
  take_up_to(kMostUsesOfAnOp, in.use_count(), ops, "use_count", [](Op& op, std::uint32_t value) { op.use_count = value; });
  take_index(in.group(), ops, "group", &Op::group);
  take_index(in.framework_calls(), ops, "framework_calls", &Op::framework_calls);
  take_index(in.error_permille(), ops, "error_permille", &Op::error_permille);
  take_up_to(kIndex16 - 1, in.kernels(), ops, "kernels",
             [](Op& op, std::uint32_t value) { op.kernels = static_cast<std::uint16_t>(value + 1); });
  take(in.shape(), ops, "shape", [](Op& op, std::uint32_t id) { op.shape = id; });
  take(in.name(), ops, "name", [](Op& op, std::uint32_t id) { op.name = id; });
  take(in.operator_name(), ops, "operator_name", [](Op& op, std::uint32_t id) { op.operator_name = id; });
  take(in.module(), ops, "module", [](Op& op, std::uint32_t id) { op.module = id; });
  take(in.target(), ops, "target", [](Op& op, std::uint32_t id) { op.target = id - 1; });
  take(in.source(), ops, "source", [](Op& op, std::uint32_t id) { op.source = id - 1; });
}

void decode_ops(const file::Ops& in, const Rows<Op>& ops) {
  // A column that is left out means zeros, also where a default Op has something else.
  for (Op& op : ops.rows) op.kind = OpKind::kernel;
  decode_enums(in, ops);
  decode_indices(in, ops);
  take_duration(in.host_gap(), ops, "host_gap", &Op::host_gap);
  take_duration(in.host_cost(), ops, "host_cost", &Op::host_cost);
  take_duration(in.return_delay(), ops, "return_delay", &Op::return_delay);
  take_duration(in.duration(), ops, "duration", &Op::duration);
  take(in.bytes(), ops, "bytes", [](Op& op, std::int64_t value) { op.bytes = value; });
  take(in.flops(), ops, "flops", [](Op& op, double value) { op.flops = value; });
  take(in.waves(), ops, "waves", [](Op& op, float value) { op.waves = value; });
  take(in.first_use(), ops, "first_use",
       [](Op& op, std::int32_t jump) { op.first_use = static_cast<std::uint32_t>(jump); });
}

void require_rows(std::uint32_t rows, const char* name) {
  require(rows <= kChunkRows, "holds " + std::to_string(rows) + " rows of " + name + " in one part; expected at most " +
                                  std::to_string(kChunkRows));
}

// `rows` more rows at the end of `table`, which grows by what was read, never by what is promised.
template <class Row>
std::span<Row> append_rows(std::vector<Row>& table, std::uint32_t rows, const char* name) {
  require_rows(rows, name);
  const std::size_t first = table.size();
  table.resize(first + rows);
  return std::span<Row>(table).subspan(first);
}

// Of a thread or a stream; traces of one rank have none.
template <class Row, class Field>
void decode_rank_indices(const Field& in, std::vector<Row>& rows, const char* name) {
  take_up_to(kIndex16, in, Rows<Row>(rows), name,
             [](Row& row, std::uint32_t value) { row.rank = static_cast<std::uint16_t>(value); });
}

void require_counts(double samples, double tokens) {
  require(std::isfinite(samples) && samples >= 0 && std::isfinite(tokens) && tokens >= 0,
          "has samples or tokens per step that are no number of things");
}

void decode_ranks(const file::Header& in, Trace& trace) {
  for (const file::Rank& row : in.rank()) {
    Rank& rank = trace.rank_table.emplace_back();
    rank.number = row.number();
    decode(row.constants(), rank.constants);
    rank.untracked_bytes = row.untracked_bytes();
    rank.reserved_at_start = row.reserved_at_start();
    rank.samples_per_step = row.samples_per_step();
    rank.tokens_per_step = row.tokens_per_step();
    rank.ranks = std::max(1u, row.ranks());
    rank.stands_for.assign(row.stands_for().begin(), row.stands_for().end());
    for (const file::PipelineChunk& chunk : row.chunk())
      rank.chunks.push_back({chunk.stage(), chunk.first_layer(), chunk.layers(), chunk.embedding(), chunk.loss()});
    require_counts(rank.samples_per_step, rank.tokens_per_step);
    require(rank.untracked_bytes >= 0 && rank.reserved_at_start >= 0, "has a rank with a negative number of bytes");
  }
  decode_rank_indices(in.thread_rank(), trace.threads, "thread_rank");
  decode_rank_indices(in.stream_rank(), trace.streams, "stream_rank");
  trace.job_ranks = in.job_ranks();
  for (const file::ProcessGroup& group : in.group())
    trace.groups.push_back({group.name(), group.ranks(), {group.member().begin(), group.member().end()}});
}

}  // namespace

void decode(const file::Header& in, Trace& trace) {
  trace.name = in.name();
  trace.machine = in.machine();
  for (const std::string& name : in.thread()) trace.threads.push_back({name});
  decode_streams(in, trace);
  trace.places.assign(in.place().begin(), in.place().end());
  for (const file::Step& step : in.step()) trace.steps.push_back({step.name(), step.first(), step.last()});
  decode(in.constants(), trace.constants);
  require(in.knowledge() < 32, "claims knowledge of an unknown kind");
  trace.knowledge = {has_bit(in.knowledge(), 0), has_bit(in.knowledge(), 1), has_bit(in.knowledge(), 2),
                     has_bit(in.knowledge(), 3), has_bit(in.knowledge(), 4)};
  trace.event_count = in.event_count();
  trace.ranks = in.ranks();
  decode_ranks(in, trace);
  require_counts(in.samples_per_step(), in.tokens_per_step());
  trace.samples_per_step = in.samples_per_step();
  trace.tokens_per_step = in.tokens_per_step();
  trace.untracked_bytes = in.untracked_bytes();
  trace.reserved_at_start = in.reserved_at_start();
  require(trace.reserved_at_start >= 0, "has a negative number of reserved bytes");
  trace.reuse_distance = in.reuse_distance();
  require(trace.reuse_distance >= 0, "has a negative reuse distance");
  trace.notes.assign(in.note().begin(), in.note().end());
  require(in.completeness() <= static_cast<std::uint32_t>(Completeness::gaps_over_limit),
          "is complete in an unknown way");
  trace.completeness = static_cast<Completeness>(in.completeness());
  trace.completeness_reason = in.completeness_reason();
  for (const file::RecipeItem& item : in.recipe()) trace.recipe.push_back({item.what(), item.value(), item.setting()});
}

void decode(const file::Strings& in, Trace& trace) {
  require(static_cast<std::size_t>(in.length_size()) <= kChunkRows, "holds too many strings in one part");
  const std::string_view text = in.text();
  std::size_t at = 0;
  for (const std::uint32_t length : in.length()) {
    require(length <= text.size() - at, "has a string that is longer than its text");
    const StringId expected = static_cast<StringId>(trace.strings.size());
    if (trace.strings.intern(text.substr(at, length)) != expected) throw ColumnError("has the same string twice");
    at += length;
  }
  require(at == text.size(), "has text that belongs to no string");
}

void decode(const file::Shapes& in, Trace& trace) {
  require(static_cast<std::size_t>(in.rank_size()) <= kChunkRows, "holds too many shapes in one part");
  auto extent = in.extent().begin();
  for (const std::uint32_t rank : in.rank()) {
    require(rank <= static_cast<std::size_t>(in.extent().end() - extent), "has a shape without all of its extents");
    const Shape shape(extent, extent + rank);
    extent += rank;
    const auto expected = static_cast<ShapeId>(trace.shapes.size());
    if (trace.shapes.intern(shape) != expected) throw ColumnError("has the same shape twice");
  }
  require(extent == in.extent().end(), "has extents that belong to no shape");
}

void decode(const file::Storages& in, Trace& trace) {
  const Rows<Storage> rows(append_rows(trace.storages, in.rows(), "storages"));
  take(in.bytes(), rows, "bytes", [](Storage& s, std::int64_t value) { s.bytes = value; });
  take_up_to(static_cast<std::uint64_t>(kStorageKinds - 1), in.kind(), rows, "kind",
             [](Storage& s, char value) { s.kind = static_cast<StorageKind>(value); });
  take_up_to(kAnyByte, in.place(), rows, "place",
             [](Storage& s, char value) { s.place = static_cast<std::uint8_t>(value); });
  take_up_to(kIndex16, in.stream(), rows, "stream",
             [](Storage& s, std::uint32_t value) { s.stream = static_cast<std::uint16_t>(value); });
  take(in.label(), rows, "label", [](Storage& s, std::uint32_t value) { s.label = value; });
  take(in.shape(), rows, "shape", [](Storage& s, std::uint32_t value) { s.shape = value; });
  take_up_to(3, in.flags(), rows, "flags", [](Storage& s, char value) {
    s.preexisting = has_bit(static_cast<unsigned char>(value), 0);
    s.pinned = has_bit(static_cast<unsigned char>(value), 1);
  });
  take(in.last_referenced(), rows, "last_referenced",
       [](Storage& s, std::uint32_t value) { s.last_referenced = value - 1; });
}

void decode(const file::Ops& in, std::uint32_t& uses_end, Trace& trace) {
  require_rows(in.rows(), "ops");
  // Column by column, but of so few ops at a time that they stay in the nearest cache.
  constexpr std::size_t kBlock = 256;
  for (std::size_t first = 0; first < in.rows(); first += kBlock) {
    const std::size_t begin = trace.ops.size();
    trace.ops.resize(begin + std::min<std::size_t>(kBlock, in.rows() - first));
    const Rows<Op> rows(std::span<Op>(trace.ops).subspan(begin), first, in.rows());
    decode_ops(in, rows);
    for (Op& op : rows.rows) {
      op.first_use += uses_end;
      uses_end = op.first_use + op.use_count;
    }
  }
}

void decode(const file::Uses& in, Trace& trace) {
  const Rows<Use> uses(append_rows(trace.uses, in.rows(), "uses"));
  for (Use& use : uses.rows) use.storage = 0;
  take(in.storage(), uses, "storage",
       [](Use& use, std::int32_t jump) { use.storage = static_cast<std::uint32_t>(jump); });
  std::uint32_t previous = 0;
  for (Use& use : uses.rows) previous = use.storage += previous;
  take(in.version(), uses, "version", [](Use& use, std::uint32_t value) { use.version = value; });
  take_up_to(1, in.access(), uses, "access", [](Use& use, char value) { use.access = static_cast<Access>(value); });
  take_up_to(1, in.saved(), uses, "saved", [](Use& use, char value) { use.saved = value != 0; });
}

}  // namespace memwall
