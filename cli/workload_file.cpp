#include "cli/workload_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "cli/generated_step.h"
#include "cli/progress.h"
#include "models/hw/machine_file.h"
#include "models/hw/traffic.h"
#include "models/workload/generate/workload_file.h"
#include "models/workload/import/byte_source.h"
#include "models/workload/import/capture_import.h"
#include "models/workload/import/capture_records.h"
#include "models/workload/import/execution_trace.h"
#include "models/workload/import/execution_trace_join.h"
#include "models/workload/import/g10_csv.h"
#include "models/workload/import/inject_import.h"
#include "models/workload/import/inject_records.h"
#include "models/workload/import/json_source.h"
#include "models/workload/import/kineto_capture.h"
#include "models/workload/import/kineto_import.h"
#include "models/workload/import/snapshot_import.h"
#include "sim/error.h"
#include "sim/trace_check.h"
#include "traces/run/run_file.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExpected =
    "expected a memwall trace (.mwt), a captured step (.mwc), a captured CUDA program (.mwi), a Kineto capture (JSON, "
    "gzip or not), a G10 workload (X.kernels.csv), or a network to generate: a name that `memwall generate --list` "
    "shows, a .textproto or a Hugging Face config.json";

// " and no such workload", unless what was given is a file's path: a folder in front, or an extension of letters.
std::string near_workload(const fs::path& path) {
  const std::string extension = path.extension().string();
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  if (path.has_parent_path() || (!extension.empty() && std::all_of(extension.begin() + 1, extension.end(), letter)))
    return "";
  const std::string near = nearest_name(path.string().substr(0, 100), known_workloads());
  return near.empty() ? "" : fmt::format(" and no such workload (nearest: \"{}\")", near);
}

// A name, or a file with settings behind it ("mine.textproto:batch=2").
bool is_generated(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return path.extension() == ".textproto";
  return names_workload(path.string()) || path.string().find(".textproto:") != std::string::npos ||
         path.string().find(".json:") != std::string::npos;
}

void require_readable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw InputError(fmt::format("{}: there is no such file{}; {}.", path.string(), near_workload(path), kExpected));
  if (fs::is_directory(status)) throw InputError(fmt::format("{}: this is a folder; {}.", path.string(), kExpected));
  if (!std::ifstream(path))
    throw InputError(fmt::format("{}: the file cannot be opened; {}.", path.string(), kExpected));
}

// The first member whose name tells one JSON format from another.
WorkloadKind kind_of_json(const fs::path& path) {
  static const std::vector<std::string> kineto{
      "schemaVersion",       "deviceProperties", "traceEvents",   "distributedInfo", "traceName", "displayTimeUnit",
      "baseTimeNanoseconds", "trace_id",         "record_shapes", "profile_memory",  "with_stack"};
  static const std::vector<std::string> execution{"nodes", "schema"};
  static const std::vector<std::string> network{"model_type", "architectures", "_name_or_path", "hidden_size"};
  JsonSource json(path);
  while (const auto key = json.next_member()) {
    if (std::find(kineto.begin(), kineto.end(), *key) != kineto.end()) return WorkloadKind::kineto;
    if (std::find(network.begin(), network.end(), *key) != network.end()) return WorkloadKind::generated;
    if (std::find(execution.begin(), execution.end(), *key) != execution.end())
      throw InputError(
          fmt::format("{}: this is an ExecutionTrace, which has no times; give it with --et beside the "
                      "Kineto capture of the same run.",
                      path.string()));
  }
  throw InputError(fmt::format("{}: the JSON has no member \"traceEvents\"; {}.", path.string(), kExpected));
}

std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 24))
    out += std::isprint(static_cast<unsigned char>(c)) ? std::string(1, c)
                                                       : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

WorkloadKind kind_of_text(const fs::path& path) {
  std::array<char, 4096> head;
  const std::size_t size = ByteSource(path).read(head.data(), head.size());
  std::string_view text(head.data(), size);
  if (opens_inject(text)) return WorkloadKind::inject;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  if (text.empty()) throw InputError(fmt::format("{}: the file is empty; {}.", path.string(), kExpected));
  if (opens_capture(text)) return WorkloadKind::capture;
  if (text.front() == '{' || text.front() == '[') return kind_of_json(path);
  if (text.starts_with("kernel_id")) return WorkloadKind::g10;
  if (text.starts_with("tensor_id"))
    throw InputError(
        fmt::format("{}: this is the tensors file of a G10 workload; give its X.kernels.csv, the tensors "
                    "are found beside it.",
                    path.string()));
  throw InputError(fmt::format("{}: the file is of an unknown kind, it begins with \"{}\"; {}.", path.string(),
                               shown(text), kExpected));
}

// What the file holds, by category as it names them.
std::string events_line(const KinetoCapture& capture) {
  std::string line;
  for (const auto& [category, count] : capture.events_by_category)
    line += fmt::format("{}{} {}", line.empty() ? "Events in the file: " : ", ", count,
                        category.empty() ? "without category" : category);
  return line + ".";
}

// Names the machine file that stands for a device, and says so.
void name_machine(const std::string& device, Bytes memory, Trace& trace) {
  trace.machine = machine_for_device(device, memory);
  trace.notes.push_back(
      trace.machine.empty()
          ? fmt::format("No machine file has a device called {} with {} bytes: give --machine.", device, memory)
          : fmt::format("{} with {} bytes is the GPU of machine {}.", device, memory, trace.machine));
}

void find_machine(const KinetoCapture& capture, Trace& trace) {
  const auto found = std::find_if(capture.devices.begin(), capture.devices.end(),
                                  [&](const CapturedDevice& d) { return d.name == trace.machine; });
  if (found == capture.devices.end()) {
    trace.machine.clear();
    trace.notes.push_back("The file does not say which device it was captured on: give --machine.");
    return;
  }
  name_machine(found->name, found->memory, trace);
}

// With the traffic that the machine makes possible, where one is known.
Trace with_machine(Trace trace) {
  return trace.machine.empty() ? std::move(trace) : with_possible_traffic(trace, load_machine(trace.machine));
}

Workload load_kineto(const fs::path& path, const fs::path& execution_trace) {
  Workload workload;
  workload.kind = WorkloadKind::kineto;
  workload.files.push_back(path);
  const KinetoCapture capture = [&] {
    const ReadingProgress progress(path);
    return read_kineto(path);
  }();
  ImportedTrace imported = import_kineto(capture);
  find_machine(capture, imported.trace);
  if (!execution_trace.empty()) {
    require_readable(execution_trace);
    workload.files.push_back(execution_trace);
    join_execution_trace(imported, capture, read_execution_trace(execution_trace));
  }
  workload.trace = with_machine(std::move(imported.trace));
  workload.report.push_back(events_line(capture));
  return workload;
}

Workload load_inject(const fs::path& path, const std::string& step_range) {
  Workload workload;
  workload.kind = WorkloadKind::inject;
  workload.files.push_back(path);
  const InjectCapture capture = [&] {
    const ReadingProgress progress(path);
    return read_inject(path, {step_range});
  }();
  ImportedTrace imported = import_inject(capture);
  find_machine(capture.capture, imported.trace);
  workload.trace = with_machine(std::move(imported.trace));
  workload.report.push_back(events_line(capture.capture));
  return workload;
}

Workload load_capture(const fs::path& path) {
  const ReadingProgress progress(path);
  ImportedCapture step = import_captured_step(path);
  Workload workload;
  workload.kind = WorkloadKind::capture;
  workload.files.push_back(path);
  workload.trace = std::move(step.trace);
  workload.report = std::move(step.report);
  if (step.measured && !step.gpu.empty()) name_machine(step.gpu, step.gpu_bytes, workload.trace);
  return workload;
}

Workload load_generated(const fs::path& path) {
  GeneratedStep step = generated_step(path.string(), {});
  Workload workload;
  workload.kind = WorkloadKind::generated;
  workload.trace = std::move(step.trace);
  workload.files = std::move(step.files);
  return workload;
}

}  // namespace

std::string_view to_string(WorkloadKind kind) {
  constexpr std::string_view names[] = {"memwall trace", "Kineto capture",        "G10 workload",
                                        "captured step", "captured CUDA program", "generated step"};
  return names[static_cast<std::size_t>(kind)];
}

WorkloadKind kind_of_workload(const fs::path& path) {
  if (is_generated(path)) return WorkloadKind::generated;
  require_readable(path);
  if (is_trace_file(path)) return WorkloadKind::trace;
  if (is_run_file(path))
    throw InputError(fmt::format("{}: this is a run file, the result of `memwall run`; {}.", path.string(), kExpected));
  if (is_pickle(path))
    throw InputError(
        fmt::format("{}: this is a pickle; if it is a snapshot of torch.cuda.memory, `memwall memory {}` "
                    "explains it. It has no kernels to replay; {}.",
                    path.string(), path.string(), kExpected));
  return kind_of_text(path);
}

Workload load_workload(const fs::path& path, const fs::path& execution_trace, const std::string& step_range) {
  const WorkloadKind kind = kind_of_workload(path);
  if (!execution_trace.empty() && kind != WorkloadKind::kineto)
    throw UsageError(fmt::format("--et {}: an ExecutionTrace joins a Kineto capture; {} is a {}.",
                                 execution_trace.string(), path.string(), to_string(kind)));
  if (!step_range.empty() && kind != WorkloadKind::inject)
    throw UsageError(
        fmt::format("--step-range {}: steps by NVTX ranges are found in a captured CUDA program; {} is a {}.",
                    step_range, path.string(), to_string(kind)));
  if (kind == WorkloadKind::inject) return load_inject(path, step_range);
  if (kind == WorkloadKind::kineto) return load_kineto(path, execution_trace);
  if (kind == WorkloadKind::capture) return load_capture(path);
  if (kind == WorkloadKind::generated) return load_generated(path);
  Workload workload;
  workload.kind = kind;
  workload.files.push_back(path);
  if (kind == WorkloadKind::trace) {
    const ReadingProgress progress(path);
    workload.trace = read_trace(path);
  } else {
    workload.trace = import_g10(path);
    workload.files.push_back(tensors_beside(path));
  }
  return workload;
}

std::string hash_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: the file cannot be opened.", path.string()));
  std::vector<char> buffer(1 << 20);
  uLong sum = crc32(0, nullptr, 0);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), in.gcount() > 0)
    sum = crc32(sum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(in.gcount()));
  return fmt::format("crc32:{:08x}", sum);
}

}  // namespace memwall
