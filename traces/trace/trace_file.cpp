#include "traces/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string_view>

#include "sim/files/input_file.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "trace/trace.pb.h"  // made by protoc
#include "traces/trace/chunks.h"
#include "traces/trace/columns.h"
#include "traces/trace/frame_file.h"

namespace memwall {
namespace {

constexpr std::size_t kStringChunkBytes = std::size_t{1} << 20;
// A trace may take this much memory whatever the size of its file, and beyond that so much
// per byte of it. Real captures unpack about 10 times, a step repeated 10,000 times 10,000 times.
constexpr std::uint64_t kFreeMemory = std::uint64_t{4} << 30;
constexpr std::uint64_t kMemoryPerFileByte = 1000;
constexpr std::uint64_t kMemoryPerString = 100;  // its node, its entry and a short text
// Sums of times and of sizes must stay numbers: half of what 64 bits hold, 53 days of picoseconds.
constexpr std::uint64_t kLargestSum = std::uint64_t{1} << 62;

void append(FrameWriter& writer, const file::Chunk& chunk) {
  std::string content;
  if (chunk.ByteSizeLong() > kLargestFrame || !chunk.SerializeToString(&content))
    throw UsageError("Cannot write the trace: one part of it is larger than its file format allows.");
  writer.append(content);
}

void append_strings(FrameWriter& writer, const StringTable& strings) {
  std::size_t first = 1;
  while (first < strings.size()) {
    std::size_t count = 0, bytes = 0;
    while (count < kChunkRows && first + count < strings.size() && bytes < kStringChunkBytes)
      bytes += strings[static_cast<StringId>(first + count++)].size();
    file::Chunk chunk;
    encode(strings, first, count, chunk.mutable_strings());
    append(writer, chunk);
    first += count;
  }
}

void append_shapes(FrameWriter& writer, const ShapeTable& shapes) {
  for (std::size_t first = 1; first < shapes.size(); first += kChunkRows) {
    file::Chunk chunk;
    encode(shapes, first, std::min(kChunkRows, shapes.size() - first), chunk.mutable_shapes());
    append(writer, chunk);
  }
}

// Calls encode_rows(rows, chunk) for each chunk's share of a table.
template <class Row, class Encode>
void append_table(FrameWriter& writer, const std::vector<Row>& table, Encode encode_rows) {
  for (std::size_t first = 0; first < table.size(); first += kChunkRows) {
    file::Chunk chunk;
    encode_rows(std::span<const Row>(table).subspan(first, std::min(kChunkRows, table.size() - first)), chunk);
    append(writer, chunk);
  }
}

// Sums without overflow; false once the sum is beyond kLargestSum.
bool add(std::uint64_t& sum, std::int64_t value) {
  const std::uint64_t size =
      value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  sum = size > kLargestSum ? kLargestSum + 1 : sum + size;
  return sum <= kLargestSum;
}

// Fills a trace frame by frame; throws ColumnError.
class TraceReader {
 public:
  TraceReader(FrameReader& frames, Trace& trace) : frames_(frames), trace_(trace) {}

  void run() {
    if (frames_.frames() == 0) throw ColumnError("is empty");
    for (std::uint32_t i = 0; i < frames_.frames(); ++i) read_frame(i);
    require_count("strings", trace_.strings.size() - 1, declared_.strings());
    require_count("shapes", trace_.shapes.size() - 1, declared_.shapes());
    require_count("storages", trace_.storages.size(), declared_.storages());
    require_count("ops", trace_.ops.size(), declared_.ops());
    require_count("uses", trace_.uses.size(), declared_.uses());
    check_sums();
  }

 private:
  void read_frame(std::uint32_t index) {
    const std::string_view content = frames_.next();
    file::Chunk chunk;
    if (!chunk.ParseFromArray(content.data(), static_cast<int>(content.size())))
      throw ColumnError(fmt::format("has a part {} that does not follow the schema", index + 1));
    if (chunk.has_header() != (index == 0)) throw ColumnError("must have its header in its first part, and only there");
    switch (chunk.content_case()) {
      case file::Chunk::kHeader:
        read_header(*chunk.mutable_header());
        break;
      case file::Chunk::kStrings:
        decode(chunk.strings(), trace_);
        break;
      case file::Chunk::kShapes:
        decode(chunk.shapes(), trace_);
        break;
      case file::Chunk::kStorages:
        decode(chunk.storages(), trace_);
        break;
      case file::Chunk::kOps:
        read_ops(chunk.ops());
        break;
      case file::Chunk::kUses:
        decode(chunk.uses(), trace_);
        break;
      case file::Chunk::CONTENT_NOT_SET:
        throw ColumnError(fmt::format("has a part {} of unknown content", index + 1));
    }
    require_at_most("strings", trace_.strings.size() - 1, declared_.strings());
    require_at_most("shapes", trace_.shapes.size() - 1, declared_.shapes());
    require_at_most("storages", trace_.storages.size(), declared_.storages());
    require_at_most("ops", trace_.ops.size(), declared_.ops());
    require_at_most("uses", trace_.uses.size(), declared_.uses());
  }

  // Sums of times and sizes are kept while the rows are at hand.
  void read_ops(const file::Ops& ops) {
    const std::size_t first = trace_.ops.size();
    decode(ops, uses_end_, trace_);
    for (const Op& op : std::span<const Op>(trace_.ops).subspan(first))
      sound_ = add(time_, op.host_gap.count()) && add(time_, op.host_cost.count()) &&
               add(time_, op.return_delay.count()) && add(time_, op.duration.count()) && add(moved_, op.bytes) && sound_;
  }

  void read_header(file::Header& header) {
    decode(header, trace_);
    // The counts are kept, the names are not needed a second time.
    declared_.set_strings(header.strings());
    declared_.set_shapes(header.shapes());
    declared_.set_storages(header.storages());
    declared_.set_ops(header.ops());
    declared_.set_uses(header.uses());
    const std::uint64_t chunks = frames_.frames();
    for (const std::uint64_t count :
         {header.strings(), header.shapes(), header.storages(), header.ops(), header.uses()})
      if (count > chunks * kChunkRows)
        throw ColumnError(fmt::format("says that it holds {} rows; its {} parts hold at most {}", count, chunks,
                                      chunks * kChunkRows));
    const std::uint64_t memory = header.ops() * sizeof(Op) + header.uses() * sizeof(Use) +
                                 header.storages() * sizeof(Storage) +
                                 (header.strings() + header.shapes()) * kMemoryPerString;
    if (const std::uint64_t most = kFreeMemory + kMemoryPerFileByte * frames_.file_bytes(); memory > most)
      throw ColumnError(
          fmt::format("would take {} bytes of memory; expected at most {} from a file of its size", memory, most));
    // Events are counted by a table of their own wherever a trace is used.
    if (trace_.event_count > 16 * header.ops() + (1u << 20))
      throw ColumnError(fmt::format("counts {} events for {} ops", trace_.event_count, header.ops()));
    if (header.ops() >= kNoOp || header.uses() >= kNoOp || header.storages() >= kNoStorage)
      throw ColumnError("holds more rows than numbers of 32 bits can name");
    // At once only what the size of the file makes likely; beyond it, tables grow as rows arrive.
    const std::uint64_t likely = frames_.file_bytes();
    trace_.ops.reserve(std::min(header.ops(), likely));
    trace_.uses.reserve(std::min(header.uses(), likely));
    trace_.storages.reserve(std::min(header.storages(), likely));
  }

  static void require_count(const char* what, std::size_t found, std::uint64_t declared) {
    if (found != declared)
      throw ColumnError(fmt::format("holds {} {} where its header says {}", found, what, declared));
  }

  static void require_at_most(const char* what, std::size_t found, std::uint64_t declared) {
    if (found > declared) require_count(what, found, declared);
  }

  static bool small(const ReplayConstants& c) {
    std::uint64_t gaps = 0;
    bool sound = true;
    for (const Duration d : c.launch_latency) sound = add(gaps, d.count()) && sound;
    for (const auto& row : c.stream_gap)
      for (const Duration d : row) sound = add(gaps, d.count()) && sound;
    return add(gaps, c.graph_gap.count()) && add(gaps, c.event_latency.count()) && sound;
  }

  void check_sums() const {
    std::uint64_t sizes = 0;
    bool sound = sound_;
    for (const Storage& storage : trace_.storages) sound = add(sizes, storage.bytes) && sound;
    add(sizes, trace_.untracked_bytes);
    add(sizes, trace_.reserved_at_start);
    for (const Rank& rank : trace_.rank_table) {
      add(sizes, rank.untracked_bytes);
      add(sizes, rank.reserved_at_start);
      sound = small(rank.constants) && sound;
    }
    sound = small(trace_.constants) && sound;
    if (!sound || sizes > kLargestSum) throw ColumnError("has times or sizes whose sum is beyond all measure");
  }

  FrameReader& frames_;
  Trace& trace_;
  file::Header declared_;
  std::uint32_t uses_end_ = 0;
  std::uint64_t time_ = 0, moved_ = 0;  // of all ops
  bool sound_ = true;                   // are these sums numbers?
};

}  // namespace

void write_trace(const Trace& trace, const std::filesystem::path& path) {
  FrameWriter writer(path, kTraceFileVersion);
  file::Chunk header;
  encode(trace, header.mutable_header());
  append(writer, header);
  append_strings(writer, trace.strings);
  append_shapes(writer, trace.shapes);
  append_table(writer, trace.storages,
               [](std::span<const Storage> rows, file::Chunk& chunk) { encode(rows, chunk.mutable_storages()); });
  std::uint32_t uses_end = 0;
  append_table(writer, trace.ops,
               [&](std::span<const Op> rows, file::Chunk& chunk) { encode(rows, uses_end, chunk.mutable_ops()); });
  append_table(writer, trace.uses,
               [](std::span<const Use> rows, file::Chunk& chunk) { encode(rows, chunk.mutable_uses()); });
  writer.finish();
}

Trace read_trace(const std::filesystem::path& path) {
  Trace trace;
  try {
    FrameReader frames(path, kTraceFileVersion);
    TraceReader(frames, trace).run();
    frames.require_end();
  } catch (const ColumnError& error) {
    throw InputError(fmt::format("The trace file '{}' {}.", path.string(), error.what()));
  }
  require_sound(trace, fmt::format("file '{}'", path.string()));
  return trace;
}

bool is_trace_file(const std::filesystem::path& path) {
  std::ifstream file(readable_path_or_none(path), std::ios::binary);
  std::string start(kTraceMagic.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == kTraceMagic;
}

}  // namespace memwall
