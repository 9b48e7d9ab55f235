#include "study/observation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "models/workload/import/kineto/kineto_reader.h"
#include "sim/error.h"
#include "sim/trace/step_count.h"
#include "study/memory_study.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

const char *const kSnapshot = "memory snapshot", *const kProfile = "Kineto capture";

MeasuredStep of_snapshot(const std::filesystem::path& file, Watch* watch) {
  MemoryQuestion question;
  question.snapshot = file;
  const MemoryStudy study = study_memory(question, watch);
  return {kSnapshot, study.recorded.peak_reserved, study.recorded.peak.allocated_bytes, {}, 0};
}

struct Peak {
  Bytes reserved = 0, allocated = 0;
};

Peak peak_of(const TimedCapture& capture) {
  std::map<std::int16_t, Peak> devices;
  for (const CapturedMemory& event : capture.memory) {
    if (!event.on_device()) continue;
    Peak& peak = devices[event.device];
    peak.reserved = std::max(peak.reserved, event.total_reserved);
    peak.allocated = std::max(peak.allocated, event.total_allocated);
  }
  Peak most;
  for (const auto& [device, peak] : devices)
    if (peak.reserved > most.reserved || (most.reserved == 0 && peak.allocated > most.allocated)) most = peak;
  return most;
}

// As a simulated step is counted: from its beginning to the next one's; the last to the end of its work on the device.
void add_steps(MeasuredStep& measured, const TimedCapture& capture) {
  std::vector<const CapturedOperator*> steps;
  for (const CapturedOperator& op : capture.operators)
    if (capture.text(op.name).starts_with("ProfilerStep#")) steps.push_back(&op);  // files of 2021: no annotation
  if (steps.empty()) return;
  Time end = steps.back()->end();
  for (const CapturedDeviceOp& op : capture.device_ops) end = std::max(end, op.end());
  measured.steps = steps.size();
  measured.step_time = (end - steps.front()->start) / static_cast<std::int64_t>(steps.size());
}

MeasuredStep of_profile(const std::filesystem::path& file, Watch* watch) {
  const auto reading = watch != nullptr ? watch->reading(file) : nullptr;
  const TimedCapture capture = read_kineto(file);
  const Peak peak = peak_of(capture);
  MeasuredStep measured{kProfile, peak.reserved, peak.allocated, {}, 0};
  add_steps(measured, capture);
  if (measured.steps == 0 && peak.reserved == 0 && peak.allocated == 0)
    throw UsageError(
        fmt::format("--observed {}: it has neither steps (ProfilerStep#N) nor memory events; expected a "
                    "profile of torch.profiler with schedule and step(), or with profile_memory=True.",
                    file.string()));
  return measured;
}

MeasuredStep simulated_step(Study& study, const Scenario& scenario) {
  const Run run = study.run(scenario, {.record = false}).run;
  const TierResult& device = run.result.tiers[static_cast<std::size_t>(run.machine.tier("hbm"))];
  return {"simulation", device.peak_reserved, device.peak_allocated, mean_step(run), step_count(*run.trace)};
}

}  // namespace

Bytes Observation::more_memory() const {
  if (measured.peak_reserved > 0) return measured.peak_reserved - simulated.peak_reserved;
  return measured.peak_allocated > 0 ? measured.peak_allocated - simulated.peak_allocated : 0;
}

double Observation::time_ratio() const {
  if (measured.step_time.count() <= 0 || simulated.step_time.count() <= 0) return 1;
  return to_seconds(measured.step_time) / to_seconds(simulated.step_time);
}

MeasuredStep read_measured_step(const std::filesystem::path& file, Watch* watch) {
  const std::string kind = kind_of_workload(file);
  if (kind == kSnapshot) return of_snapshot(file, watch);
  if (kind == kProfile) return of_profile(file, watch);
  throw UsageError(
      fmt::format("--observed {}: this is {} {}; expected what was measured: a memory snapshot "
                  "(torch.cuda.memory._dump_snapshot) or a profile of torch.profiler.",
                  file.string(), kind.find_first_of("AEIOUaeiou") == 0 ? "an" : "a", kind));
}

Observation observe(Study& study, const Scenario& scenario, const std::filesystem::path& file, Watch* watch) {
  return {read_measured_step(file, watch), simulated_step(study, scenario)};
}

}  // namespace memwall
