// memwall view: opens a run, or two to compare, in memwall-viewer.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/verbs/verbs.h"
#include "cli/viewer_program.h"
#include "sim/error.h"
#include "sim/files/input_file.h"

namespace memwall {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

int view(const std::vector<std::string>& files) {
  if (files.size() > 2)
    throw UsageError(fmt::format("one run is shown, or two are compared; {} were given.", files.size()));
  for (const std::string& file : files)
    if (file == "-" || file == kStandardInput)
      throw UsageError(
          "a window reads its runs again and again, and standard input comes once; write the run to a file first.");
  const std::filesystem::path viewer = find_viewer("a window with a run");
  // Qt would end with a message that is about plugins.
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("QT_QPA_PLATFORM"))
    throw UsageError(
        "there is no screen (neither DISPLAY nor WAYLAND_DISPLAY is set); `memwall render` makes pictures without "
        "one.");
  become_viewer(viewer, files);
}

}  // namespace

Verb add_view(CLI::App& parent) {
  auto files = std::make_shared<std::vector<std::string>>();
  CLI::App* app = parent.add_subcommand("view", "Look at a run, or compare two, in a window");
  app->add_option("files", *files, "The run (.h5, from `memwall run -o`), and another to compare it with");
  app->footer(
      "Examples:\n"
      "  memwall view run.h5\n"
      "  memwall view base.h5 run.h5      # side by side, op by op");
  return {app, [files] { return view(*files); }};
}

}  // namespace memwall
