// A small capture of every format that memwall imports, written by hand. For fuzz tests; a new importer adds its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace memwall {

struct ImporterSample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> files;  // name, content; the first is the one that is imported
};

std::vector<ImporterSample> importer_samples();

}  // namespace memwall
