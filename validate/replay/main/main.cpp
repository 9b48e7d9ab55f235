// memwall-replay: executes a schedule on real hardware and writes down when everything happened.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "sim/files/temporary_name.h"
#include "sim/error.h"
#include "sim/presentable.h"
#include "validate/measurement/flags.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/execution_summary.h"
#include "validate/replay/executor_places.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kUnreadable = 6 };

const std::vector<FlagDescription> kFlags = {
    {"--backend", "NAME", "cuda or host (default: cuda where a GPU can be used, else host)"},
    {"--passes", "N", "timed passes, after one in which contents are checked (default 5)"},
    {"--seconds", "S", "no further pass begins after this (default 60)"},
    {"--capacity", "SIZE", "device memory that may be used, e.g. 512MiB (default: all; host: 2 GiB)"},
    {"--collectives", "HOW",
     "stand-in: a kernel that lasts as long as the schedule says (default); nccl: not implemented"},
    {"--scratch", "DIR", "folder of the file that stands for NVMe (default: that of the output)"},
    {"--rate-host-to-device", "R", "host back end: bytes per second of copies to the device (default 1e9)"},
    {"--rate-device-to-host", "R", "host back end: bytes per second of copies from the device (default 1e9)"},
    {"--rate-within-device", "R", "host back end: bytes per second of copies within the device (default 2e9)"},
    {"--rate-file-read", "R", "host back end: bytes per second from the file (default 5e8; 0 = as fast as it goes)"},
    {"--rate-file-write", "R", "host back end: bytes per second to the file (default 5e8; 0 = as fast as it goes)"},
    {"-o", "FILE", "the execution, X.execution.csv"},
};

void print_help() {
  std::printf(
      "memwall-replay: executes a schedule on real hardware: real allocations, copies, files and kernels, in the\n"
      "schedule's order and with its events. Contents are checked in a first pass; the following ones are timed.\n\n"
      "usage: memwall-replay X.schedule [flags] -o X.execution.csv\n\n%s\n"
      "exit codes: 0 done, 1 the hardware or a content check failed, 2 wrong usage or it does not fit, 6 unreadable\n"
      "input\n",
      flags_help(kFlags).c_str());
}

// The output is not written before everything else is done; what makes it impossible is said before.
fs::path output_path(const Flags& flags, const fs::path& input) {
  const fs::path path = flags.text("-o");
  if (path.empty()) throw UsageError("there is no output; expected -o X.execution.csv.");
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw UsageError("-o " + path.string() + ": there is no folder \"" + folder.string() + "\"; expected one.");
  if (fs::is_directory(path, error))
    throw UsageError("-o " + path.string() + ": this is a folder; expected the name of a file to write.");
  if (fs::exists(path, error) && !fs::is_regular_file(path, error))
    throw UsageError("-o " + path.string() + ": this is no ordinary file; expected the name of a file to write.");
  if (fs::equivalent(path, input, error))
    throw UsageError("-o " + path.string() + ": the output would replace the schedule; expected another name.");
  return path;
}

fs::path scratch_folder(const Flags& flags, const fs::path& output) {
  const fs::path beside = output.has_parent_path() ? output.parent_path() : fs::path(".");
  const fs::path folder = flags.text("--scratch", beside.string());
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw UsageError("--scratch " + folder.string() + ": there is no such folder; expected one.");
  return folder;
}

std::unique_ptr<Backend> host_backend(const Flags& flags, const Trace& schedule, const fs::path& scratch) {
  constexpr double kSlowest = 1e6, kFastest = 1e13;
  HostBackendSettings settings;
  settings.device_capacity =
      static_cast<Bytes>(flags.bytes("--capacity", static_cast<std::uint64_t>(settings.device_capacity)));
  settings.host_to_device = flags.number("--rate-host-to-device", settings.host_to_device, kSlowest, kFastest);
  settings.device_to_host = flags.number("--rate-device-to-host", settings.device_to_host, kSlowest, kFastest);
  settings.within_device = flags.number("--rate-within-device", settings.within_device, kSlowest, kFastest);
  settings.file_read = flags.number("--rate-file-read", settings.file_read, 0, kFastest);
  settings.file_write = flags.number("--rate-file-write", settings.file_write, 0, kFastest);
  settings.scratch = scratch;
  settings.file_bytes = std::max<Bytes>(MiB(1), plan_fixed_places(schedule).file.reserved);
  return make_host_backend(settings);
}

std::unique_ptr<Backend> cuda_backend(const Flags& flags, const Trace& schedule, const fs::path& scratch) {
  for (const char* name : {"--rate-host-to-device", "--rate-device-to-host", "--rate-within-device", "--rate-file-read",
                           "--rate-file-write"})
    if (flags.given(name))
      throw UsageError(std::string(name) + ": the back end cuda copies as fast as it can; expected --backend host.");
  CudaBackendSettings settings;
  settings.scratch = scratch;
  settings.file_bytes = std::max<Bytes>(MiB(1), plan_fixed_places(schedule).file.reserved);
  return make_cuda_backend(settings);
}

// Throws UsageError where collectives are to be executed with NCCL.
void require_stand_ins(const Flags& flags, const Trace& schedule) {
  if (flags.choice("--collectives", "stand-in", {"stand-in", "nccl"}) == "stand-in") return;
  const std::string found = stand_ins(schedule);
  throw UsageError(
      "--collectives nccl: executing collectives with NCCL on several GPUs is not implemented; expected "
      "stand-in, a kernel on one GPU that lasts as long as the schedule says" +
      (found.empty() ? "." : " (" + found + ")."));
}

// "cuda" or "host"; says so where nobody chose.
std::string chosen_backend(const Flags& flags) {
  const std::string asked = flags.choice("--backend", "", {"cuda", "host"});
  if (!asked.empty()) return asked;
  const std::string reason = cuda_unavailable_reason();
  std::fprintf(stderr, "memwall-replay: back end %s\n", reason.empty() ? "cuda" : ("host: " + reason).c_str());
  return reason.empty() ? "cuda" : "host";
}

int run(const Flags& flags) {
  if (flags.help()) return print_help(), kDone;
  if (flags.arguments().size() != 1)
    throw UsageError("found " + std::to_string(flags.arguments().size()) +
                     " files to execute; expected one: memwall-replay X.schedule -o X.execution.csv.");
  const fs::path input = flags.arguments().front();
  const fs::path output = output_path(flags, input);
  const fs::path scratch = scratch_folder(flags, output);
  ExecutionSettings settings;
  settings.passes = static_cast<std::uint32_t>(flags.count("--passes", settings.passes, 1, 1000));
  settings.seconds = flags.number("--seconds", settings.seconds, 0, 1e6);
  settings.progress = [](const std::string& what) { std::fprintf(stderr, "memwall-replay: %s\n", what.c_str()); };
  if (flags.given("--capacity")) settings.capacity = static_cast<Bytes>(flags.bytes("--capacity", 0));
  const Trace schedule = read_schedule(input, &settings.contents);
  require_stand_ins(flags, schedule);
  const std::string name = chosen_backend(flags);
  const std::unique_ptr<Backend> backend =
      name == "cuda" ? cuda_backend(flags, schedule, scratch) : host_backend(flags, schedule, scratch);
  const Execution execution = execute(schedule, *backend, settings);
  write_execution(execution, output);
  std::printf("%s on %s\n%s", schedule.name.c_str(), backend->name().c_str(),
              execution_summary(schedule, execution).c_str());
  return kDone;
}

int complain(const std::exception& error, ExitCode code) {
  std::fprintf(stderr, "memwall-replay: %s\n", presentable(error.what()).c_str());
  return code;
}

}  // namespace
}  // namespace memwall

int main(int argc, char** argv) {
  memwall::prepare_program();
  using namespace memwall;
  try {
    return run(Flags(argc, argv, kFlags));
  } catch (const UsageError& error) {
    return complain(error, kUsage);
  } catch (const InputError& error) {
    return complain(error, kUnreadable);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "memwall-replay: there is not enough memory for the schedule itself.\n");
    return kFailed;
  } catch (const std::exception& error) {
    return complain(error, kFailed);
  }
}
