// memwall manual: the manual page of a verb, from the same words as its help.
#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

#include "cli/manual_page.h"
#include "cli/output_file.h"
#include "cli/verbs/verbs.h"

namespace memwall {
namespace {

struct ManualOptions {
  std::string verb, folder;
};

}  // namespace

Verb add_manual(CLI::App& parent) {
  auto o = std::make_shared<ManualOptions>();
  CLI::App* app = parent.add_subcommand("manual", "Print the manual page of a verb, for man");
  app->add_option("verb", o->verb, "The verb; none with --all");
  app->add_option("--all", o->folder, "Write the pages of all verbs into this folder: memwall-run.1, ...");
  app->footer(
      "An installation has the pages where man looks for them (`man memwall-run`). Without one:\n"
      "  memwall manual run | man -l -");
  return {app, [o, &parent] {
            if (o->folder.empty()) {
              print(manual_page(parent, o->verb));
              return 0;
            }
            for (const std::string& verb : verbs_with_manual(parent))
              write_output(o->folder + "/memwall-" + verb + ".1",
                           [&](std::ostream& out) { out << manual_page(parent, verb); });
            return 0;
          }};
}

}  // namespace memwall
