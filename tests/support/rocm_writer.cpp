#include "tests/support/rocm_writer.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/sqlite_writer.h"

namespace memwall {
namespace {

constexpr std::int64_t kBegin = 5'000'000'000;  // ns since the machine started

struct WrittenCall {
  const char* kind;
  const char* name;
  int thread, start, end;  // us
  int correlation, ancestor = 0;
  const char* message = "";
  const char* stream = "";
  const char* event = "";
};
const std::vector<WrittenCall> kCalls{
    {"MARKER_CORE_RANGE_API", "roctxThreadRangeA", 4711, 0, 900, 1, 0, "step 1"},
    {"HIP_RUNTIME_API_EXT", "hipMalloc", 4711, 5, 20, 2},
    {"HIP_RUNTIME_API_EXT", "hipMemcpyAsync", 4711, 30, 36, 4, 0, "", "0xaa"},
    {"MARKER_CORE_RANGE_API", "roctxThreadRangeA", 4711, 40, 300, 5, 0, "forward"},
    {"MARKER_CORE_RANGE_API", "roctxThreadRangeA", 4711, 45, 120, 6, 0,
     "aten::addmm, seq = 7, op_id = 12, sizes = [[8], [4, 16], [16, 8]]"},
    {"HIP_RUNTIME_API_EXT", "hipLaunchKernel", 4711, 50, 56, 7, 0, "", "0xaa"},
    {"HIP_RUNTIME_API_EXT", "hipEventRecord", 4711, 130, 132, 8, 0, "", "0xaa", "0xe1"},
    {"HIP_RUNTIME_API_EXT", "hipStreamWaitEvent", 4711, 140, 142, 9, 0, "", "0xbb", "0xe1"},
    {"MARKER_CORE_RANGE_API", "roctxThreadRangeA", 4711, 310, 500, 10, 0, "backward"},
    {"HIP_RUNTIME_API_EXT", "hipLaunchKernel", 4711, 320, 330, 11, 0, "", "0xbb"},
    {"HSA_CORE_API", "hsa_signal_store_screlease", 4711, 324, 326, 12, 11},
    {"HSA_CORE_API", "hsa_signal_wait_scacquire", 4712, 100, 800, 13},
    {"RCCL_API_EXT", "ncclAllReduce", 4711, 510, 560, 14},
    {"HIP_RUNTIME_API_EXT", "hipLaunchKernel", 4711, 520, 528, 15, 14, "", "0xbb"},
    {"HIP_RUNTIME_API_EXT", "hipStreamSynchronize", 4711, 600, 760, 16, 0, "", "0xbb"},
    {"HIP_RUNTIME_API_EXT", "hipFree", 4711, 800, 830, 17},
    {"ROCDECODE_API", "rocDecCreateDecoder", 4711, 840, 850, 20},
};

struct WrittenKernel {
  int kernel, stream, start, end, correlation, group, grid, lds;
};
const std::vector<WrittenKernel> kKernels{
    {1, 1, 70, 270, 7, 256, 256 * 608, 16384}, {2, 2, 340, 380, 12, 128, 1000, 0}, {3, 2, 580, 740, 15, 512, 8192, 0}};
const std::vector<const char*> kKernelNames{"", "Cijk_Ailk_Bljk_SB_MT128x128x16", "void add<float>",
                                            "ncclDevKernel_Generic(ncclDevComm*)"};

// An allocation of 2 MiB on the GPU, 64 KiB on the host, and the first one's release.
struct WrittenAllocation {
  bool release;
  int agent, time, correlation, ancestor;
  std::int64_t address, size;
};
const std::vector<WrittenAllocation> kAllocations{{false, 4, 10, 3, 2, 0x7f0000000000, 2 << 20},
                                                  {false, 0, 12, 18, 2, 0x7f1000000000, 64 << 10},
                                                  {true, 0, 810, 19, 17, 0x7f0000000000, 0}};

constexpr const char* kGpu =
    R"({"size":328,"cu_count":304,"wave_front_size":64,"mem_banks":[{"heap_type":1,"size_in_bytes":206141652992}]})";

std::int64_t at(int us) { return kBegin + us * std::int64_t{1000}; }

// --- rocpd ---
class DatabaseText {
 public:
  explicit DatabaseText(RocpdForm form) : direct_(form == RocpdForm::direct) {}

  std::string run() {
    tables();
    names();
    for (const WrittenCall& call : kCalls) region(call);
    for (std::size_t i = 0; i < kKernels.size(); ++i) kernel(static_cast<int>(i) + 1, kKernels[i]);
    const int copied = event("MEMORY_COPY", 4, 4);
    insert("memory_copy",
           direct_ ? fmt::format("1,'',7,4711,4711,{},{},{},4,0,0,0,1048576,0,1,0,{},'{{}}'", at(40), at(60),
                                 string("MEMORY_COPY_HOST_TO_DEVICE"), copied)
                   : fmt::format("1,'',{},{},{},{},4,0,0,0,1048576,0,{},'{{}}'", track(4711, 0, 0, 1), timestamp(40),
                                 timestamp(60), string("MEMORY_COPY_HOST_TO_DEVICE"), copied));
    for (const WrittenAllocation& a : kAllocations) allocation(a);
    const int marked = event("MARKER_CORE_RANGE_API", 21, 0, R"({"message":"a mark"})");
    insert("sample", direct_ ? fmt::format("1,'',{},{},{},'{{}}'", track(4711, 0, 0, 0), at(860), marked)
                             : fmt::format("1,'',{},1,{},{},'{{}}'", track(4711, 0, 0, 0), timestamp(860), marked));
    return text_;
  }

 private:
  void create(const char* table, const std::string& columns) {
    text_ += fmt::format("CREATE TABLE `rocpd_{}{}` ({});\nCREATE VIEW `rocpd_{}` AS SELECT * FROM `rocpd_{}{}`;\n",
                         table, kRocpdSet, columns, table, table, kRocpdSet);
  }
  void insert(const char* table, const std::string& values) {
    text_ += fmt::format("INSERT INTO `rocpd_{}{}` VALUES ({});\n", table, kRocpdSet, values);
  }

  void tables() {
    const std::string place = direct_ ? "nid INTEGER, pid INTEGER, tid INTEGER" : "track_id INTEGER";
    const std::string span = direct_ ? "start BIGINT, \"end\" BIGINT" : "start_id INTEGER, end_id INTEGER";
    create("metadata", "id INTEGER PRIMARY KEY, tag TEXT, value TEXT");
    create("string", "id INTEGER PRIMARY KEY, guid TEXT, string TEXT");
    create("info_process", "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, command TEXT");
    create("info_agent",
           "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER, "
           "logical_index INTEGER, type_index INTEGER, name TEXT, model_name TEXT, product_name TEXT, extdata JSONB");
    create("info_kernel_symbol",
           "id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, display_name TEXT, arch_vgpr_count INTEGER");
    create("event",
           "id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, "
           "correlation_id INTEGER, extdata JSONB");
    create("arg",
           "id INTEGER PRIMARY KEY, guid TEXT, event_id INTEGER, position INTEGER, type TEXT, name TEXT, value TEXT");
    create("track", direct_
                        ? "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER"
                        : "id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, tid INTEGER, "
                          "agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, name_id INTEGER");
    if (!direct_) create("timestamp", "id INTEGER PRIMARY KEY, guid TEXT, value BIGINT, phase INTEGER");
    create("sample",
           direct_ ? "id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, timestamp BIGINT, event_id INTEGER, "
                     "extdata JSONB"
                   : "id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, name_id INTEGER, timestamp_id INTEGER, "
                     "event_id INTEGER, extdata JSONB");
    create("region",
           fmt::format("id INTEGER PRIMARY KEY, guid TEXT, {}, {}, name_id INTEGER, event_id INTEGER, extdata JSONB",
                       place, span));
    create(
        "kernel_dispatch",
        fmt::format("id INTEGER PRIMARY KEY, guid TEXT, {}{}, kernel_id INTEGER, dispatch_id INTEGER, {}, "
                    "group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z "
                    "INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER",
                    place, direct_ ? ", agent_id INTEGER, queue_id INTEGER, stream_id INTEGER" : "", span));
    create("memory_copy",
           fmt::format(
               "id INTEGER PRIMARY KEY, guid TEXT, {}, {}, name_id INTEGER, dst_agent_id INTEGER, dst_address "
               "INTEGER, src_agent_id INTEGER, src_address INTEGER, size INTEGER{}, region_name_id INTEGER, event_id "
               "INTEGER, extdata JSONB",
               place, span, direct_ ? ", queue_id INTEGER, stream_id INTEGER" : ""));
    create("memory_allocate",
           fmt::format(
               "id INTEGER PRIMARY KEY, guid TEXT, {}{}, type TEXT, level TEXT, {}, address INTEGER, size INTEGER, "
               "event_id INTEGER",
               place, direct_ ? ", agent_id INTEGER" : "", span));
  }

  void names() {
    insert("metadata", "1,'schema_version','3'");
    insert("info_process", "4711,'',7,1,4711,'python train.py'");
    insert("info_agent", "0,'',7,4711,'CPU',0,0,0,'AMD EPYC','','AMD EPYC 9654','{}'");
    insert("info_agent", fmt::format("4,'',7,4711,'GPU',4,4,0,'gfx942','','AMD Instinct MI300X','{}'", kGpu));
    for (std::size_t i = 1; i < kKernelNames.size(); ++i)
      insert("info_kernel_symbol", fmt::format("{},'','mangled','{}',{}", i, kKernelNames[i], 32 * i));
  }

  int string(const std::string& text) {
    const auto [found, added] = strings_.try_emplace(text, static_cast<int>(strings_.size()) + 1);
    if (added) insert("string", fmt::format("{},'','{}'", found->second, text));
    return found->second;
  }
  int event(const std::string& kind, int stack, int parent, const std::string& extdata = "{}") {
    insert("event", fmt::format("{},'',{},{},{},0,'{}'", ++events_, string(kind), stack, parent, extdata));
    return events_;
  }
  int timestamp(int us) {
    insert("timestamp", fmt::format("{},'',{},1", ++timestamps_, at(us)));
    return timestamps_;
  }
  int track(int thread, int agent, int queue, int stream) {
    insert("track", direct_ ? fmt::format("{},'',7,4711,{},1", ++tracks_, thread)
                            : fmt::format("{},'',7,1,4711,{},{},{},{},1", ++tracks_, thread, agent, queue, stream));
    return tracks_;
  }

  void region(const WrittenCall& call) {
    const std::string message = *call.message == 0 ? "{}" : fmt::format(R"({{"message":"{}"}})", call.message);
    const int of = event(call.kind, call.correlation, call.ancestor, message);
    for (const auto& [name, value] : {std::pair("stream", call.stream), std::pair("event", call.event)})
      if (*value != 0) insert("arg", fmt::format("{},'',{},0,'void*','{}','{}'", ++arguments_, of, name, value));
    const std::string place =
        direct_ ? fmt::format("7,4711,{},{},{}", call.thread, at(call.start), at(call.end))
                : fmt::format("{},{},{}", track(call.thread, 0, 0, 0), timestamp(call.start), timestamp(call.end));
    insert("region", fmt::format("{},'',{},{},{},'{{}}'", call.correlation, place, string(call.name), of));
  }

  void kernel(int id, const WrittenKernel& k) {
    const int of = event("KERNEL_DISPATCH", k.correlation, k.correlation);
    const std::string place =
        direct_ ? fmt::format("7,4711,4711,4,1,{},{},{},{},{}", k.stream, k.kernel, id, at(k.start), at(k.end))
                : fmt::format("{},{},{},{},{}", track(4711, 4, 1, k.stream), k.kernel, id, timestamp(k.start),
                              timestamp(k.end));
    insert("kernel_dispatch", fmt::format("{},'',{},{},{},1,1,{},1,1,{}", id, place, k.lds, k.group, k.grid, of));
  }

  void allocation(const WrittenAllocation& a) {
    const int of = event("MEMORY_ALLOCATION", a.correlation, a.ancestor);
    const char* type = a.release ? "FREE" : "ALLOC";
    const std::string agent = a.release ? "NULL" : std::to_string(a.agent);
    const std::string place =
        direct_ ? fmt::format("7,4711,4711,{},'{}','REAL',{},{}", agent, type, at(a.time - 1), at(a.time))
                : fmt::format("{},'{}','REAL',{},{}", track(4711, a.agent, 0, 0), type, timestamp(a.time - 1),
                              timestamp(a.time));
    insert("memory_allocate", fmt::format("NULL,'',{},{},{},{}", place, a.address, a.size, of));
  }

  const bool direct_;
  std::string text_;
  std::map<std::string, int> strings_;
  int events_ = 0, timestamps_ = 0, tracks_ = 0, arguments_ = 0;
};

// --- JSON ---
class JsonText {
 public:
  explicit JsonText(bool arguments) : arguments_(arguments) {}

  std::string run() {
    for (const WrittenCall& call : kCalls) add(call);
    std::string kernels, symbols;
    for (std::size_t i = 0; i < kKernels.size(); ++i) append(kernels, kernel(static_cast<int>(i) + 1, kKernels[i]));
    for (std::size_t i = 1; i < kKernelNames.size(); ++i)
      append(symbols, fmt::format(R"({{"kernel_id":{},"formatted_kernel_name":"{}","arch_vgpr_count":{}}})", i,
                                  kKernelNames[i], 32 * i));
    const std::string copy = fmt::format(
        R"({{"kind":{},"operation":{},"thread_id":4711,"correlation_id":{{"internal":4,"external":0}},"start_timestamp":{},)"
        R"("end_timestamp":{},"dst_agent_id":{{"handle":104}},"src_agent_id":{{"handle":100}},"bytes":1048576,)"
        R"("stream_id":{{"handle":1}}}})",
        kind("MEMORY_COPY"), operation("MEMORY_COPY", "MEMORY_COPY_HOST_TO_DEVICE"), at(40), at(60));
    std::string allocations;
    for (const WrittenAllocation& a : kAllocations) append(allocations, allocation(a));
    std::string records = fmt::format(R"("kernel_dispatch":[{}],"memory_copy":[{}],"memory_allocation":[{}])", kernels,
                                      copy, allocations);
    for (const auto& [list, calls] : calls_) records += fmt::format(R"(,"{}":[{}])", list, calls);
    std::string kinds;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      std::string operations;
      for (const std::string& name : operations_[kinds_[i]]) append(operations, '"' + name + '"');
      append(kinds, fmt::format(R"({{"kind":"{}","operations":[{}]}})", kinds_[i], operations));
    }
    const std::string gpu = std::string(kGpu).substr(1);  // without its brace
    return fmt::format(
        R"({{"rocprofiler-sdk-tool":[{{"metadata":{{"pid":4711,"command":["python","train.py"]}},"agents":[)"
        R"({{"id":{{"handle":100}},"type":1,"name":"AMD EPYC","logical_node_type_id":0}},)"
        R"({{"id":{{"handle":104}},"type":2,"name":"gfx942","product_name":"AMD Instinct MI300X","logical_node_type_id":0,{}],)"
        R"("strings":{{"buffer_records":[{}],"marker_api":[{}]}},"kernel_symbols":[{}],"buffer_records":{{{}}}}}]}})",
        gpu, kinds, messages_, symbols, records);
  }

 private:
  static void append(std::string& list, const std::string& element) { list += (list.empty() ? "" : ",\n") + element; }

  std::size_t kind(const std::string& name) {
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      if (kinds_[i] == name) return i;
    kinds_.push_back(name);
    return kinds_.size() - 1;
  }
  std::size_t operation(const std::string& of, const std::string& name) {
    std::vector<std::string>& names = operations_[of];
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
    names.push_back(name);
    return names.size() - 1;
  }

  void add(const WrittenCall& call) {
    const std::string of = call.kind;
    std::string arguments;
    for (const auto& [name, value] : {std::pair("stream", call.stream), std::pair("event", call.event)})
      if (*value != 0) append(arguments, fmt::format(R"({{"type":"void*","name":"{}","value":"{}"}})", name, value));
    const char* list = of.starts_with("HIP")    ? "hip_api"
                       : of.starts_with("HSA")  ? "hsa_api"
                       : of.starts_with("RCCL") ? "rccl_api"
                                                : "marker_api";
    append(calls_[list],
           fmt::format(R"({{"kind":{},"operation":{},"correlation_id":{{"internal":{},"external":0,"ancestor":{}}},)"
                       R"("start_timestamp":{},"end_timestamp":{},"thread_id":{}{}}})",
                       kind(of), operation(of, call.name), call.correlation, call.ancestor, at(call.start),
                       at(call.end), call.thread, arguments_ ? fmt::format(R"(,"args":[{}])", arguments) : ""));
    if (*call.message != 0)
      append(messages_, fmt::format(R"({{"key":{},"value":"{}"}})", call.correlation, call.message));
  }

  std::string kernel(int id, const WrittenKernel& k) {
    return fmt::format(
        R"({{"kind":{},"operation":0,"thread_id":4711,"correlation_id":{{"internal":{},"external":0}},"start_timestamp":{},)"
        R"("end_timestamp":{},"dispatch_info":{{"agent_id":{{"handle":104}},"queue_id":{{"handle":1}},"kernel_id":{},)"
        R"("dispatch_id":{},"group_segment_size":{},"workgroup_size":{{"x":{},"y":1,"z":1}},)"
        R"("grid_size":{{"x":{},"y":1,"z":1}}}},"stream_id":{{"handle":{}}}}})",
        kind("KERNEL_DISPATCH"), k.correlation, at(k.start), at(k.end), k.kernel, id, k.lds, k.group, k.grid, k.stream);
  }

  std::string allocation(const WrittenAllocation& a) {
    const std::string name = a.release ? "MEMORY_ALLOCATION_FREE" : "MEMORY_ALLOCATION_ALLOCATE";
    return fmt::format(
        R"({{"kind":{},"operation":{},"thread_id":4711,"correlation_id":{{"internal":{},"external":0,"ancestor":{}}},)"
        R"("start_timestamp":{},"end_timestamp":{},"agent_id":{{"handle":{}}},"address":"0x{:016x}","allocation_size":{}}})",
        kind("MEMORY_ALLOCATION"), operation("MEMORY_ALLOCATION", name), a.correlation, a.ancestor, at(a.time - 1),
        at(a.time), a.release ? 0 : 100 + a.agent, a.address, a.size);
  }

  const bool arguments_;
  std::vector<std::string> kinds_;
  std::map<std::string, std::vector<std::string>> operations_;
  std::map<std::string, std::string> calls_;
  std::string messages_;
};

}  // namespace

std::string rocpd_database(RocpdForm form, const std::string& more) {
  return sqlite_file(DatabaseText(form).run() + more);
}

std::string rocprof_json(bool arguments) { return JsonText(arguments).run(); }

}  // namespace memwall
