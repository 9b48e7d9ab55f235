#include "cli/live/live_validation.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/schedule_tables.h"
#include "cli/print/table_cells.h"
#include "cli/terminal.h"
#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/files/data_folder.h"
#include "study/study.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/computer_environment.h"
#include "validate/bench/fork_server.h"
#include "validate/calibrate/calibrate.h"
#include "validate/measurement/results_file.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/executor_places.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

// The name of the machine where no output folder gives one.
constexpr const char* kNameless = "this-computer";

struct LiveCase {
  const char* name;
  std::vector<std::string> policies;
};
const std::vector<LiveCase>& live_cases() {
  static const std::vector<LiveCase> cases{{"resident", {}},
                                           {"offload_host", {"offload:what=activations,to=host"}},
                                           {"offload_file", {"offload:what=activations,to=nvme,prefetch=2"}},
                                           {"checkpoint", {"checkpoint:mode=full"}}};
  return cases;
}

// A computer that stands in for a GPU: kernels of about this long together, in about so much memory. Enough for
// times to stand out of the noise, little enough for a few passes in a minute.
constexpr double kKernelSeconds = 0.7;
constexpr double kDeviceBytes = 300e6;

void tell(const std::string& what) { print_error("memwall validate: {}\n", what); }

BenchmarkPlace place_of(const std::string& backend) {
  if (backend == "host") return BenchmarkPlace::host;
  if (backend != "cuda")
    throw UsageError(
        fmt::format("--backend {}: expected host or cuda.{}", backend, did_you_mean(backend, {"host", "cuda"})));
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty())
    throw UsageError("--backend cuda: " + reason);
  return BenchmarkPlace::cuda;
}

std::unique_ptr<Backend> make_backend(const std::string& backend, const fs::path& scratch, Bytes file_bytes) {
  // Room for whole blocks of direct I/O, and a file of one block at least.
  const Bytes room = file_bytes + MiB(16);
  if (backend == "cuda") {
    CudaBackendSettings settings;
    settings.scratch = scratch;
    settings.file_bytes = room;
    return make_cuda_backend(settings);
  }
  HostBackendSettings settings;  // as the benchmarks have it
  settings.scratch = scratch;
  settings.file_bytes = room;
  return make_host_backend(settings);
}

std::string gzipped_text(const std::string& text) {
  z_stream stream{};
  // 16 + 15: a gzip header, which zlib writes without name and date: same text, same bytes.
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + 15, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot be started.");
  std::string packed(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (code != Z_STREAM_END) throw std::runtime_error("zlib did not finish a text.");
  return packed;
}

void write_file(const fs::path& path, const std::string& content) {
  write_output(path.string(), [&](std::ostream& out) { out << content; });
}

// As memwall-bench writes it.
Environment environment_of(const std::string& backend, const fs::path& scratch) {
  Environment environment = computer_environment(scratch);
  environment.emplace_back("memwall", MEMWALL_VERSION);
  environment.emplace_back("backend", backend);
  append_missing(environment, make_backend(backend, scratch, MiB(1))->environment());
  return environment;
}

MeasurementSet measure(const LiveSettings& s, const std::shared_ptr<ForkServer>& fork_server, const fs::path& scratch,
                       const fs::path& folder) {
  const BenchmarkPlace place = place_of(s.backend);
  const Environment environment = environment_of(s.backend, scratch);
  BenchmarkSettings settings;
  settings.scratch = scratch;
  settings.fork_server = fork_server;
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(s.seconds));
  MeasurementSet set = run_benchmarks({BenchmarkPlace::computer, place}, {}, settings, deadline,
                                      [](const std::string& name) { tell("measuring " + name); });
  set.environment = environment;
  write_results(set, folder);
  return set;
}

// Time of all kernels together, by the machine file.
double kernel_seconds(const Trace& schedule, const Machine& machine, double flops) {
  double sum = 0;
  for (Op op : schedule.ops) {
    if (op.kind != OpKind::kernel) continue;
    op.flops *= flops;
    sum += to_seconds(kernel_duration(machine, op));
  }
  return sum;
}

SharedTrace step_under(const std::string& workload, const std::vector<std::string>& policies) {
  return Study().prepare({.step = {workload}, .policies = policies}).trace;
}

// A GPU takes the step as it is, where it fits. Two figures at most, so that what was done can be told.
ScheduleScale choose_scale(const Trace& step, const Machine& machine, const std::string& backend) {
  ScheduleScale scale;
  const DeviceNeeds needs = device_needs(schedule_of(step));
  const double most =
      backend == "host" ? kDeviceBytes : 0.8 * static_cast<double>(machine.tiers[machine.tier("hbm")].usable());
  while (scale.bytes * static_cast<double>(needs.reserved) > most) scale.bytes /= 2;
  if (backend != "host") return scale;
  const Trace schedule = schedule_of(step, scale);
  double low = 1e-9, high = 1;
  if (kernel_seconds(schedule, machine, high) <= kKernelSeconds) return scale;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (kernel_seconds(schedule, machine, middle) > kKernelSeconds ? high : low) = middle;
  }
  scale.flops = std::stod(fmt::format("{:.1e}", low));
  return scale;
}

// What else runs is measured too.
void tell_load() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1 || load < 0.5) return;
  tell(
      fmt::format("the load average of this computer was {:.1f} at the start: what else runs is measured too; "
                  "expected a quiet one",
                  load));
}

// What is missing because no time was left is a matter of the command line, not of a file.
Calibration calibrated_in_time(const MeasurementSet& set, const std::string& name) {
  try {
    return calibrate(set, {name, ""});
  } catch (const InputError& error) {
    const bool hurried = std::any_of(set.measurements.begin(), set.measurements.end(),
                                     [](const Measurement& m) { return m.note == "no time was left"; });
    if (!hurried) throw;
    throw UsageError(fmt::format("{} Not all benchmarks found time: give more --seconds.", error.what()));
  }
}

std::string shipped_sample() { return data_folder(nullptr, "samples", MEMWALL_SAMPLES) / "gpt_124m.mwt"; }

class LiveSession {
 public:
  LiveSession(const LiveSettings& settings, std::shared_ptr<ForkServer> fork_server, LiveResult& result)
      : settings_(settings),
        fork_server_(std::move(fork_server)),
        result_(result),
        scratch_(result.scratch->path() / "files") {
    fs::create_directories(scratch_);
  }

  void run() {
    const std::string workload = settings_.workload.empty() ? shipped_sample() : settings_.workload;
    place_of(settings_.backend);
    const Trace step = step_under(workload, {});  // a wrong name is told before minutes of measuring
    const MeasurementSet set = measure(settings_, fork_server_, scratch_, result_.folder);
    const Machine machine = calibrated(set);
    const ScheduleScale scale = choose_scale(step, machine, settings_.backend);
    result_.notes.push_back(fmt::format("{} with bytes times {}, FLOPs times {}",
                                        fs::path(workload).filename().string(), plain_number(scale.bytes),
                                        plain_number(scale.flops)));
    fs::create_directories(result_.folder / "replay");
    for (const LiveCase& c : live_cases()) execute_case(c, workload, scale);
  }

 private:
  Machine calibrated(const MeasurementSet& set) {
    const Calibration calibration = calibrated_in_time(set, result_.folder.filename().string());
    result_.notes.insert(result_.notes.end(), calibration.notes.begin(), calibration.notes.end());
    const fs::path file = result_.folder / "machine.textproto";
    write_file(file, calibration.text);
    return load_machine(file.string());
  }

  void execute_case(const LiveCase& c, const std::string& workload, const ScheduleScale& scale) {
    const std::string name = fs::path(workload).stem().string() + "." + c.name;
    try {
      Trace schedule = schedule_of(step_under(workload, c.policies), scale);
      schedule.name = name;
      const std::string text = schedule_text(schedule);
      // A schedule without an execution is a row "not measured yet".
      write_file(result_.folder / "replay" / (name + ".schedule.gz"), gzipped_text(text));
      fs::remove(result_.folder / "replay" / (name + ".execution.csv.gz"));
      const auto backend = make_backend(settings_.backend, scratch_, plan_fixed_places(schedule).file.reserved);
      ExecutionSettings settings;
      settings.progress = [&](const std::string& what) { tell(fmt::format("{}: {}", name, what)); };
      // As it will be read: the same text, the same schedule.
      const Execution execution = execute(parse_schedule(text, name), *backend, settings);
      write_file(result_.folder / "replay" / (name + ".execution.csv.gz"), gzipped_text(execution_text(execution)));
    } catch (const UsageError& error) {
      result_.complete = false;
      result_.notes.push_back(fmt::format("{} was not executed: {}", name, error.what()));
    }
  }

  const LiveSettings& settings_;
  std::shared_ptr<ForkServer> fork_server_;
  LiveResult& result_;
  fs::path scratch_;
};

}  // namespace

LiveResult measure_and_execute(const LiveSettings& settings) {
  LiveResult result;
  tell_load();
  // Before CUDA is asked for and threads run: what it forks must know of neither.
  auto fork_server = std::make_shared<ForkServer>();
  result.scratch = std::make_shared<ScratchArea>(settings.scratch, "memwall");
  if (settings.output.empty()) {
    result.folder = result.scratch->path() / kNameless;
    fs::create_directories(result.folder);
  } else {
    const fs::path folder = settings.output;
    result.folder = folder.has_filename() ? folder : folder.parent_path();
    std::error_code error;
    fs::create_directories(result.folder, error);
    if (!fs::is_directory(result.folder))
      throw UsageError(fmt::format("{}: the folder cannot be made ({}).", result.folder.string(), error.message()));
  }
  LiveSession(settings, std::move(fork_server), result).run();
  return result;
}

Table live_table(const std::vector<ValidationRow>& rows) {
  std::vector<const ValidationRow*> steps;
  for (const ValidationRow& row : rows)
    if (row.rung == "replay" && row.metric == "step time" && row.status != ValidationStatus::not_measured)
      steps.push_back(&row);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const ValidationRow* a, const ValidationRow* b) { return a->measured < b->measured; });
  Table table{.name = "step_times",
              .title = "Step time of each schedule, fastest as measured first",
              .columns = {"schedule", "measured_s", "predicted_s", "error", "predicted_rank"},
              .headings = {"schedule", "measured", "predicted", "error", "predicted rank"},
              .rows = {}};
  for (const ValidationRow* row : steps) {
    const auto rank = 1 + std::count_if(steps.begin(), steps.end(),
                                        [&](const ValidationRow* other) { return other->predicted < row->predicted; });
    table.rows.push_back({cell(row->case_name), time_cell(row->measured), time_cell(row->predicted),
                          number_cell(fmt::format("{:+.1f} %", row->error() * 100), plain_number(row->error())),
                          number_cell(std::to_string(rank), std::to_string(rank))});
  }
  return table;
}

}  // namespace memwall
