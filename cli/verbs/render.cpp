// memwall render: pictures of runs, as SVG.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/charts.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/verbs/verbs.h"
#include "sim/error.h"
#include "traces/figure/svg.h"
#include "traces/run/run_file.h"

namespace memwall {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string what = "timeline", tier = "hbm", output;
};

void check_options(const Options& o) {
  static const std::vector<std::string> known{"timeline", "memory", "links", "tiers", "compare"};
  if (std::find(known.begin(), known.end(), o.what) == known.end()) {
    const std::string near = nearest_name(o.what, known);
    throw UsageError(fmt::format("--what \"{}\" is unknown{}; expected timeline, memory, links, tiers or compare.",
                                 o.what, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
  }
  if (o.what != "compare" && o.runs.size() > 1)
    throw UsageError(
        fmt::format("--what {} draws one run, {} were given; --what compare draws several.", o.what, o.runs.size()));
  const std::string ending = std::filesystem::path(o.output).extension().string();
  if (!o.output.empty() && o.output != "-" && ending != ".svg")
    throw UsageError(fmt::format(
        "-o {}: pictures are written as .svg; other forms need the viewer, which is not built yet.", o.output));
}

Figure draw(const Options& o) {
  std::vector<Run> runs;
  std::vector<std::string> labels;
  for (const std::string& path : o.runs) {
    const ReadingProgress progress(path);
    runs.push_back(read_run(path));
    labels.push_back(std::filesystem::path(path).stem().string());
  }
  if (o.what == "compare") return comparison_of(runs, labels);
  if (o.what == "memory") return memory_of(runs.front(), o.tier);
  if (o.what == "links") return links_of(runs.front());
  if (o.what == "tiers") return tiers_of(runs.front());
  return timeline_of(runs.front());
}

int render(const Options& o) {
  check_options(o);
  require_harmless(o.output, {o.runs.begin(), o.runs.end()});
  const Figure figure = draw(o);
  write_output(o.output, [&](std::ostream& out) { write_svg(figure, out); });
  return 0;
}

}  // namespace

Verb add_render(CLI::App& parent) {
  auto o = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("render", "Draw a run, or several, as SVG");
  app->add_option("runs", o->runs, "The run (.h5, from `memwall run -o`); several for --what compare")->required();
  app->add_option("--what", o->what, "timeline, memory, links, tiers or compare")->capture_default_str();
  app->add_option("--tier", o->tier, "Whose memory --what memory draws")->capture_default_str();
  app->add_option("-o,--output", o->output, "The picture (.svg); default: stdout");
  app->footer(
      "Examples:\n"
      "  memwall render run.h5 --what memory -o memory.svg\n"
      "  memwall render base.h5 run.h5 --what compare -o compare.svg");
  return {app, [o] { return render(*o); }};
}

}  // namespace memwall
