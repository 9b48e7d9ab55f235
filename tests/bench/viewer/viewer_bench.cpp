// How fast is the viewer on large runs, and how much memory does it take?
//
//   memwall_viewer_bench [FOLDER] [MILLIONS OF SPANS ...]      default: the temporary folder, 0.1 1 10
//
// Spans are calls and work. For each size: writes a run file, opens it as the viewer does, and draws a tour of panning
// and zooming at 1920 x 1080, offscreen. Blocks that a frame misses are loaded after it, as by the viewer's worker, and
// the frame is drawn again: both are measured.
#include <fmt/format.h>
#include <malloc.h>

#include <QGuiApplication>
#include <QImage>
#include <QPainter>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gui/drawing/canvas_drawing.h"
#include "gui/paint/figure_painter.h"
#include "gui/paint/text_cache.h"
#include "tests/bench/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace {

constexpr int kWidth = 1920, kHeight = 1080;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Of this process: what a frame costs where others use the machine too.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double resident_megabytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

// The benchmarks' program with what a viewer shows besides: steps' phases, long names, a second stream.
Trace viewer_program(std::size_t ops) {
  Trace trace = bench_program(ops);
  std::vector<StringId> names;
  for (int i = 0; i < 60; ++i)
    names.push_back(trace.strings.intern(
        fmt::format("void at::native::kernel_{}<{}, at::native::Functor<float>>(int, float*)", i, i % 7)));
  trace.streams.push_back({"copy", 0, StreamRole::copy, 0});
  std::size_t number = 0;
  for (Op& op : trace.ops) {
    if (op.kind != OpKind::kernel) continue;
    ++number;
    op.name = names[number * 7919 % names.size()];
    op.phase = static_cast<Phase>(1 + number / 400 % 4);
    if (number % 23 == 0) op.stream = static_cast<std::uint16_t>(trace.streams.size() - 1);
    // From one to a dozen microseconds, and now and then a hundred.
    op.duration = microseconds(number % 997 == 0 ? 100 : 1 + static_cast<std::int64_t>(number * 2654435761 % 12));
  }
  return trace;
}

std::uint64_t write(const std::filesystem::path& path, std::size_t spans) {
  const Run run = simulate_and_record(viewer_program(spans * 2 / 3), test_machine(), {});
  write_run(run, path);
  return std::filesystem::file_size(path);
}

struct FrameTimes {
  std::vector<double> frames, processor, drawing, sharpened;  // seconds: whole frame, likewise of processor time,
                                                              // figure alone, frame with loading
  std::size_t items = 0, blocks = 0;

  void print(const char* what, std::vector<double> seconds) const {
    std::sort(seconds.begin(), seconds.end());
    const auto at = [&](double share) {
      return 1e3 * seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
    };
    fmt::print("  {:<34} p50 {:6.2f} ms   p95 {:6.2f} ms   max {:6.2f} ms   ({} frames)\n", what, at(0.5), at(0.95),
               at(1), seconds.size());
  }
};

class Tour {
 public:
  explicit Tour(OpenRun run) : image_(kWidth, kHeight, QImage::Format_ARGB32_Premultiplied) {
    state_.runs.push_back(std::move(run));
    state_.rows = RowList::of(state_.runs);
    state_.viewport = Viewport(state_.whole(), kWidth - kTitleWidth);
  }

  std::vector<MissingBlock> frame(double* drawing = nullptr) {
    const double start = now();
    const CanvasFrame frame = draw_canvas(state_, theme_, kWidth, kHeight - kOverviewHeight);
    const Figure overview = draw_overview(state_, theme_, kWidth, kOverviewHeight);
    if (drawing) *drawing = now() - start;
    QPainter painter(&image_);
    paint_figure(frame.figure, painter, texts_);
    painter.translate(0, kHeight - kOverviewHeight);
    paint_figure(overview, painter, texts_);
    items_ = frame.figure.items.size();
    return frame.missing;
  }

  // One step of the tour: a frame with what is there, then what a worker loads, then a sharp frame.
  void step() {
    double start = now(), drawing = 0;
    const double used = processor_seconds();
    const std::vector<MissingBlock> missing = frame(&drawing);
    times_.frames.push_back(now() - start);
    times_.processor.push_back(processor_seconds() - used);
    times_.drawing.push_back(drawing);
    times_.items = std::max(times_.items, items_);
    if (missing.empty()) return;
    start = now();
    for (const MissingBlock& block : missing) state_.runs[block.run].spans->load(block.block);
    times_.blocks += missing.size();
    frame(&drawing);
    times_.sharpened.push_back(now() - start);
    times_.drawing.push_back(drawing);
  }

  // In towards three places, with pans on the way, and out again.
  void travel() {
    Viewport& view = state_.viewport;
    for (const double at : {0.21, 0.5, 0.83}) {
      view.show_all();
      const double x = at * view.width();
      for (int i = 0; i < 45; ++i) {
        view.zoom(1.35, x);
        step();
        if (i % 5 != 0) continue;
        for (int pan = 0; pan < 8; ++pan) {
          view.pan(pan < 5 ? 90 : -130);
          step();
        }
      }
      for (int i = 0; i < 22; ++i) {
        view.zoom(1 / 1.8, view.width() / 3);
        step();
      }
    }
  }

  const FrameTimes& times() const { return times_; }
  std::size_t resident() const {
    return state_.runs[0].source->resident_bytes() + state_.runs[0].spans->resident_bytes() +
           state_.rows.rows().size() * sizeof(CanvasRow);
  }
  void save(const std::string& path) { image_.save(QString::fromStdString(path)); }

 private:
  CanvasState state_;
  Theme theme_ = light_theme();
  QImage image_;
  TextCache texts_;
  FrameTimes times_;
  std::size_t items_ = 0;
};

void measure(const std::filesystem::path& folder, double millions) {
  const auto spans = static_cast<std::size_t>(millions * 1e6);
  const std::filesystem::path path = folder / fmt::format("memwall_viewer_bench_{}.h5", millions);
  const std::uint64_t bytes = write(path, spans);
  const double before = resident_megabytes();
  const double start = now();
  OpenRun run = open_in_viewer(path.string());
  const double opened = now() - start;
  std::uint64_t counted = 0;
  for (const RunLane& lane : run.outline().lanes) counted += lane.kind <= RunLaneKind::stream ? lane.spans : 0;
  Tour tour(std::move(run));
  tour.frame();
  const double first = now() - start;
  fmt::print("{} spans ({} M asked for), file {:.0f} MB\n", counted, millions, static_cast<double>(bytes) * 1e-6);
  fmt::print("  opened in {:.3f} s, first frame after {:.3f} s, {:.1f} MB resident more\n", opened, first,
             resident_megabytes() - before);
  tour.travel();
  const FrameTimes& times = tour.times();
  times.print("frame (figure and painting)", times.frames);
  times.print("  its processor time", times.processor);
  times.print("  figure alone", times.drawing);
  if (!times.sharpened.empty()) times.print("loading blocks, and a frame", times.sharpened);
  fmt::print("  {} blocks loaded; at most {} shapes in a frame\n", times.blocks, times.items);
  fmt::print("  after the tour: {:.1f} bytes per span (source, cache, rows), {:.1f} by what the process holds more\n\n",
             static_cast<double>(tour.resident()) / static_cast<double>(counted),
             (resident_megabytes() - before) * 1048576 / static_cast<double>(counted));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace memwall::gui

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QGuiApplication application(argc, argv);
  const std::filesystem::path folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  std::vector<double> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::stod(argv[i]));
  if (sizes.empty()) sizes = {0.1, 1, 10};
  for (const double millions : sizes) memwall::gui::measure(folder, millions);
  return 0;
}
