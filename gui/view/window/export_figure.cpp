#include "gui/view/window/export_figure.h"

#include <fmt/format.h>
#include <QGuiApplication>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <charconv>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "sim/files/output_stream.h"
#include "gui/paint/figure_painter.h"
#include "gui/view/window/exit_code.h"
#include "sim/error.h"
#include "sim/presentable.h"
#include "traces/figure/figure_stream.h"
#include "traces/figure/svg.h"

namespace memwall::gui {
namespace {

namespace fs = std::filesystem;

void write_svg_file(const Figure& figure, const fs::path& path) {
  FileWriter file(path);
  FileWriterStream stream(file);
  write_svg(figure, stream);
  stream.flush();
  file.commit();
}

struct ExportArguments {
  fs::path path;
  double scale = 2;
};

ExportArguments parse_arguments(const std::vector<std::string>& words) {
  ExportArguments arguments;
  const auto expected = [] { return UsageError("expected --export FILE.svg|.png|.pdf [--scale PIXELS_PER_POINT]."); };
  if (words.size() != 2 && words.size() != 4) throw expected();
  if (words[0] != "--export" || words[1].empty()) throw expected();
  arguments.path = words[1];
  if (words.size() == 2) return arguments;
  const std::string& scale = words[3];
  const auto [end, error] = std::from_chars(scale.data(), scale.data() + scale.size(), arguments.scale);
  if (words[2] != "--scale" || error != std::errc{} || end != scale.data() + scale.size() || !(arguments.scale > 0))
    throw expected();
  return arguments;
}

int export_from(std::istream& in, const std::vector<std::string>& words) {
  const ExportArguments arguments = parse_arguments(words);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  export_figure(figure_from_bytes(bytes), arguments.path, arguments.scale);
  return kDone;
}

// Of what Qt says on its own only what stops it is for people who asked for a picture.
void keep_quiet(QtMsgType type, const QMessageLogContext&, const QString& text) {
  if (type == QtCriticalMsg || type == QtFatalMsg)
    fmt::print(stderr, "memwall-viewer --export: {}\n", text.toStdString());
}

}  // namespace

void export_figure(const Figure& figure, const fs::path& path, double scale) {
  const std::string ending = path.extension().string();
  if (ending == ".png") return write_png(figure, path, scale);
  if (ending == ".pdf") return write_pdf(figure, path);
  if (ending == ".svg") return write_svg_file(figure, path);
  throw UsageError(fmt::format("{}: pictures are written as .svg, .png or .pdf.", path.string()));
}

int export_main(const std::vector<std::string>& arguments) {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // the program that asked for the picture has ended: nobody wants it
#endif
  // Without a screen, whatever the desktop: the same fonts, the same bytes.
  qputenv("QT_QPA_PLATFORM", "offscreen");
  qInstallMessageHandler(keep_quiet);
  std::string name = "memwall-viewer";
  int count = 1;
  char* names[] = {name.data(), nullptr};
  const QGuiApplication application(count, names);
  const auto fail = [](const std::exception& error, int code) {
    fmt::print(stderr, "memwall-viewer --export: {}\n", presentable(error.what()));
    return code;
  };
  try {
    return export_from(std::cin, arguments);
  } catch (const UsageError& error) {
    return fail(error, kUsage);
  } catch (const InputError& error) {
    return fail(error, kUnreadable);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}

}  // namespace memwall::gui
