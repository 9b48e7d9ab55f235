#include "tests/support/viewer_captures.h"

#include <fmt/format.h>

#include <map>

#include "gui/model/residency_history.h"
#include "gui/model/run_analysis.h"
#include "models/hw/machine_file.h"
#include "models/workload/import/cupti/nsys_import.h"
#include "models/workload/import/execution_trace/timed_step.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/ranks/rank_join.h"
#include "models/workload/import/snapshot/snapshot_step.h"
#include "tests/support/scratch_folder.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall::gui {
namespace {

Trace dlrm(const std::filesystem::path& traces) {
  std::vector<ImportedStep> steps;
  for (int r = 0; r < 4; ++r) {
    const TimedCapture file = read_kineto(traces / "dlrm_8xv100" / fmt::format("rank{}.kineto.json.gz", r));
    steps.push_back(step_of(import_timed_capture(file), file));
  }
  return joined_steps(std::move(steps)).trace;
}

}  // namespace

void PrintTo(const ViewerCapture& capture, std::ostream* out) { *out << capture.name; }

const std::vector<ViewerCapture>& viewer_captures() {
  static const std::vector<ViewerCapture> all{
      {"vgg13", "h100-sxm-80gb",
       [](const std::filesystem::path& t) { return import_kineto(t / "kineto/vgg13_h100_bs512_train.json", {}).trace; },
       "CONV"},
      {"resnet50", "v100-sxm2-32gb",
       [](const std::filesystem::path& t) {
         return import_kineto(t / "kineto/resnet50_v100_bs32_2021.json.gz", {}).trace;
       },
       "gemm"},
      {"dlrm", "v100-sxm2-32gb", dlrm, "nccl"},
      {"nsys", "a100-sxm-40gb",
       [](const std::filesystem::path& t) { return import_nsys(t / "nsys/lm_small_train_a100.sqlite", {}).trace; },
       "GeMM"},
      {"snapshot", "a100-sxm-40gb",
       [](const std::filesystem::path& t) {
         return import_snapshot(t / "snapshots/lm_small_ctx100_train_from_empty.pickle").trace;
       },
       "storage 7"},
  };
  return all;
}

const OpenedCapture& opened_capture(const ViewerCapture& capture) {
  static const ScratchFolder folder;
  static std::map<std::string, OpenedCapture> all;
  const auto found = all.find(capture.name);
  if (found != all.end()) return found->second;
  const Trace trace = capture.import(*shared_data() / "traces");
  OpenedCapture made;
  made.run = std::make_shared<const memwall::Run>(simulate_and_record(trace, load_machine(capture.machine), {}));
  const auto path = folder / fmt::format("{}.h5", capture.name);
  write_run(*made.run, path);
  made.shown = open_in_viewer(path.string());
  made.shown.history = ResidencyHistory::load(*made.shown.source, {});
  made.shown.analysis = analyse(*made.shown.source, {});
  return all.emplace(capture.name, std::move(made)).first->second;
}

}  // namespace memwall::gui
