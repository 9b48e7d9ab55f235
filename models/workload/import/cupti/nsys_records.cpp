#include "models/workload/import/cupti/nsys_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/cupti/nsys_process.h"
#include "models/workload/import/cupti/nsys_tables.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;
using Columns = std::vector<string_view>;

constexpr std::uint32_t kNoCall = 0xfffffffe;  // of work without a correlation: no call has it
constexpr std::int64_t kLatestNs = std::int64_t{1} << 61;
constexpr Bytes kMostBytes = Bytes{1} << 44;
constexpr std::size_t kMostRowsOfKind = 0x7fffffff;
constexpr std::int64_t kPushPopRange = 59, kStartEndRange = 60, kMark = 34;

// CUPTI's numbers of kinds of memory, which Nsight Systems numbers from 0 without the unknown one.
std::uint8_t memory_kind(const SqliteRow& row, std::size_t column) {
  const std::int64_t kind = row.number(column, 7);
  return kind < 0 || kind > 6 ? std::uint8_t{0} : static_cast<std::uint8_t>(kind + 1);
}

class NsysReader {
 public:
  NsysReader(const std::filesystem::path& path, std::optional<std::uint32_t> rank)
      : path_(path), database_(path, "export of Nsight Systems"), rank_(rank) {
    r_.path = path;
  }

  CuptiRecords read() {
    require_export();
    const NsysProcess chosen = choose_nsys_process(database_, path_, rank_);
    process_ = chosen.global;
    told_process_ = chosen.sentence;
    read_strings();
    read_gpus();
    read_calls();
    read_kernels();
    read_copies();
    read_memsets();
    read_graphs();
    read_waits();
    read_ranges();
    read_memory();
    shift_times();
    describe();
    return std::move(r_);
  }

 private:
  void require_export() {
    for (const string_view table : {nsys::kKernels, nsys::kCopies, nsys::kMemsets, nsys::kCalls, nsys::kGraphs})
      if (database_.has(table)) return;
    const std::string found = fmt::format("{}", fmt::join(database_.tables(), ", ")).substr(0, 200);
    throw InputError(
        fmt::format("{}: this SQLite database holds no CUDA activity; expected one of the tables {}, {}, "
                    "... of an Nsight Systems export, found {}.",
                    path_.string(), nsys::kCalls, nsys::kKernels, found.empty() ? "no tables" : found));
  }

  bool of_process(const SqliteRow& row, std::size_t column) const {
    return process_ == 0 || !row.has(column) || nsys::process_of(row.number(column, 0)) == process_;
  }

  void read_strings() {
    database_.read(nsys::kStrings, {"id", "value"}, 2, [&](const SqliteRow& row) {
      if (row.has(0)) names_.insert_or_assign(row.number(0, 0), r_.strings.intern(row.text(1)));
    });
  }

  StringId name(const SqliteRow& row, std::size_t column) const {
    const auto found = names_.find(row.number(column, -1));
    return found == names_.end() ? 0 : found->second;
  }

  template <class Record>
  Record& add(std::vector<Record>& list) const {
    if (list.size() >= kMostRowsOfKind)
      throw InputError(path_.string() + ": found more than 2 billion records of a kind.");
    return list.emplace_back();
  }

  // Start and end as the first two columns. False where they are none: the row is left out.
  bool times(const SqliteRow& row, std::int64_t& start, std::int64_t& end) {
    const auto first = row.number(0), last = row.number(1);
    if (!first || !last || *first < -kLatestNs || *last > kLatestNs || *last < *first) {
      ++left_out_;
      return false;
    }
    start = *first;
    end = *last;
    earliest_ = std::min(earliest_, start);
    return true;
  }

  Bytes size(const SqliteRow& row, std::size_t column, Bytes otherwise) const {
    const std::int64_t bytes = row.number(column, -1);
    return bytes < 0 || bytes > kMostBytes ? otherwise : bytes;
  }

  void read_gpus() {
    std::map<std::uint32_t, std::uint32_t> cuda_of_gpu;  // where CUDA_VISIBLE_DEVICES numbered them anew
    const std::int64_t process = nsys::number_of(process_);
    database_.read(nsys::kCudaDevices, {"gpuId", "cudaId", "pid"}, 0, [&](const SqliteRow& row) {
      if (row.has(0) && row.has(1) && (process_ == 0 || row.number(2, process) == process))
        cuda_of_gpu.try_emplace(row.small(0, 0), row.small(1, 0));
    });
    const Columns columns{"id",
                          "name",
                          "totalMemory",
                          "smCount",
                          "maxWarpsPerSm",
                          "threadsPerWarp",
                          "maxBlocksPerSm",
                          "maxRegistersPerSm",
                          "maxShmemPerSm",
                          "computeMajor",
                          "computeMinor"};
    database_.read(nsys::kGpus, columns, 0, [&](const SqliteRow& row) {
      if (r_.devices.size() >= 4096) return;
      CuptiDevice device;
      const std::uint32_t gpu = row.small(0, 0);
      const auto cuda = cuda_of_gpu.find(gpu);
      if (cuda == cuda_of_gpu.end() && !cuda_of_gpu.empty()) return;  // not this process's
      device.id = cuda == cuda_of_gpu.end() ? gpu : cuda->second;
      device.name = r_.strings.intern(row.text(1));
      device.memory = size(row, 2, 0);
      device.multiprocessors = row.small(3, 0);
      const std::uint64_t threads = std::uint64_t{row.small(4, 0)} * row.small(5, 32);
      device.threads = threads > 1 << 20 ? 0 : static_cast<std::uint32_t>(threads);
      device.blocks = row.small(6, 0);
      device.registers = row.small(7, 0);
      device.shared_memory = row.small(8, 0);
      device.capability = std::min(row.small(9, 0), 1000u) * 10 + std::min(row.small(10, 0), 9u);
      const auto same = [&](const CuptiDevice& d) { return d.id == device.id; };
      if (std::none_of(r_.devices.begin(), r_.devices.end(), same)) r_.devices.push_back(device);
    });
  }

  void read_calls() {
    const Columns columns{"start", "end", "globalTid", "correlationId", "nameId"};
    database_.read(nsys::kCalls, columns, 2, [&](const SqliteRow& row) {
      std::int64_t start = 0, end = 0;
      if (!of_process(row, 2) || !times(row, start, end)) return;
      CuptiCall& call = add(r_.calls);
      call.start = start;
      call.end = end;
      call.thread = static_cast<std::uint32_t>(row.number(2, 0) & nsys::kThreadBits);
      call.correlation = row.small(3, kNotSaid);
      call.name = name(row, 4);
      const std::string& text = r_.strings[call.name];
      call.domain = text.starts_with("cu") && !text.starts_with("cuda") ? 1 : 2;  // the driver's: cuLaunchKernel
    });
  }

  // Columns 0 to 7 of every table of device work.
  static Columns work_columns(const Columns& more) {
    Columns columns{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "graphNodeId"};
    columns.insert(columns.end(), more.begin(), more.end());
    return columns;
  }
  static constexpr std::size_t kFirst = 8;  // column behind them
  CuptiDeviceWork* add_work(CuptiWork kind, const SqliteRow& row) {
    std::int64_t start = 0, end = 0;
    if (!of_process(row, 6) || !times(row, start, end)) return nullptr;
    CuptiDeviceWork& work = add(r_.work);
    work.work = kind;
    work.start = start;
    work.end = end;
    work.device = row.small(2, 0);
    work.context = row.small(3, 0);
    work.stream = row.small(4, 0);
    work.correlation = row.small(5, kNoCall);
    work.graph = row.number(7, 0) != 0;
    return &work;
  }

  void read_kernels() {
    const Columns columns =
        work_columns({"demangledName", "shortName", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory",
                      "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"});
    database_.read(nsys::kKernels, columns, 2, [&](const SqliteRow& row) {
      CuptiDeviceWork* kernel = add_work(CuptiWork::kernel, row);
      if (kernel == nullptr) return;
      kernel->name = name(row, kFirst);
      if (kernel->name == 0) kernel->name = name(row, kFirst + 1);
      kernel->registers = std::min(row.small(kFirst + 2, 0), 1u << 16);
      const std::uint64_t shared = std::uint64_t{row.small(kFirst + 3, 0)} + row.small(kFirst + 4, 0);
      kernel->shared_memory = static_cast<std::uint32_t>(std::min<std::uint64_t>(shared, 1 << 30));
      kernel->blocks = 1;
      std::uint64_t threads = 1;
      for (std::size_t i = 0; i < 3; ++i) {
        kernel->blocks *= row.small(kFirst + 5 + i, 0);
        threads = std::min<std::uint64_t>(threads * std::min(row.small(kFirst + 8 + i, 0), 1u << 20), 1 << 20);
      }
      kernel->threads = static_cast<std::uint32_t>(threads);
    });
  }

  void read_copies() {
    constexpr std::int64_t kToDevice = 11, kWithinDevices = 13;  // migrations of unified memory
    database_.read(nsys::kCopies, work_columns({"bytes", "copyKind", "srcKind", "dstKind"}), 2,
                   [&](const SqliteRow& row) {
                     const std::int64_t kind = row.number(kFirst + 1, 0);
                     if (kind >= kToDevice && kind <= kWithinDevices) {
                       if (!of_process(row, 6)) return;
                       ++r_.counts.unified;
                       std::uint64_t& sum = kind == kToDevice ? r_.counts.to_device_bytes : r_.counts.to_host_bytes;
                       if (sum < std::uint64_t{1} << 60) sum += static_cast<std::uint64_t>(size(row, kFirst, 0));
                       return;
                     }
                     CuptiDeviceWork* copy = add_work(CuptiWork::copy, row);
                     if (copy == nullptr) return;
                     copy->bytes = size(row, kFirst, -1);
                     copy->copy_kind = static_cast<std::uint8_t>(kind < 0 || kind > 10 ? 0 : kind);
                     copy->source_kind = memory_kind(row, kFirst + 2);
                     copy->destination_kind = memory_kind(row, kFirst + 3);
                   });
  }

  void read_memsets() {
    database_.read(nsys::kMemsets, work_columns({"bytes", "memKind"}), 2, [&](const SqliteRow& row) {
      CuptiDeviceWork* memset = add_work(CuptiWork::memset, row);
      if (memset == nullptr) return;
      memset->bytes = size(row, kFirst, -1);
      memset->destination_kind = memory_kind(row, kFirst + 1);
    });
  }

  void read_graphs() {
    database_.read(nsys::kGraphs, work_columns({}), 2, [&](const SqliteRow& row) { add_work(CuptiWork::graph, row); });
  }

  void read_waits() {
    const Columns columns{"start",     "end",      "contextId", "streamId",   "correlationId",
                          "globalPid", "syncType", "eventId",   "eventSyncId"};
    database_.read(nsys::kWaits, columns, 2, [&](const SqliteRow& row) {
      std::int64_t start = 0, end = 0;
      if (!of_process(row, 5) || !times(row, start, end)) return;
      CuptiSynchronization& wait = add(r_.synchronizations);
      wait.start = start;
      wait.end = end;
      wait.context = row.small(2, 0);
      wait.stream = row.small(3, kNotSaid);
      wait.correlation = row.small(4, kNotSaid);
      wait.type = row.small(6, 0);
      wait.event = row.small(7, kNotSaid);
      wait.event_sync = static_cast<std::uint64_t>(std::max<std::int64_t>(row.number(8, 0), 0));
    });
    const Columns recorded{"contextId", "streamId", "correlationId", "globalPid", "eventId", "eventSyncId"};
    database_.read(nsys::kEvents, recorded, 0, [&](const SqliteRow& row) {
      if (!of_process(row, 3)) return;
      CuptiEvent& event = add(r_.events);
      event.context = row.small(0, 0);
      event.stream = row.small(1, 0);
      event.correlation = row.small(2, kNotSaid);
      event.event = row.small(4, kNotSaid);
      event.event_sync = static_cast<std::uint64_t>(std::max<std::int64_t>(row.number(5, 0), 0));
    });
  }

  void read_ranges() {
    constexpr std::uint32_t kInstant = 1, kStart = 2, kEnd = 4;
    const Columns columns{"start", "end", "eventType", "text", "textId", "globalTid", "endGlobalTid"};
    database_.read(nsys::kRanges, columns, 1, [&](const SqliteRow& row) {
      const std::int64_t type = row.number(2, row.has(1) ? kPushPopRange : kMark);
      if (!of_process(row, 5)) return;
      const bool range = type == kPushPopRange || type == kStartEndRange;
      if (!range && type != kMark) return;  // names of categories, domains, threads
      NvtxMarker marker;
      marker.id = static_cast<std::uint32_t>(r_.markers.size());
      marker.thread = static_cast<std::uint32_t>(row.number(5, 0) & nsys::kThreadBits);
      std::int64_t start = 0, end = 0;
      if (!range || !row.has(1)) {
        marker.flags = range ? kStart : kInstant;  // a range that was open when the report ended
        marker.time = row.number(0, 0);
        if (marker.time < -kLatestNs || marker.time > kLatestNs) return;
        earliest_ = std::min(earliest_, marker.time);
        add(r_.markers) = marker;
        return;
      }
      if (!times(row, start, end)) return;
      const string_view text = row.text(3);
      marker.name = text.empty() ? name(row, 4) : r_.strings.intern(text);
      marker.time = start;
      marker.flags = kStart;
      add(r_.markers) = marker;
      marker.time = end;
      marker.flags = kEnd;
      if (const std::int64_t other = row.number(6, 0); other != 0)
        marker.thread = static_cast<std::uint32_t>(other & nsys::kThreadBits);
      add(r_.markers) = marker;
    });
  }

  void read_memory() {
    constexpr std::uint32_t kAllocation = 1, kRelease = 2;  // as CUPTI numbers them
    const Columns columns{"start",
                          "globalPid",
                          "deviceId",
                          "address",
                          "bytes",
                          "memKind",
                          "memoryOperationType",
                          "correlationId",
                          "localMemoryPoolAddress"};
    database_.read(nsys::kMemory, columns, 1, [&](const SqliteRow& row) {
      const auto time = row.number(0);
      const std::int64_t operation = row.number(6, -1);
      if (!of_process(row, 1)) return;
      if (!time || *time < -kLatestNs || *time > kLatestNs || operation < 0 || operation > 1) {
        ++left_out_;
        return;
      }
      earliest_ = std::min(earliest_, *time);
      CuptiMemory& memory = add(r_.memory);
      memory.time = *time;
      memory.address = static_cast<std::uint64_t>(row.number(3, 0));
      memory.size = size(row, 4, 0);
      memory.from_pool = row.number(8, 0) != 0;
      memory.operation = operation == 0 ? kAllocation : kRelease;
      memory.kind = memory_kind(row, 5);
      memory.correlation = row.small(7, kNotSaid);
      memory.device = row.small(2, 0);
    });
  }

  // Times count from the session's start and may lie before it; 0 means unknown to those who read the records.
  void shift_times() {
    if (earliest_ == std::numeric_limits<std::int64_t>::max()) return;
    const auto shift = [this](std::int64_t& time) { time += 1 - earliest_; };
    const auto both = [&](auto& list) {
      for (auto& record : list) shift(record.start), shift(record.end);
    };
    both(r_.calls);
    both(r_.work);
    both(r_.synchronizations);
    for (NvtxMarker& marker : r_.markers) shift(marker.time);
    for (CuptiMemory& memory : r_.memory) shift(memory.time);
  }

  void describe() {
    r_.process = static_cast<std::uint32_t>(nsys::number_of(process_));
    r_.counts.ended = true;
    r_.recorder = fmt::format("Recorded by Nsight Systems, process {}.", r_.process);
    r_.recorder += told_process_;
    if (left_out_ > 0)
      r_.recorder += fmt::format(" {} rows whose times are missing or impossible are left out.", left_out_);
    if (!database_.has(nsys::kWaits))
      r_.recorder += " The report has no rows about synchronization: waits are told by the calls alone.";
  }

  std::filesystem::path path_;
  SqliteDatabase database_;
  CuptiRecords r_;
  std::int64_t process_ = 0;
  std::uint64_t left_out_ = 0;
  std::optional<std::uint32_t> rank_;
  std::string told_process_;
  std::unordered_map<std::int64_t, StringId> names_;
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace

CuptiRecords read_nsys_records(const std::filesystem::path& path, std::optional<std::uint32_t> rank) {
  return NsysReader(path, rank).read();
}

}  // namespace memwall
