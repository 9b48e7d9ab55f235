#include "cli/print/route_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/print/table_cells.h"
#include "sim/machine/route_bound.h"

namespace memwall {
namespace {

Cell bandwidth_cell(double bytes_per_second) {
  return number_cell(human_rate(bytes_per_second), plain_number(bytes_per_second));
}

std::string names_of(const std::vector<std::uint16_t>& links, const Machine& machine) {
  std::vector<std::string> names;
  for (const std::uint16_t link : links) names.push_back(machine.links[link].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Table route_table(const Machine& machine) {
  Table t{.name = "routes",
          .title =
              "Routes: the links they take, and which of them bound one transfer; shared: of each GPU while all "
              "that share these links use them",
          .columns = {"route", "from", "to", "links", "bound_by", "bandwidth_bytes_per_s", "shared_bytes_per_s"},
          .headings = {"route", "from", "to", "over the links", "bounded by", "at", "shared"},
          .rows = {},
          .wrap = true};
  for (const Route& route : machine.routes) {
    const RouteBound bound = bound_of(machine, route);
    t.rows.push_back({cell(route.name), cell(machine.tiers[route.from].name), cell(machine.tiers[route.to].name),
                      cell(names_of(route.links, machine)), cell(text_of(bound, machine)),
                      bandwidth_cell(bound.bandwidth), bandwidth_cell(shared_bound_of(machine, route).bandwidth)});
  }
  return t;
}

std::string reach_of(const Fabric& fabric) {
  if (fabric.max_ranks == 0) return "any number";
  return fabric.max_ranks == 1 ? "nobody" : fmt::format("{} ranks", fabric.max_ranks);
}

Table fabric_table(const Machine& machine) {
  Table t{.name = "fabrics",
          .title = "Fabrics: of those that reach its ranks a collective takes the first",
          .columns = {"fabric", "reach", "links", "bus_bandwidth_bytes_per_s"},
          .headings = {"fabric", "reaches", "over the links", "bus bandwidth"},
          .rows = {},
          .wrap = true};
  for (const Fabric& fabric : machine.fabrics)
    t.rows.push_back({cell(fabric.name), cell(reach_of(fabric)), cell(names_of(fabric.links, machine)),
                      bandwidth_cell(fabric.bus_bandwidth)});
  return t;
}

}  // namespace

Table run_route_table(const RunSummary& s) {
  Table t{
      .name = "routes",
      .title = "Routes between tiers that carried anything: the links they take, and which of them bound one transfer",
      .columns = {"route", "from", "to", "links", "bound_by", "bandwidth_bytes_per_s", "bytes"},
      .headings = {"route", "from", "to", "over the links", "bounded by", "at", "carried"},
      .rows = {},
      .wrap = true};
  for (const RouteSummary& r : s.routes)
    t.rows.push_back({cell(r.name), cell(r.from), cell(r.to), cell(fmt::format("{}", fmt::join(r.links, ", "))),
                      cell(r.bound_by), bandwidth_cell(r.bandwidth), bytes_cell(r.bytes)});
  return t;
}

std::vector<Table> machine_route_tables(const Machine& machine) {
  std::vector<Table> tables{route_table(machine)};
  if (!machine.fabrics.empty()) tables.push_back(fabric_table(machine));
  return tables;
}

}  // namespace memwall
