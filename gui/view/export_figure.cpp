#include "gui/view/export_figure.h"

#include <fmt/format.h>

#include "gui/paint/figure_painter.h"
#include "sim/error.h"

namespace memwall::gui {

void export_figure(const Figure& figure, const std::filesystem::path& path, double scale) {
  const std::string ending = path.extension().string();
  if (ending == ".png") return write_png(figure, path, scale);
  if (ending == ".pdf") return write_pdf(figure, path);
  throw UsageError(fmt::format("{}: not implemented yet.", path.string()));
}

int export_main(const std::vector<std::string>&) { return 2; }

}  // namespace memwall::gui
