// memwall render: pictures of runs and of memory snapshots, as SVG, PNG or PDF.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/capacity_option.h"
#include "cli/print/memory_charts.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "models/workload/memory/snapshot_device.h"
#include "cli/verbs/verbs.h"
#include "cli/viewer_program.h"
#include "gui/drawing/run_figures.h"
#include "models/workload/import/snapshot/snapshot_reader.h"
#include "sim/error.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/svg.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_source.h"

namespace memwall {
namespace {

struct RenderOptions {
  std::vector<std::string> files;
  std::string what, tier = "hbm", range, at = "peak", axis = "events", capacity, clock = "host", theme = "light",
                    output;
  std::vector<std::string> lanes;
  std::optional<int> device;
  std::optional<double> scale;
  // Options that were given, for those that suit only one kind of file or one drawing.
  bool tier_given = false, at_given = false, axis_given = false, clock_given = false;
};

const std::vector<std::string> kOfSnapshots{"memory", "blocks", "segments"};

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Throws where neither runs nor snapshots have such a picture.
void check_word(const std::string& what) {
  std::vector<std::string> known = gui::run_figure_names();
  known.insert(known.end(), kOfSnapshots.begin(), kOfSnapshots.end());
  if (what.empty() || is_one_of(what, known)) return;
  const std::string near = nearest_name(what, known);
  throw UsageError(fmt::format("--view \"{}\" is unknown{}; expected {} (of runs), or {} (of memory snapshots).", what,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                               fmt::join(gui::run_figure_names(), ", "), fmt::join(kOfSnapshots, ", ")));
}

std::string ending_of(const RenderOptions& o) { return std::filesystem::path(o.output).extension().string(); }
// Pictures that memwall-viewer writes.
bool is_painted(const RenderOptions& o) { return ending_of(o) == ".png" || ending_of(o) == ".pdf"; }

void check_output(const RenderOptions& o) {
  if (o.theme != "light" && o.theme != "dark")
    throw UsageError(fmt::format("--theme \"{}\" is unknown; expected light or dark.", o.theme));
  if (!o.output.empty() && o.output != "-" && !is_painted(o) && ending_of(o) != ".svg")
    throw UsageError(fmt::format("-o {}: pictures are written as .svg, .png or .pdf.", o.output));
  if (!o.scale) return;
  if (ending_of(o) != ".png")
    throw UsageError("--scale says how many pixels a point of a .png has; .svg and .pdf have none.");
  if (!(*o.scale >= 0.1 && *o.scale <= 20))
    throw UsageError(fmt::format("--scale {}: expected pixels per point, 0.1 to 20.", *o.scale));
}

MemoryClock clock_of(const RenderOptions& o) {
  if (o.clock == "host") return MemoryClock::host;
  if (o.clock == "device") return MemoryClock::device;
  throw UsageError(fmt::format("--clock \"{}\" is unknown; expected host or device.", o.clock));
}

// --- runs

void check_run_options(const RenderOptions& o, const std::string& what) {
  if (!is_one_of(what, gui::run_figure_names()))
    throw UsageError(fmt::format("--view {} draws memory snapshots, and {} is none; expected one of {}.", what,
                                 o.files.front(), fmt::join(gui::run_figure_names(), ", ")));
  if (what != "compare" && o.files.size() > 1)
    throw UsageError(
        fmt::format("--view {} draws one run, {} were given; --view compare draws several.", what, o.files.size()));
  if (!gui::draws_ranges(what) && !o.range.empty())
    throw UsageError(
        fmt::format("--view {} tells of whole runs and has no --range; timeline, memory, links and pipeline have one.", what));
  if (what != "timeline" && !o.lanes.empty())
    throw UsageError(fmt::format("--lane chooses lanes of --view timeline; --view {} has none.", what));
  if (what != "memory" && o.clock_given)
    throw UsageError(fmt::format("--clock says when --view memory counts bytes; --view {} has none.", what));
  for (const auto& [given, name] : {std::pair{o.at_given, "--at"},
                                    {o.axis_given, "--axis"},
                                    {o.device.has_value(), "--device"},
                                    {!o.capacity.empty(), "--capacity"}})
    if (given) throw UsageError(fmt::format("{} is for memory snapshots; {} is a run.", name, o.files.front()));
}

// As much of the run is read as is drawn.
Figure draw_run_timeline(const RenderOptions& o) {
  ProgressBar bar("drawing");
  const std::unique_ptr<RunSource> run = open_run(o.files.front());
  gui::RunFigureRequest request{
      .view = "timeline", .tier = o.tier, .range = {}, .lanes = o.lanes, .clock = MemoryClock::host};
  if (!o.range.empty()) request.range = gui::parse_range(o.range, *run, o.tier);
  return gui::run_timeline(*run, request, [&](double share) {
    bar.update(share);
    return true;
  });
}

Figure draw_runs(const RenderOptions& o) {
  const std::string what = o.what.empty() ? "timeline" : o.what;
  check_run_options(o, what);
  if (what == "timeline") return draw_run_timeline(o);
  std::vector<Run> runs;
  for (const std::string& path : o.files) {
    const ReadingProgress progress(path);
    runs.push_back(read_run(path));
  }
  std::vector<const Run*> pointers;
  for (const Run& run : runs) pointers.push_back(&run);
  gui::RunFigureRequest request{.view = what, .tier = o.tier, .range = {}, .lanes = o.lanes, .clock = clock_of(o)};
  if (!o.range.empty()) request.range = gui::parse_range(o.range, runs.front(), o.tier, request.clock);
  return gui::run_figure(pointers, o.files, request);
}

// --- snapshots

void check_snapshot_options(const RenderOptions& o, const std::string& what) {
  if (!is_one_of(what, kOfSnapshots))
    throw UsageError(fmt::format("--view {} draws runs, and {} is a memory snapshot; expected one of {}.", what,
                                 o.files.front(), fmt::join(kOfSnapshots, ", ")));
  if (o.files.size() > 1)
    throw UsageError(fmt::format("--view {} draws one memory snapshot, {} files were given.", what, o.files.size()));
  if (o.tier_given)
    throw UsageError(fmt::format("--tier is for runs; {} is a memory snapshot, which has --device.", o.files.front()));
  for (const auto& [given, name] :
       {std::pair{!o.range.empty(), "--range"}, {!o.lanes.empty(), "--lane"}, {o.clock_given, "--clock"}})
    if (given) throw UsageError(fmt::format("{} is for runs; {} is a memory snapshot.", name, o.files.front()));
  if (o.at_given && what != "segments")
    throw UsageError(fmt::format("--at says when --view segments looks; --view {} shows all events.", what));
  if (what == "segments" && (o.axis_given || !o.capacity.empty()))
    throw UsageError(fmt::format("{} is for --view memory and blocks; a map of segments has none.",
                                 o.axis_given ? "--axis" : "--capacity"));
}

InstantUnit axis_of(const RenderOptions& o) {
  if (o.axis == "events") return InstantUnit::events;
  if (o.axis == "time") return InstantUnit::time;
  throw UsageError(fmt::format("--axis \"{}\" is unknown; expected events or time.{}", o.axis,
                               did_you_mean(o.axis, {"events", "time"})));
}

// The event after which to look; none = before the first.
std::optional<std::uint32_t> instant_of(const RenderOptions& o, const RecordedMemory& memory) {
  const std::size_t events = memory.device.events.size();
  if (o.at == "start") return std::nullopt;
  if (o.at == "peak" || o.at == "end") {
    if (events == 0 || (o.at == "peak" && memory.replay.peak_at_start)) return std::nullopt;
    return o.at == "peak" ? memory.replay.peak_event : static_cast<std::uint32_t>(events - 1);
  }
  std::uint32_t event = 0;
  const char* const end = o.at.data() + o.at.size();
  const auto [stop, problem] = std::from_chars(o.at.data(), end, event);
  if (problem != std::errc{} || stop != end || o.at.empty())
    throw UsageError(fmt::format("--at \"{}\": expected peak, start, end or the number of an event.{}", o.at,
                                 did_you_mean(o.at, {"peak", "start", "end"})));
  if (event >= events)
    throw UsageError(fmt::format("--at {}: {} has {}.", event, o.files.front(),
                                 events ? fmt::format("events 0 to {}", events - 1) : "no events; expected start"));
  return event;
}

Figure draw_snapshot(const RenderOptions& o) {
  const std::string what = o.what.empty() ? "memory" : o.what;
  check_snapshot_options(o, what);
  const InstantUnit axis = axis_of(o);
  const Bytes capacity = o.capacity.empty() ? 0 : parse_capacity(o.capacity);
  const std::string& path = o.files.front();
  const MemoryRecording recording = [&] {
    const ReadingProgress progress(path);
    return read_snapshot(path);
  }();
  const DeviceRecording& device = recording.devices[snapshot_device(recording, path, o.device)];
  const RecordedMemory memory = replay_for_charts(std::filesystem::path(path).filename().string(), recording, device);
  if (!memory.start.contradictions.empty())
    print_error("note: {} contradicts itself in {} places ({}); the picture shows what could be found.\n", path,
                memory.start.contradictions.size(), memory.start.contradictions.front());
  if (what == "blocks") return draw_blocks(blocks_chart(memory, axis, capacity));
  if (what == "segments") return draw_segment_map(segment_map_chart(memory, instant_of(o, memory)));
  return draw_memory(memory_chart(memory, axis, capacity));
}

// --- both

Figure on_page(Figure figure, const RenderOptions& o) {
  return o.theme == "dark" ? dark_figure(std::move(figure)) : figure;
}

Figure draw(const RenderOptions& o) {
  const auto snapshot =
      std::find_if(o.files.begin(), o.files.end(), [](const std::string& path) { return is_pickle(path); });
  if (snapshot == o.files.end()) return on_page(draw_runs(o), o);
  if (o.what == "compare")
    throw UsageError(fmt::format("--view compare draws runs, and {} is a memory snapshot.", *snapshot));
  return on_page(draw_snapshot(o), o);
}

int render(const RenderOptions& o) {
  check_word(o.what);
  check_output(o);
  clock_of(o);
  require_harmless(o.output, {o.files.begin(), o.files.end()});
  if (!is_painted(o)) {
    const Figure figure = draw(o);
    write_output(o.output, [&](std::ostream& out) { write_svg(figure, out); });
    return 0;
  }
  const std::filesystem::path viewer = find_viewer("a picture as " + ending_of(o));
  return paint_with_viewer(viewer, draw(o), o.output, o.scale.value_or(2));
}

}  // namespace

Verb add_render(CLI::App& parent) {
  auto o = std::make_shared<RenderOptions>();
  CLI::App* app = parent.add_subcommand("render", "Draw a run, or several, or a memory snapshot, as SVG, PNG or PDF");
  app->add_option("files", o->files,
                  "The run (.h5, from `memwall run -o`), several for --view compare; or a memory snapshot (.pickle)")
      ->required();
  app->add_option(
      "--view,--what", o->what,
      "Of runs: timeline (default), memory, links, tiers, ranks (of several: who waits for whom), pipeline (passes "
      "of each stage) or compare; of "
      "snapshots: memory (default), blocks or segments. --what is its older name");
  app->add_option(
      "--range", o->range,
      "Runs: only a part, of timeline, memory, links and pipeline: step:2 (counted from 1), step:2-3, 12ms:15ms, 12ms:, "
      ":15ms, op:120-180, peak:2ms (2 ms around the peak of --tier)");
  app->add_option("--lane", o->lanes,
                  "Runs: a lane of the timeline by its title, e.g. \"stream 7\"; several, in the order of the picture; "
                  "default: all")
      ->allow_extra_args(false);
  const CLI::Option* tier =
      app->add_option("--tier", o->tier, "Runs: whose memory --view memory draws; of rank 3 of several: hbm rank 3")
          ->capture_default_str();
  const CLI::Option* clock =
      app->add_option(
             "--clock", o->clock,
             "Runs: when --view memory counts bytes: host (from the call that allocates to the one that frees), "
             "or device (while they hold data: from the first write to the end of the last use)")
          ->capture_default_str();
  const CLI::Option* at =
      app->add_option("--at", o->at,
                      "Snapshots: when --view segments looks: peak, start, end or the number of an event")
          ->capture_default_str();
  const CLI::Option* axis = app->add_option("--axis", o->axis, "Snapshots: events or time")->capture_default_str();
  app->add_option("--device", o->device, "Snapshots: number of the GPU; default: the one that reserved most");
  app->add_option("--capacity", o->capacity, "Snapshots: draw a line at this size, e.g. 80GiB");
  app->add_option("-o,--output", o->output, "The picture (.svg, .png or .pdf); default: SVG to stdout");
  app->add_option("--theme", o->theme, "light (default) or dark: of the page that the picture is for")
      ->capture_default_str();
  app->add_option("--scale", o->scale, "Pixels per point of a .png, default 2: 1920 across");
  app->footer(
      "Examples:\n"
      "  memwall render run.h5 --view memory -o memory.svg\n"
      "  memwall render run.h5 --view memory --clock device -o memory.svg\n"
      "  memwall render run.h5 --range step:2 -o step.pdf\n"
      "  memwall render run.h5 --view memory --range peak:2ms --scale 3 -o peak.png\n"
      "  memwall render ranks.h5 --view ranks -o ranks.svg\n"
      "  memwall render job.h5 --view pipeline --range 0s:2s -o pipeline.svg\n"
      "  memwall render base.h5 run.h5 --view compare -o compare.svg\n"
      "  memwall render snapshot.pickle -o memory.svg\n"
      "  memwall render snapshot.pickle --view segments --at peak -o segments.svg");
  return {app, [o, tier, at, axis, clock] {
            RenderOptions given = *o;
            given.tier_given = tier->count() > 0;
            given.at_given = at->count() > 0;
            given.axis_given = axis->count() > 0;
            given.clock_given = clock->count() > 0;
            return render(given);
          }};
}

}  // namespace memwall
