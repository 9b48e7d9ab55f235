#include "cli/verbs/plan_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/print/layout_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "sim/error.h"
#include "study/device_budget.h"
#include "study/layout/layout_search.h"

namespace memwall {
namespace {

constexpr int kNothingFits = 3;

// The names of the settings behind a workload's name: those are not searched.
std::vector<std::string> settings_said(const std::string& step) {
  std::vector<std::string> names;
  const std::size_t colon = step.find(':');
  if (colon == std::string::npos) return names;
  for (std::size_t at = colon + 1; at < step.size();) {
    const std::size_t end = std::min(step.find(',', at), step.size());
    const std::string word = step.substr(at, end - at);
    const std::string path = word.substr(0, word.find('='));
    names.push_back(path.substr(path.find('.') == std::string::npos ? 0 : path.find('.') + 1));
    at = end + 1;
  }
  return names;
}

LayoutRequest request_of(const LayoutOptions& o) {
  if (o.files.size() != 1 || !names_workload(o.files.front()))
    throw UsageError(
        "--gpus without a framework's configuration looks for the layout of a generated job; expected the name of one "
        "workload, such as gpt3-175b (memwall generate --list).");
  if (o.machine.empty()) throw UsageError("--gpus needs --machine, the GPU and its network.");
  if (o.global_batch == 0) throw UsageError("--gpus needs --global-batch, the sequences of one step of the whole job.");
  LayoutRequest request;
  request.job = load_training_job(o.files.front());
  request.fixed = settings_said(o.files.front());
  request.machine = std::make_shared<const Machine>(load_machine(o.machine, o.settings));
  request.gpus = o.gpus;
  request.global_batch = o.global_batch;
  const int tier = request.machine->tier("hbm");
  if (tier < 0) throw UsageError(fmt::format("Machine '{}' has no memory 'hbm'.", request.machine->name));
  const Bytes whole = request.machine->tiers[static_cast<std::size_t>(tier)].holds();
  request.budget = o.budget.empty() ? whole : parse_device_budget(o.budget).of(whole);
  request.jobs = o.jobs > 0 ? o.jobs : std::max(1u, std::thread::hardware_concurrency());
  return request;
}

}  // namespace

int plan_layouts(const LayoutOptions& o) {
  const Format format = parse_format(o.format);
  const LayoutRequest request = request_of(o);
  LayoutSearch found;
  {
    TerminalWatch watch("layouts");
    found = search_layouts(request, &watch);
  }
  const std::string workload = o.files.front().substr(0, o.files.front().find(':'));
  if (!o.one_line)
    print(screen_text(layout_tables(found, request, o.files.front()), format, o.full));
  else if (!found.best.empty())
    print(fmt::format("memwall run {}{}{} --machine {}\n", o.files.front(),
                      workload.size() == o.files.front().size() ? ":" : ",", layout_settings(found.best.front(), request.fixed),
                      o.machine));
  return found.best.empty() ? kNothingFits : 0;
}

}  // namespace memwall
