// memwall machines: which there are, and every number of one with its source.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "cli/table.h"
#include "cli/verbs/verbs.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"

namespace memwall {
namespace {

struct Options {
  std::string format = "table", machine;
  std::vector<std::string> settings;
  CLI::App* show = nullptr;
};

Table machine_list() {
  Table t{.name = "machines",
          .title = "",
          .columns = {"name", "description"},
          .headings = {"", ""},
          .rows = {},
          .wrap = true};
  for (const MachineSummary& m : list_machines()) t.rows.push_back({cell(m.name), cell(m.description)});
  return t;
}

Table machine_table(const Options& o) {
  const Machine machine = load_machine(o.machine, o.settings);
  Table t{.name = "numbers",
          .title = fmt::format("{}: {}", machine.name, machine.description),
          .columns = {"path", "value", "source"},
          .headings = {"number", "value", "where it comes from"},
          .rows = {}};
  for (const MachineNumber& n : machine_numbers(o.machine, o.settings))
    t.rows.push_back({cell(n.path), cell(n.value), cell(n.source)});
  return t;
}

}  // namespace

Verb add_machines(CLI::App& parent) {
  auto o = std::make_shared<Options>();
  CLI::App* app = parent.add_subcommand("machines", "List the machines, or show one with every number and its source");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->footer(
      "Examples:\n"
      "  memwall machines\n"
      "  memwall machines show h100-sxm-80gb\n"
      "  memwall machines show h100-sxm-80gb --set gpu.hbm.bandwidth=4TB/s");
  o->show = app->add_subcommand("show", "Every number of a machine, with its unit and where it comes from");
  o->show->add_option("machine", o->machine, "A machine's name, or the path of a machine file (.textproto)")
      ->required();
  o->show->add_option("--set", o->settings, "Override a number by its path: link.pcie_h2d.bandwidth=50GB/s")
      ->allow_extra_args(false);
  o->show->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  o->show->footer(
      "Sources that begin with \"assumption:\" are nobody's measurement. To describe a machine of your own,\n"
      "copy a file of models/hw/machines and give its path; a missing unit or source is refused by line.");
  return {app, [o] {
            const Format format = parse_format(o->format);
            print(to_text(o->show->parsed() ? machine_table(*o) : machine_list(), format));
            return 0;
          }};
}

}  // namespace memwall
