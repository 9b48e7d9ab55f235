#include "cli/sweep_pictures.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <ostream>

#include "cli/output_file.h"
#include "cli/viewer_program.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "study/charts/sweep_charts.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace {

constexpr double kPixelsPerPoint = 2;  // as `memwall render`

bool is_painted(const std::string& file) { return file.ends_with(".png") || file.ends_with(".pdf"); }

// The file ends where its ending does; what follows is the kind.
std::pair<std::string, std::string> file_and_kind(const std::string& text) {
  std::size_t end = std::string::npos;
  for (const char* ending : {".svg", ".png", ".pdf"}) {
    if (text.ends_with(ending)) return {text, "line"};
    end = std::min(end, text.find(std::string(ending) + "="));
  }
  if (end == std::string::npos)
    throw UsageError(
        fmt::format("--figure {}: pictures are written as .svg, .png or .pdf; expected FILE, or FILE=KIND as in "
                    "peaks.svg=pareto.",
                    text));
  return {text.substr(0, end + 4), text.substr(end + 5)};
}

}  // namespace

void add_figure_option(CLI::App& app, std::vector<std::string>& given) {
  app.add_option(
         "--figure", given,
         "Draw the points here (.svg, .png, .pdf), as a line chart, or FILE=KIND: line, pareto, heatmap, tornado "
         "or budget; with settings behind it: FILE=line:x=pcie,y=peak,log=x; repeatable")
      ->allow_extra_args(false);
}

SweepPictures::SweepPictures(const std::vector<std::string>& given, const SweepRequest& request,
                             const std::vector<std::filesystem::path>& inputs) {
  for (const std::string& text : given) {
    const auto [file, kind] = file_and_kind(text);
    pictures_.push_back({file, parse_sweep_figure(kind, request)});
    require_harmless(file, inputs);
    if (is_painted(file) && viewer_.empty())
      viewer_ = find_viewer("a picture as " + std::filesystem::path(file).extension().string());
  }
  for (const Picture& picture : pictures_)
    (void)FileWriter(picture.file);  // a place that cannot be written is told now
}

std::vector<std::string> SweepPictures::files() const {
  std::vector<std::string> files;
  for (const Picture& picture : pictures_) files.push_back(picture.file);
  return files;
}

std::vector<std::string> SweepPictures::fields(const SweepRequest& request) const {
  std::vector<std::string> fields;
  for (const Picture& picture : pictures_)
    std::ranges::copy(fields_of(picture.figure, request), std::back_inserter(fields));
  return fields;
}

int SweepPictures::write(const SweepRequest& request, const SweepResult& result) const {
  for (const Picture& picture : pictures_) {
    const Figure figure = draw_sweep(picture.figure, request, result);
    if (is_painted(picture.file)) {
      if (const int code = paint_with_viewer(viewer_, figure, picture.file, kPixelsPerPoint); code != 0) return code;
    } else {
      write_output(picture.file, [&](std::ostream& out) { write_svg(figure, out); });
    }
  }
  return 0;
}

}  // namespace memwall
