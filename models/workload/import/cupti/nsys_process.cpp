#include "models/workload/import/cupti/nsys_process.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/workload/import/cupti/nsys_tables.h"
#include "models/workload/import/timed/captured_processes.h"

namespace memwall {
namespace {

constexpr std::size_t kMostNamedDevices = 64;

// Every process by its global number, with its device work and the GPUs on which it ran.
std::map<std::int64_t, CapturedProcess> busy_processes(const SqliteDatabase& database) {
  std::map<std::pair<std::int64_t, std::uint32_t>, std::uint32_t> gpus;  // by process and CUDA's number
  database.read(nsys::kCudaDevices, {"gpuId", "cudaId", "pid"}, 0, [&](const SqliteRow& row) {
    if (row.has(0) && row.has(1)) gpus.try_emplace({row.number(2, 0), row.small(1, 0)}, row.small(0, 0));
  });
  std::map<std::int64_t, CapturedProcess> found;
  for (const std::string_view table : {nsys::kKernels, nsys::kCopies, nsys::kMemsets, nsys::kGraphs})
    database.read(table, {"start", "end", "globalPid", "deviceId"}, 2, [&](const SqliteRow& row) {
      const double start = static_cast<double>(row.number(0, 0)), end = static_cast<double>(row.number(1, 0));
      const std::int64_t global = nsys::process_of(row.number(2, 0));
      CapturedProcess& process = found[global];
      process.busy_ns += std::max(end - start, 0.0);
      const std::uint32_t cuda = row.small(3, 0);
      const auto gpu = gpus.find({nsys::number_of(global), cuda});
      if (process.devices.size() < kMostNamedDevices) process.devices.insert(gpu == gpus.end() ? cuda : gpu->second);
    });
  return found;
}

}  // namespace

NsysProcess choose_nsys_process(const SqliteDatabase& database, const std::filesystem::path& path,
                                std::optional<std::uint32_t> rank) {
  std::map<std::int64_t, CapturedProcess> found = busy_processes(database);
  if (found.empty())
    database.read(nsys::kCalls, {"globalTid"}, 0,
                  [&](const SqliteRow& row) { ++found[nsys::process_of(row.number(0, 0))].busy_ns; });
  if (found.empty()) return {};
  std::vector<CapturedProcess> processes;
  std::vector<std::int64_t> globals;
  for (auto& [global, process] : found) {
    process.id = nsys::number_of(global);
    globals.push_back(global);
    processes.push_back(std::move(process));
  }
  const ProcessChoice choice = choose_process(path, "report", processes, rank);
  return {globals[choice.process], choice.sentence};
}

}  // namespace memwall
