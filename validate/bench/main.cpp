// memwall-bench: measures the computer that it runs on.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/files/temporary_name.h"
#include "sim/presentable.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/computer_environment.h"
#include "validate/bench/fork_server.h"
#include "validate/bench/results_table.h"
#include "validate/measurement/flags.h"
#include "validate/measurement/results_file.h"
#include "validate/measurement/scratch_area.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/host_settings.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

const std::vector<FlagDescription> kFlags = {
    {"--list", "", "name, place and purpose of every benchmark; measures nothing"},
    {"--filter", "TEXT", "only those whose name contains TEXT; may be given several times", true},
    {"--backend", "NAME",
     "cuda, host or none: the last measures the computer only (default: cuda where a GPU can be used, else host)"},
    {"--seconds", "S", "no further case begins after this (default 120)"},
    {"--per-case", "S", "time for the samples of one case (default 0.3)"},
    {"--largest", "SIZE", "of a buffer or a file, e.g. 256MiB (default 1GiB)"},
    {"--scratch", "DIR", "where files are measured, in a folder of their own (default: the system's temporary folder)"},
    {"--oversubscribe", "",
     "ask for more managed memory than the device has free, to see what eviction costs; can hang a shared device"},
    {"-o", "DIR", "folder for results.csv and results.json"},
};

void print_help() {
  std::printf(
      "memwall-bench: measures the computer that it runs on: copies, kernels, calls, memory and files. Data that\n"
      "arrive wrong make a row \"failed\"; what the machine lacks is \"not_applicable\".\n\n"
      "usage: memwall-bench [flags] [-o DIR]\n\n%s\n"
      "exit codes: 0 done, 1 a row failed, 2 wrong usage\n",
      flags_help(kFlags).c_str());
}

BenchmarkPlace place_of(const std::string& backend) {
  return backend == "cuda" ? BenchmarkPlace::cuda : BenchmarkPlace::host;
}

// The back end that was asked for, or the one that can be used.
std::string chosen_backend(const Flags& flags) {
  const std::string asked = flags.choice("--backend", "", {"cuda", "host", "none"});
  const std::string reason = asked.empty() || asked == "cuda" ? cuda_unavailable_reason() : "";
  if (asked == "cuda" && !reason.empty()) throw UsageError("--backend cuda: " + reason);
  if (!asked.empty()) return asked;
  if (reason.empty()) return "cuda";
  std::fprintf(stderr, "memwall-bench: the host back end stands in for a GPU: %s\n", reason.c_str());
  return "host";
}

// A benchmark is run if its name contains one of the filters; each must fit something.
std::vector<const BenchmarkInfo*> chosen_benchmarks(const std::vector<BenchmarkPlace>& places,
                                                    const std::vector<std::string>& filters) {
  const auto fits = [](const BenchmarkInfo& info, const std::string& filter) {
    return info.name.find(filter) != std::string::npos;
  };
  std::vector<const BenchmarkInfo*> chosen;
  std::vector<std::string> names;
  for (const BenchmarkInfo* info : benchmarks_of(places)) {
    names.push_back(info->name);
    if (filters.empty() || std::any_of(filters.begin(), filters.end(), [&](const auto& f) { return fits(*info, f); }))
      chosen.push_back(info);
  }
  for (const std::string& filter : filters) {
    if (std::any_of(chosen.begin(), chosen.end(), [&](const auto* info) { return fits(*info, filter); })) continue;
    const std::string nearest = nearest_name(filter, names);
    throw UsageError("--filter \"" + filter + "\": no benchmark of this back end has such a name" +
                     (nearest.empty() ? "" : " (nearest: " + nearest + ")") + "; --list lists them.");
  }
  return chosen;
}

void list_benchmarks(const Flags& flags) {
  std::vector<BenchmarkPlace> places{BenchmarkPlace::computer, BenchmarkPlace::host, BenchmarkPlace::cuda};
  if (flags.given("--backend")) {
    const std::string backend = flags.choice("--backend", "", {"cuda", "host", "none"});
    places.resize(1);
    if (backend != "none") places.push_back(place_of(backend));
  }
  const auto chosen = chosen_benchmarks(places, flags.all("--filter"));
  std::size_t width = 0;
  for (const BenchmarkInfo* info : chosen) width = std::max(width, info->name.size());
  for (const BenchmarkInfo* info : chosen)
    std::printf("%-*s  %-8s  %s\n", static_cast<int>(width), info->name.c_str(), to_string(info->place).c_str(),
                info->sentence.c_str());
}

Environment environment_of(const std::string& backend, const fs::path& scratch) {
  Environment environment = computer_environment(scratch);
  environment.emplace_back("memwall", MEMWALL_VERSION);
  environment.emplace_back("backend", backend);
  if (value_of(environment, "scratch.file_system") == "tmpfs")
    std::fprintf(stderr,
                 "memwall-bench: the scratch folder lies in memory (tmpfs), and so do the files that stand for "
                 "a device; --scratch chooses another.\n");
  if (backend == "cuda") append_missing(environment, make_cuda_backend({})->environment());
  if (backend == "host") {
    HostBackendSettings settings;
    settings.scratch = scratch;
    append_missing(environment, describe(settings));
  }
  return environment;
}

// A row that no reader would take is a failed one; the others are kept.
void refuse_nonsense(MeasurementSet& set) {
  for (Measurement& m : set.measurements) {
    const bool finite = std::isfinite(m.median) && std::isfinite(m.low) && std::isfinite(m.high) &&
                        std::isfinite(m.bytes) && std::isfinite(m.flops);
    if (finite && m.low >= 0 && m.low <= m.median && m.median <= m.high && m.bytes >= 0 && m.flops >= 0) continue;
    char text[160];
    std::snprintf(text, sizeof text, "figures that make no sense: low %g, median %g, high %g, %g bytes, %g flops",
                  m.low, m.median, m.high, m.bytes, m.flops);
    m.status = MeasurementStatus::failed;
    m.note = text;
    m.low = m.median = m.high = m.bytes = m.flops = 0;
  }
}

int report_failures(const MeasurementSet& set) {
  int failures = 0;
  for (const Measurement& m : set.measurements) {
    if (m.status != MeasurementStatus::failed) continue;
    ++failures;
    std::fprintf(stderr, "memwall-bench: failed: %s %s: %s\n", m.benchmark.c_str(), parameters_text(m).c_str(),
                 m.note.c_str());
  }
  return failures == 0 ? kDone : kFailed;
}

BenchmarkSettings settings_of(const Flags& flags, const fs::path& scratch) {
  BenchmarkSettings settings;
  settings.scratch = scratch;
  settings.largest_file = settings.largest_buffer =
      static_cast<std::size_t>(flags.bytes("--largest", settings.largest_buffer));
  settings.oversubscribe = flags.given("--oversubscribe");
  settings.seconds_per_case = flags.number("--per-case", settings.seconds_per_case, 0, 3600);
  return settings;
}

int measure(const Flags& flags) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                             std::chrono::duration<double>(flags.number("--seconds", 120, 0, 1e6)));
  // Before CUDA is asked for and threads run: what it forks must know of neither.
  const auto fork_server = std::make_shared<ForkServer>();
  const std::string backend = chosen_backend(flags), folder = flags.text("-o");
  std::vector<BenchmarkPlace> places{BenchmarkPlace::computer};
  if (backend != "none") places.push_back(place_of(backend));
  const std::vector<std::string> filters = flags.all("--filter");
  const std::size_t count = chosen_benchmarks(places, filters).size();
  const ScratchArea scratch(flags.text("--scratch", ""), "memwall-bench");
  BenchmarkSettings settings = settings_of(flags, scratch.path());
  settings.fork_server = fork_server;
  const Environment environment = environment_of(backend, scratch.path());
  // Written from the first benchmark on: a device that hangs takes no more with it than its own row.
  const auto keep = [&](MeasurementSet set) {
    refuse_nonsense(set);
    set.environment = environment;
    if (!folder.empty()) write_results(set, folder);
    return set;
  };
  keep({});  // a folder that cannot be written is found before anything is measured
  std::size_t number = 0;
  const auto progress = [&](const std::string& name) {
    std::fprintf(stderr, "[%zu/%zu] %s\n", ++number, count, name.c_str());
  };
  const MeasurementSet set = keep(run_benchmarks(places, filters, settings, deadline, progress, keep));
  std::fputs(results_table(set).c_str(), stdout);
  return report_failures(set);
}

int run_program(int argc, char** argv) {
  const Flags flags(argc, argv, kFlags);
  if (flags.help()) return print_help(), kDone;
  if (!flags.arguments().empty())
    throw UsageError("found the argument \"" + flags.arguments().front() + "\"; expected flags only.");
  if (flags.given("--list")) return list_benchmarks(flags), kDone;
  return measure(flags);
}

}  // namespace
}  // namespace memwall

int main(int argc, char** argv) {
  memwall::prepare_program();
  try {
    return memwall::run_program(argc, argv);
  } catch (const memwall::UsageError& error) {
    std::fprintf(stderr, "memwall-bench: %s\nTry `memwall-bench --help`.\n",
                 memwall::presentable(error.what()).c_str());
    return memwall::kUsage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "memwall-bench: memory of this computer is exhausted.\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memwall-bench: %s\n", memwall::presentable(error.what()).c_str());
  }
  return memwall::kFailed;
}
