#include "models/workload/import/rocm/rocprof_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "models/workload/import/bytes/json_source.h"
#include "models/workload/import/rocm/rocm_fields.h"
#include "sim/error.h"

namespace memwall {
namespace {

using std::string_view;
namespace dom = simdjson::dom;

constexpr string_view kDocument = "rocprofiler-sdk-tool";

std::int64_t number(const simdjson::simdjson_result<dom::element>& value, std::int64_t otherwise) {
  std::int64_t found = 0;
  return value.get(found) == simdjson::SUCCESS ? found : otherwise;
}
std::int64_t handle(const simdjson::simdjson_result<dom::element>& id, std::int64_t otherwise) {
  return number(id["handle"], otherwise);
}
std::uint32_t small(const simdjson::simdjson_result<dom::element>& value) {
  const std::int64_t found = number(value, 0);
  return found < 0 || found > 0xfffffffe ? 0 : static_cast<std::uint32_t>(found);
}
string_view text(const simdjson::simdjson_result<dom::element>& value) {
  string_view found;
  return value.get(found) == simdjson::SUCCESS ? found.substr(0, 64 << 10) : string_view();
}

string_view text(dom::element value) {
  string_view found;
  return value.get(found) == simdjson::SUCCESS ? found.substr(0, 64 << 10) : string_view();
}

// "0x00007f0000000000", or {"handle": n}, or a number.
std::uint64_t address(const simdjson::simdjson_result<dom::element>& value) {
  string_view hex = text(value);
  if (hex.empty()) return static_cast<std::uint64_t>(number(value, handle(value, 0)));
  if (hex.starts_with("0x")) hex.remove_prefix(2);
  std::uint64_t found = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), found, 16);
  return found;
}

// A process of the document.
class ProcessReader {
 public:
  ProcessReader(dom::element document, RocmProfile& profile)
      : document_(document), p_(profile), process_(static_cast<std::uint32_t>(profile.processes.size())) {}

  void read() {
    if (p_.processes.size() >= 4096)
      throw InputError(p_.path.string() + ": found a 4,097th process; expected at most 4,096.");
    RocmProcess process;
    const auto metadata = document_["metadata"];
    process.id = number(metadata["pid"], 0);
    for (const dom::element word : array(metadata["command"]))
      if (process.command.size() < 1000)
        process.command += (process.command.empty() ? "" : " ") + std::string(text(word));
    p_.processes.push_back(std::move(process));
    read_names();
    read_agents();
    const auto records = document_["buffer_records"];
    for (const dom::element record : array(records["kernel_dispatch"])) add_kernel(record);
    for (const dom::element record : array(records["memory_copy"])) add_copy(record);
    for (const char* calls : {"hip_api", "hsa_api", "rccl_api", "marker_api"})
      for (const dom::element record : array(records[calls])) add_call(record);
    for (const dom::element record : array(records["memory_allocation"])) add_allocation(record);
    p_.scratch += array(records["scratch_memory"]).size();
  }

 private:
  static dom::array array(const simdjson::simdjson_result<dom::element>& value) {
    dom::array found = empty();
    return value.get(found) == simdjson::SUCCESS ? found : empty();
  }
  static dom::array empty() {
    static dom::parser parser;
    static const dom::array none = parser.parse(simdjson::padded_string(string_view("[]"))).get_array();
    return none;
  }

  // --- names ---
  struct Kind {
    std::string name;
    RocmDomain domain = RocmDomain::other;
    std::vector<StringId> operations;
  };

  void read_names() {
    const auto strings = document_["strings"];
    for (const dom::element kind : array(strings["buffer_records"])) {
      Kind& added = kinds_.emplace_back();
      added.name = text(kind["kind"]);
      added.domain = rocm_domain(added.name);
      for (const dom::element operation : array(kind["operations"]))
        added.operations.push_back(p_.strings.intern(text(operation)));
    }
    for (const dom::element entry : array(strings["marker_api"]))
      messages_.insert_or_assign(number(entry["key"], 0), p_.strings.intern(text(entry["value"])));
    for (const dom::element symbol : array(document_["kernel_symbols"])) {
      string_view name;
      for (const char* field : {"formatted_kernel_name", "demangled_kernel_name", "kernel_name"})
        if (name.empty()) name = text(symbol[field]);
      symbols_.insert_or_assign(number(symbol["kernel_id"], -1),
                                std::pair(p_.strings.intern(name), small(symbol["arch_vgpr_count"])));
    }
  }

  void read_agents() {
    constexpr std::int64_t kGpu = 2;  // ROCPROFILER_AGENT_TYPE_GPU
    for (const dom::element found : array(document_["agents"])) {
      RocmAgent& agent = rocm_add(p_.agents, p_.path);
      agent.process = process_;
      agent.id = handle(found["id"], 0);
      agent.gpu = number(found["type"], 0) == kGpu;
      agent.ordinal = number(found["logical_node_type_id"], -1);
      for (const char* field : {"product_name", "model_name", "name"})
        if (agent.name.empty()) agent.name = text(found[field]);
      describe_rocm_agent(simdjson::minify(found), agent);
    }
  }

  // --- records ---
  bool times(dom::element record, std::int64_t& start, std::int64_t& end) {
    start = number(record["start_timestamp"], 0);
    end = number(record["end_timestamp"], 0);
    if (is_rocm_span(start, end)) return true;
    ++p_.without_times;
    return false;
  }

  RocmWork* add_work(dom::element record) {
    std::int64_t start = 0, end = 0;
    if (!times(record, start, end)) return nullptr;
    RocmWork& work = rocm_add(p_.work, p_.path);
    work.process = process_;
    work.start = start;
    work.end = end;
    work.stream = handle(record["stream_id"], 0);
    work.correlation = number(record["correlation_id"]["internal"], 0);
    return &work;
  }

  void add_kernel(dom::element record) {
    RocmWork* kernel = add_work(record);
    if (kernel == nullptr) return;
    const auto info = record["dispatch_info"];
    kernel->agent = handle(info["agent_id"], 0);
    kernel->queue = handle(info["queue_id"], 0);
    if (const auto symbol = symbols_.find(number(info["kernel_id"], -1)); symbol != symbols_.end())
      std::tie(kernel->name, kernel->registers) = symbol->second;
    kernel->group_memory = small(info["group_segment_size"]);
    constexpr const char* kDimensions[] = {"x", "y", "z"};
    for (std::size_t i = 0; i < 3; ++i) {
      kernel->group_items[i] = small(info["workgroup_size"][kDimensions[i]]);
      kernel->work_items[i] = small(info["grid_size"][kDimensions[i]]);
    }
  }

  void add_copy(dom::element record) {
    RocmWork* copy = add_work(record);
    if (copy == nullptr) return;
    copy->copy = true;
    copy->source_agent = handle(record["src_agent_id"], -1);
    copy->destination_agent = handle(record["dst_agent_id"], -1);
    copy->bytes = rocm_bytes(number(record["bytes"], -1));
  }

  void add_call(dom::element record) {
    std::int64_t start = 0, end = 0;
    if (!times(record, start, end)) return;
    const std::size_t kind = small(record["kind"]), operation = small(record["operation"]);
    const RocmDomain domain = kind < kinds_.size() ? kinds_[kind].domain : RocmDomain::other;
    const std::int64_t correlation = number(record["correlation_id"]["internal"], 0);
    StringId name = kind < kinds_.size() && operation < kinds_[kind].operations.size()
                        ? kinds_[kind].operations[operation]
                        : StringId{0};
    if (domain == RocmDomain::marker) {
      const auto message = messages_.find(correlation);
      name = message == messages_.end() ? StringId{0} : message->second;
      if (name != 0 && start == end) {
        ++p_.instants;
        return;
      }
    }
    if (domain == RocmDomain::other || (domain == RocmDomain::marker && name == 0)) {
      ++p_.other_calls;
      return;
    }
    RocmCall& call = rocm_add(p_.calls, p_.path);
    call.process = process_;
    call.domain = domain;
    call.start = start;
    call.end = end;
    call.name = name;
    call.thread = rocm_thread(number(record["thread_id"], 0));
    call.correlation = correlation;
    for (const dom::element argument : array(record["args"])) {
      const string_view of = text(argument["name"]);
      if (is_stream_argument(of)) call.stream = p_.strings.intern(text(argument["value"]));
      if (of == "event") call.event = p_.strings.intern(text(argument["value"]));
    }
  }

  void add_allocation(dom::element record) {
    std::int64_t start = 0, end = 0;
    if (!times(record, start, end)) return;
    const std::size_t kind = small(record["kind"]), operation = small(record["operation"]);
    if (kind >= kinds_.size() || operation >= kinds_[kind].operations.size()) return;
    // MEMORY_ALLOCATION_ALLOCATE, MEMORY_ALLOCATION_VMEM_FREE, ...
    const string_view name = p_.strings[kinds_[kind].operations[operation]];
    if (!name.ends_with("ALLOCATE") && !name.ends_with("FREE")) return;
    RocmAllocation& allocation = rocm_add(p_.allocations, p_.path);
    allocation.process = process_;
    allocation.release = name.ends_with("FREE");
    allocation.time = end;
    allocation.agent = handle(record["agent_id"], 0);
    allocation.address = address(record["address"]);
    allocation.size = std::max<Bytes>(rocm_bytes(number(record["allocation_size"], 0)), 0);
    allocation.correlation = number(record["correlation_id"]["internal"], 0);
    allocation.ancestor = number(record["correlation_id"]["ancestor"], 0);
  }

  const dom::element document_;
  RocmProfile& p_;
  const std::uint32_t process_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::int64_t, StringId> messages_;                           // of roctx, by correlation
  std::unordered_map<std::int64_t, std::pair<StringId, std::uint32_t>> symbols_;  // name, registers
};

}  // namespace

RocmProfile read_rocprof_json(const std::filesystem::path& path) {
  RocmProfile profile;
  profile.path = path;
  profile.writer = "rocprofv3 (JSON)";
  JsonSource json(path);
  bool found = false;
  const auto read = [&](string_view piece) {
    dom::parser parser;
    dom::element document;
    const auto error = parser.parse(piece.data(), piece.size(), false).get(document);
    if (error != simdjson::SUCCESS)
      json.fail(fmt::format("found JSON that cannot be read ({}); expected a process of rocprofv3.",
                            simdjson::error_message(error)));
    found = true;
    ProcessReader(document, profile).read();
  };
  while (const auto member = json.next_member()) {
    if (*member != kDocument) continue;
    if (json.at_array())
      while (const auto element = json.next_element()) read(*element);
    else
      read(json.value());
  }
  if (!found) throw InputError(path.string() + ": found no process in \"" + std::string(kDocument) + "\".");
  return profile;
}

}  // namespace memwall
