// memwall machines: which there are, every number of one with its source, several side by side, and how well their
// files reproduce the tables that they were fitted to.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/print/machine_tables.h"
#include "cli/print/route_tables.h"
#include "cli/print/table.h"
#include "cli/verbs/verbs.h"
#include "models/hw/machine_file.h"
#include "sim/byte_units.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

struct MachinesOptions {
  std::string format = "table", machine, tables;
  std::vector<std::string> settings, machines;
  bool points = false;
  CLI::App *show = nullptr, *compare = nullptr, *check = nullptr;
};

std::vector<Machine> listed_machines() {
  std::vector<std::string> damaged;
  std::vector<Machine> machines = sound_machines(&damaged);
  for (const std::string& sentence : damaged) print_error("memwall machines: left out: {}\n", sentence);
  return machines;
}

Table machine_list(Format format) {
  const bool programs = format == Format::json || format == Format::csv;
  return programs ? machine_description_table(listed_machines()) : machine_list_table(listed_machines());
}

Table comparison(const MachinesOptions& o) {
  constexpr std::size_t kMost = 8;
  if (o.machines.size() < 2 || o.machines.size() > kMost)
    throw UsageError(fmt::format("found {} machines; expected 2 to {}.", o.machines.size(), kMost));
  std::vector<Machine> machines;
  for (const std::string& name : o.machines) machines.push_back(load_machine(name, o.settings));
  return machine_comparison_table(machines);
}

// Published tables are not part of memwall.
fs::path table_folder(const MachinesOptions& o) {
  const char* shared = std::getenv("MEMWALL_SHARED");
  fs::path folder = o.tables;
  if (folder.empty() && shared != nullptr && *shared != '\0') folder = fs::path(shared) / "data" / "published";
  if (folder.empty())
    throw UsageError("found no published tables; give their folder with --tables, or set MEMWALL_SHARED.");
  if (!fs::is_directory(folder))
    throw UsageError(fmt::format("--tables {}: this is no folder; expected one of published tables.", folder.string()));
  return folder;
}

int check_machines(const MachinesOptions& o, Format format) {
  const fs::path folder = table_folder(o);
  std::vector<std::string> names = o.machines;
  if (names.empty())
    for (const Machine& m : listed_machines()) names.push_back(m.name);
  std::vector<MachineCheck> checks;
  int code = 0;
  for (const std::string& name : names) {
    checks.push_back({load_machine(name).name, check_components(name, folder)});
    for (const ComponentCheck& c : checks.back().components) {
      if (c.rows.held_out || c.within()) continue;
      print_error("memwall machines: {}, {}: median residual {:.1f} %, more than {:.1f} %\n", name, c.rows.name,
                  100 * c.median, 100 * c.rows.limit);
      code = kOutside;
    }
  }
  print(o.points ? to_text(machine_point_table(checks), format) : to_text(machine_check_tables(checks), format));
  return code;
}

// Sizes in one unit, whichever their source has: "450 MiB" is "471.9 MB" among others. Programs get what the file says.
Cell value_cell(const std::string& value) {
  const std::optional<Bytes> bytes = value.ends_with('B') ? parse_bytes(value) : std::nullopt;
  return bytes ? cell(human_bytes(*bytes), value) : cell(value);
}

std::vector<Table> machine_tables(const MachinesOptions& o) {
  const Machine machine = load_machine(o.machine, o.settings);
  Table t{.name = "numbers",
          .title = fmt::format("{}: {}", machine.name, machine.description),
          .columns = {"path", "value", "source"},
          .headings = {"number", "value", "where it comes from"},
          .rows = {},
          .wrap = true};
  for (const MachineNumber& n : machine_numbers(o.machine, o.settings))
    t.rows.push_back({cell(n.path), value_cell(n.value), cell(n.source)});
  std::vector<Table> tables{std::move(t)};
  for (Table& more : machine_route_tables(machine)) tables.push_back(std::move(more));
  return tables;
}

// Programs that read the numbers as one table go on to do so.
void print_machine(const MachinesOptions& o, Format format) {
  const std::vector<Table> tables = machine_tables(o);
  const bool programs = format == Format::json || format == Format::csv;
  print(programs ? to_text(tables.front(), format) : to_text(tables, format));
}

void add_compare_machines(CLI::App& app, MachinesOptions& o) {
  o.compare = app.add_subcommand("compare", "Several machines side by side, and each over the first");
  o.compare->add_option("machines", o.machines, "Machines' names, or paths of machine files")->required();
  o.compare->add_option("--set", o.settings, "Override a number of all of them")->allow_extra_args(false);
  o.compare->add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  o.compare->footer(
      "\"of each, all at once\": what one GPU has while all that share its links use them. Rates per FLOP and prices\n"
      "take the dense 16-bit peak. A dash stands for what a file does not say.");
}

void add_check_machines(CLI::App& app, MachinesOptions& o) {
  o.check = app.add_subcommand("check", "How far machine files are from the published tables that they were fitted to");
  o.check->add_option("machines", o.machines, "Machines' names, or paths of machine files; all where none is given");
  o.check->add_option("--tables", o.tables, "Folder of the tables (default: data/published below MEMWALL_SHARED)");
  o.check->add_flag("--points", o.points, "Every measured point beside its prediction");
  o.check->add_option("--format", o.format, "table, json, csv or md")->capture_default_str();
  o.check->footer(
      "Exit code 4 where the median residual of a component is above 5 %, or above what the file says with its reason\n"
      "(calibration.limit). \"held out\": rows that nothing was fitted to.");
}

}  // namespace

Verb add_machines(CLI::App& parent) {
  auto o = std::make_shared<MachinesOptions>();
  CLI::App* app = parent.add_subcommand("machines", "List the machines, or show one with every number and its source");
  app->add_option("machine", o->machine, "A machine's name or file: as show");
  app->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  app->footer(
      "Examples:\n"
      "  memwall machines\n"
      "  memwall machines h100-sxm-80gb\n"
      "  memwall machines show h100-sxm-80gb --set gpu.hbm.bandwidth=4TB/s\n"
      "  memwall machines compare a100-sxm-80gb h100-sxm-80gb mi300x\n"
      "  memwall machines check --tables ../shared/data/published");
  o->show = app->add_subcommand("show", "Every number of a machine, with its unit and where it comes from");
  o->show->add_option("machine", o->machine, "A machine's name, or the path of a machine file (.textproto)")
      ->required();
  o->show
      ->add_option("--set", o->settings,
                   "Override a number by its path: gpu.hbm.bandwidth=4TB/s; or its bus: pcie=gen3|gen4|gen5|gen6, "
                   "nvlink=off")
      ->allow_extra_args(false);
  o->show->add_option("--format", o->format, "table, json, csv or md")->capture_default_str();
  o->show->footer(
      "Sources that begin with \"assumption:\" are nobody's measurement. To describe a machine of your own,\n"
      "copy a file of models/hw/machines and give its path; a missing unit or source is refused by line.");
  add_compare_machines(*app, *o);
  add_check_machines(*app, *o);
  return {app, [o] {
            const Format format = parse_format(o->format);
            if (o->check->parsed()) return check_machines(*o, format);
            if (o->compare->parsed())
              print(to_text(comparison(*o), format));
            else if (o->machine.empty())
              print(to_text(machine_list(format), format));
            else
              print_machine(*o, format);
            return 0;
          }};
}

}  // namespace memwall
