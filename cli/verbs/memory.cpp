// memwall memory: what filled the memory of a recorded program, and what would have let it run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/capacity_option.h"
#include "cli/output_file.h"
#include "cli/print/memory_tables.h"
#include "cli/print/screen.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/memory/allocator.h"

namespace memwall {
namespace {

struct MemoryOptions {
  std::string snapshot, settings, allocator = "pytorch", capacity, machine, timeline, format = "table";
  bool settings_given = false, search = false, full = false;
  int device = -1;
  std::size_t limit = 15;
};

MemoryQuestion question_of(const MemoryOptions& o) {
  MemoryQuestion q;
  q.snapshot = o.snapshot;
  if (o.device >= 0) q.device = o.device;
  if (o.settings_given) q.settings = o.settings;
  q.allocator = o.allocator;
  q.search = o.search;
  q.limit = o.limit;
  if (!o.capacity.empty() && !o.machine.empty())
    throw UsageError("--capacity and --machine both say how much memory there is; give one.");
  if (!o.capacity.empty()) q.capacity = parse_capacity(o.capacity);
  if (!o.machine.empty()) {
    const Machine machine = load_machine(o.machine);
    const Tier& hbm = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
    q.capacity = hbm.usable();
    q.device_total = hbm.capacity;
  }
  return q;
}

// Every event of the replay, for a plot of one's own.
void write_timeline(const MemoryStudy& study, std::ostream& out) {
  out << "event,time_us,action,size_bytes,phase,allocated_bytes,reserved_bytes,active_bytes,requested_bytes\n";
  const auto& events = study.of_device().events;
  const auto& points = study.asked().points;
  for (std::size_t i = 0; i < events.size(); ++i)
    out << fmt::format("{},{},{},{},{},{},{},{},{}\n", i, events[i].time_us, to_string(events[i].action),
                       events[i].size, to_string(study.table.phases[i]), points[i].allocated, points[i].reserved,
                       points[i].active, points[i].requested);
}

int memory(const MemoryOptions& o) {
  const Format format = parse_format(o.format);
  require_harmless(o.timeline, {o.snapshot, o.machine});
  TerminalWatch watch("trying settings");
  const MemoryStudy study = study_memory(question_of(o), &watch);
  if (!o.timeline.empty()) write_output(o.timeline, [&](std::ostream& out) { write_timeline(study, out); });
  const std::string name = with_standard_input_named(o.snapshot);
  print_beside(o.timeline, format == Format::json ? memory_json(study, o.snapshot)
                                                  : screen_text(memory_tables(study, name, o.limit), format, o.full));
  const std::string missing = missing_sentence(study);
  if (missing.empty()) return 0;
  print_error("memwall memory: {} {}. The result takes memory as unlimited.\n", o.snapshot, missing);
  return 3;
}

}  // namespace

Verb add_memory(CLI::App& parent) {
  auto o = std::make_shared<MemoryOptions>();
  CLI::App* app =
      parent.add_subcommand("memory", "Explain a PyTorch memory snapshot, and try other allocator settings");
  app->add_option("snapshot", o->snapshot, "From torch.cuda.memory._dump_snapshot (a pickle, gzip or not)")->required();
  app->add_option("--device", o->device, "Number of the GPU; default: the one that reserved most")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* settings = app->add_option("--alloc-conf", o->settings,
                                          "Replay under these settings of PYTORCH_ALLOC_CONF: "
                                          "expandable_segments:True,max_split_size_mb:256; \"\" = the default ones");
  app->add_option("--allocator", o->allocator,
                  fmt::format("Replay with another allocator: {}", fmt::join(allocator_names(), ", ")))
      ->capture_default_str();
  app->add_option("--capacity", o->capacity, "Would it fit in this much memory for segments? As in 40GiB");
  app->add_option("--machine", o->machine, "Would it fit on this machine's GPU? Its usable memory is the capacity");
  app->add_flag("--search", o->search, "Try the sensible settings; rank by peak reserved and retries");
  app->add_option("--timeline", o->timeline, "Write every event with the bytes after it here (CSV)");
  app->add_option("--limit", o->limit, "Rows of the lists")->check(CLI::Range(1, 10000))->capture_default_str();
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->add_flag("--full", o->full, "Print every table and every row; json and csv hold all of them anyway");
  app->footer(
      "Record with torch.cuda.memory._record_memory_history() before the work and _dump_snapshot(\"FILE\") after it.\n"
      "The JSON is described in docs/memory.md. Exit code 3 means: does not fit in --capacity; the full result is\n"
      "still printed, with memory taken as unlimited.\n\n"
      "Examples:\n"
      "  memwall memory snapshot.pickle                            # what filled the memory\n"
      "  memwall memory snapshot.pickle --alloc-conf expandable_segments:True\n"
      "  memwall memory snapshot.pickle --search --capacity 40GiB  # which settings would have let it run\n"
      "  memwall render snapshot.pickle -o memory.svg              # draw it");
  return {app, [o, settings] {
            o->settings_given = settings->count() > 0;
            return memory(*o);
          }};
}

}  // namespace memwall
