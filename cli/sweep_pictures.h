// The option --figure of a sweep: pictures as SVG, PNG or PDF, and what is drawn on each.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "study/charts/sweep_figure.h"

namespace CLI {
class App;
}

namespace memwall {

// --figure FILE or FILE=KIND:settings (study/charts/sweep_figure.h), repeatable; a line chart where no kind is named.
void add_figure_option(CLI::App& app, std::vector<std::string>& given);

class SweepPictures {
 public:
  // `given`: as typed. Finds memwall-viewer where it is needed. Throws UsageError where an ending is none of a
  // picture's, a kind or name is not there, a place cannot be written or is one of `inputs`, or the viewer is not
  // installed.
  SweepPictures(const std::vector<std::string>& given, const SweepRequest& request,
                const std::vector<std::filesystem::path>& inputs);

  std::vector<std::string> files() const;
  // What the sweep has to find for them.
  std::vector<std::string> fields(const SweepRequest& request) const;
  // Returns 0, or the exit code of the viewer, which has said what went wrong. Throws UsageError where a file cannot be
  // written.
  int write(const SweepRequest& request, const SweepResult& result) const;

 private:
  struct Picture {
    std::string file;
    SweepFigure figure;
  };
  std::vector<Picture> pictures_;
  std::filesystem::path viewer_;  // "" = not needed
};

}  // namespace memwall
