#include "study/python/binding/snapshot_object.h"

#include <pybind11/stl.h>

#include <memory>
#include <sstream>

#include "cli/capacity_option.h"
#include "cli/print/memory_charts.h"
#include "cli/print/memory_tables.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "study/memory_study.h"
#include "study/python/binding/column_table.h"
#include "study/python/binding/interruption.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace {

namespace py = pybind11;

struct AnsweredSnapshot {
  std::string file;
  MemoryStudy study;
};

MemoryQuestion question_of(const std::string& file, const py::dict& words) {
  MemoryQuestion question;
  question.snapshot = file;
  question.device = py::cast<std::optional<int>>(words["device"]);
  question.settings = py::cast<std::optional<std::string>>(words["settings"]);
  question.allocator = py::cast<std::string>(words["allocator"]);
  question.search = py::cast<bool>(words["search"]);
  const auto capacity = py::cast<std::string>(words["capacity"]), machine = py::cast<std::string>(words["machine"]);
  if (!capacity.empty() && !machine.empty())
    throw UsageError("--capacity and --machine both say how much memory there is; give one.");
  if (!capacity.empty()) question.capacity = parse_capacity(capacity);
  if (!machine.empty()) {
    const Machine of = load_machine(machine);
    const Tier& hbm = of.tiers[static_cast<std::size_t>(of.tier("hbm"))];
    question.capacity = hbm.usable();
    question.device_total = hbm.capacity;
  }
  return question;
}

std::shared_ptr<AnsweredSnapshot> read_snapshot_file(const std::string& file, const py::dict& words) {
  const MemoryQuestion question = question_of(file, words);
  const py::gil_scoped_release free_of_lock;
  InterruptibleSearch watch;
  return std::make_shared<AnsweredSnapshot>(AnsweredSnapshot{file, study_memory(question, &watch)});
}

// The columns of `memwall memory --timeline`.
std::shared_ptr<ColumnTable> timeline_of(const AnsweredSnapshot& answer) {
  ArrowColumn event = integers("event"), time = integers("time_us"), action = texts("action"),
              size = integers("size_bytes"), phase = texts("phase"), allocated = integers("allocated_bytes"),
              reserved = integers("reserved_bytes"), active = integers("active_bytes"),
              requested = integers("requested_bytes");
  const auto& events = answer.study.of_device().events;
  const auto& points = answer.study.asked().points;
  for (std::size_t i = 0; i < events.size(); ++i) {
    event.add(static_cast<std::int64_t>(i));
    time.add(static_cast<std::int64_t>(events[i].time_us));
    action.add(to_string(events[i].action));
    size.add(static_cast<std::int64_t>(events[i].size));
    phase.add(to_string(answer.study.table.phases[i]));
    for (const auto& [column, bytes] : {std::pair(&allocated, points[i].allocated),
                                        {&reserved, points[i].reserved},
                                        {&active, points[i].active},
                                        {&requested, points[i].requested}})
      column->add(static_cast<std::int64_t>(bytes));
  }
  return std::make_shared<ColumnTable>(
      ColumnTable{{std::move(event), std::move(time), std::move(action), std::move(size), std::move(phase),
                   std::move(allocated), std::move(reserved), std::move(active), std::move(requested)}});
}

std::string snapshot_figure(const AnsweredSnapshot& answer, const std::string& view, bool is_dark) {
  const std::vector<std::string> views{"memory", "blocks"};
  if (view != "memory" && view != "blocks")
    throw UsageError("The view \"" + view + "\" is unknown; expected one of " + listed(views) + "." +
                     did_you_mean(view, views));
  const MemoryStudy& study = answer.study;
  const RecordedMemory memory =
      replay_for_charts(std::filesystem::path(answer.file).filename().string(), study.recording, study.of_device());
  const Bytes capacity = study.capacity.value_or(0);
  Figure figure = view == "blocks" ? draw_blocks(blocks_chart(memory, InstantUnit::events, capacity))
                                   : draw_memory(memory_chart(memory, InstantUnit::events, capacity));
  std::ostringstream text;
  write_svg(is_dark ? dark_figure(std::move(figure)) : figure, text);
  return text.str();
}

}  // namespace

void add_snapshot(py::module_& module) {
  using FreeOfLock = py::call_guard<py::gil_scoped_release>;
  py::class_<AnsweredSnapshot, std::shared_ptr<AnsweredSnapshot>>(module, "Snapshot")
      .def(py::init(&read_snapshot_file))
      .def(
          "json", [](const AnsweredSnapshot& a) { return memory_json(a.study, a.file); }, FreeOfLock())
      .def("timeline", &timeline_of, FreeOfLock())
      .def("figure", &snapshot_figure, FreeOfLock())
      .def_property_readonly("missing", [](const AnsweredSnapshot& a) { return missing_sentence(a.study); });
}

}  // namespace memwall
