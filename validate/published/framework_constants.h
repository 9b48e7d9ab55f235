// What a program and its cluster do to the times that the cost model gives: the few numbers that are fitted to the
// first half of a published table, and judged by the second (judged_tables.h).
#pragma once

#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace memwall {

// Multiples of what machine file and cost model say. 1 = as they say.
struct FrameworkConstants {
  // Time of matrix products where arithmetic bounds them: libraries of another year, clocks under the power limit of a
  // job that runs for hours. Kernels that memory bounds, and attention, draw less power.
  double products = 1;
  // Bus bandwidth of collectives, of every fabric: protocol, topology and congestion of the cluster.
  double network = 1;
  // Time of the host's calls and of what the framework does between them: processor, interpreter, hooks.
  double host = 1;
  bool operator==(const FrameworkConstants&) const = default;
};

// The machine whose matrix products, of all types, take `time` times as long where arithmetic bounds them.
Machine with_products(Machine machine, double time);

// The machine with `network` applied. Links that collectives cross keep their bandwidth.
Machine with_network(Machine machine, double network);

// Policies whose hooks take the host so many times what they take without a setting.
std::vector<std::string> with_hooks(std::vector<std::string> policies, double host);

// As Scenario::scale takes it: "kernels=1,host=1.1,collectives=1".
std::string scale_text(const FrameworkConstants& constants);

// Those that were fitted to the first half of this table by `memwall validate --published FOLDER --fit`: of products
// and collectives to the rows on this GPU, of the host to those on this GPU or, where it has none, on the
// others: what a program does between two calls it does on every computer. All 1 where nothing was fitted.
FrameworkConstants fitted_constants(const std::string& table, const std::string& gpu);
// Was anything fitted to rows of this table on this GPU? Else its machine file is taken as it is.
bool has_fitted_constants(const std::string& table, const std::string& gpu);

}  // namespace memwall
