// Copies and storage: one law per route, and what two directions at once leave of each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

constexpr std::size_t kFewestSizes = 3;

struct RouteBenchmark {
  const char* benchmark;
  const char* route;
  const char *from, *to;
  bool pageable = false, required = false;
  bool fastest_at_large = false;  // a cache serves small sizes
  double longest_latency = 0.01;  // seconds
};
constexpr RouteBenchmark kRoutes[] = {
    {"copy_host_hbm_pinned", "h2d", "host", "hbm", false, true},
    {"copy_hbm_host_pinned", "d2h", "hbm", "host", false, true},
    {"copy_host_hbm_pageable", "h2d_pageable", "host", "hbm", true},
    {"copy_hbm_host_pageable", "d2h_pageable", "hbm", "host", true},
    {"copy_hbm_hbm", "d2d", "hbm", "hbm", false, false, true},
    {"storage_read", "nvme_to_host", "nvme", "host", false, false, false, 0.1},
    {"storage_write", "host_to_nvme", "host", "nvme", false, false, false, 0.1},
    {"copy_hbm_peer", "to_peer", "hbm", "peer_hbm"},
    {"copy_hbm_peer", "from_peer", "peer_hbm", "hbm"},  // nothing measures it apart
};

std::vector<std::string> curve_points(const TransferTimeModel& law) {
  std::vector<std::string> points;
  for (const auto& [bytes, share] : law.efficiency)
    points.push_back(fmt::format("{}: {}", size_text(bytes), plain_text(share)));
  return points;
}

double raw_pcie_rate(const Fitting& fitting) {
  constexpr double per_lane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  // An idle link is slower than it can be: the most that the device and its slot can do counts, where it is known.
  const auto most = [&](const std::string& key) {
    return std::max(fitting.environment_number(key), fitting.environment_number(key + "_most"));
  };
  const double generation = most("pcie.generation"), width = most("pcie.width");
  const bool known = generation >= 1 && generation < static_cast<double>(std::size(per_lane)) && width >= 1;
  return known ? per_lane[static_cast<std::size_t>(generation)] * width : 0;
}

void require_physics(const Fitting& fitting, const RouteBenchmark& b, const TransferTimeModel& law) {
  const double fastest =
      std::max(fitting.machine_file.number("gpu.hbm.bandwidth"), fitting.machine_file.number("host.dram.bandwidth"));
  if (law.bandwidth > 1.05 * fastest)
    throw InputError(fmt::format("{}: {} are more than the memories on either side carry ({}); expected less.",
                                 b.benchmark, rate_text(law.bandwidth), rate_text(fastest)));
  const double pcie = raw_pcie_rate(fitting);
  const bool over_pcie = std::string(b.route).starts_with("h2d") || std::string(b.route).starts_with("d2h");
  if (over_pcie && !fitting.host && pcie > 0 && law.bandwidth > 2 * pcie)
    throw InputError(fmt::format("{}: {} are more than twice the {} of PCIe as the environment states it.", b.benchmark,
                                 rate_text(law.bandwidth), rate_text(pcie)));
  if (law.latency > b.longest_latency)
    throw InputError(fmt::format("{}: the latency would be {}; expected at most {}.", b.benchmark,
                                 time_text(law.latency), time_text(b.longest_latency)));
}

std::vector<PricedRow> priced(const std::vector<Measurement>& rows, const RouteBenchmark& b) {
  std::vector<PricedRow> result;
  for (const Measurement& row : rows)
    result.push_back({row, [&b, bytes = std::llround(size_of(row))](const Machine&, const Pricer& pricer) {
                        return to_seconds(pricer.copy(b.from, b.to, bytes, b.pageable));
                      }});
  return result;
}

// A link of its own, not memory that others measure: it carries what its fastest route does.
bool is_own_link(const std::string& path) { return path.starts_with("link."); }

void fit_links(Fitting& fitting, const RouteBenchmark& b, const TransferTimeModel& law, const std::string& sentence,
               const std::vector<PricedRow>& rows) {
  for (const std::string& path : fitting.machine_file.bandwidths_crossed(std::string("route.") + b.route)) {
    const bool fitted = std::any_of(fitting.numbers.begin(), fitting.numbers.end(),
                                    [&](const FittedNumber& n) { return n.path == path; });
    // The wire itself: pcie_h2d, nvme_read, nvlink_out. An uplink that several GPUs share is the base's.
    const bool shared = fitting.machine_file.number(path.substr(0, path.rfind('.')) + ".sharers", 1) > 1;
    const bool storage = std::string(b.route).find("nvme") != std::string::npos;
    if (is_own_link(path) && !fitted && !b.pageable && (storage || !shared))
      fitting.fit(path, rate_text(law.bandwidth), sentence, rows);
    else
      fitting.require_bandwidth(path, law.bandwidth, b.benchmark);
  }
}

void fit_route(Fitting& fitting, const RouteBenchmark& b) {
  const std::vector<Measurement> rows = time_rows(fitting.set, b.benchmark);
  const std::string path = std::string("route.") + b.route;
  if (rows.empty() && !b.required) return;
  const std::vector<SizedTime> times = times_by_size(rows);
  if (times.size() < kFewestSizes) {
    const std::string found =
        fmt::format("{} has {} measured sizes; {} are needed", b.benchmark, times.size(), kFewestSizes);
    if (b.required) throw InputError(fmt::format("Calibration: {}.", found));
    fitting.notes.push_back(fmt::format("{}: {} is the base's.", found, path));
    return;
  }
  if (!fitting.machine_file.has(path)) {
    fitting.notes.push_back(fmt::format("{} is not used: the base has no {}.", b.benchmark, path));
    return;
  }
  const TransferTimeModel law = fit_transfer_time(times, b.fastest_at_large);
  require_physics(fitting, b, law);
  const std::string sentence = sizes_sentence(rows);
  const std::vector<PricedRow> explained = priced(rows, b);
  fit_links(fitting, b, law, sentence, explained);
  fitting.fit(path + ".bandwidth", rate_text(law.bandwidth), sentence, explained);
  fitting.fit(path + ".latency", time_text(law.latency), sentence, explained);
  fitting.machine_file.clear(path + ".efficiency");
  if (law.efficiency.empty()) return;
  fitting.machine_file.set_curve(path + ".efficiency", curve_points(law), "measured");
  fitting.numbers.push_back({path + ".efficiency", sentence, explained});
}

// --- both directions at once ---

struct DuplexShare {
  std::vector<Measurement> rows;  // of one direction
  double share = 0;               // of the link's bandwidth
};

DuplexShare duplex_share(const Fitting& fitting, const std::string& direction, const char* route,
                         const std::string& link) {
  DuplexShare result;
  double largest = 0;
  for (const Measurement& row : time_rows(fitting.set, "copy_both_pinned")) {
    const auto found = row.parameters.find("direction");
    if (found == row.parameters.end() || found->second != direction) continue;
    result.rows.push_back(row);
    largest = std::max(largest, size_of(row));
  }
  if (result.rows.empty()) return result;
  times_by_size(result.rows);
  // Where the latency counts, less than a link is asked for, and nothing is learnt of it.
  std::erase_if(result.rows, [&](const Measurement& row) { return size_of(row) < largest / 16; });
  const double bandwidth = fitting.machine_file.number(link);
  const std::string path = std::string("route.") + route;
  std::vector<double> shares;
  for (const Measurement& row : result.rows) {
    const double rate = size_of(row) / row.median;
    if (rate > 1.1 * fitting.machine_file.number(path + ".bandwidth"))
      throw InputError(
          fmt::format("{}: {} beside opposite copies are more than the {} of one copy alone; expected at "
                      "most a tenth more.",
                      row_name(row), rate_text(rate), rate_text(fitting.machine_file.number(path + ".bandwidth"))));
    shares.push_back(std::min(1.0, rate / bandwidth));
  }
  result.share = median(shares);
  return result;
}

std::vector<PricedRow> priced_duplex(const std::vector<Measurement>& rows, bool to_device) {
  std::vector<PricedRow> result;
  for (const Measurement& row : rows)
    result.push_back({row, [bytes = size_of(row), to_device](const Machine& machine, const Pricer& pricer) {
                        return duplex_copy_seconds(machine, pricer, bytes, to_device);
                      }});
  return result;
}

}  // namespace

void fit_routes(Fitting& fitting) {
  for (const RouteBenchmark& b : kRoutes) fit_route(fitting, b);
}

void fit_duplex(Fitting& fitting) {
  const std::string forward_link = "link.pcie_h2d.bandwidth", backward_link = "link.pcie_d2h.bandwidth";
  if (!fitting.machine_file.has(forward_link) || !fitting.machine_file.has(backward_link)) return;
  const DuplexShare forward = duplex_share(fitting, "host_to_device", "h2d", forward_link);
  const DuplexShare backward = duplex_share(fitting, "device_to_host", "d2h", backward_link);
  if (forward.rows.empty() && backward.rows.empty()) return;
  if (forward.rows.empty() || backward.rows.empty()) {
    fitting.notes.push_back("copy_both_pinned was measured in one direction only; duplex.pcie_duplex is the base's.");
    return;
  }
  const std::string path = "duplex.pcie_duplex";
  fitting.machine_file.set_text(path + ".forward", "pcie_h2d");
  fitting.machine_file.set_text(path + ".backward", "pcie_d2h");
  const auto sentence = [](const DuplexShare& o, const char* direction) {
    return fmt::format("{}, {}", sizes_sentence(o.rows), direction);
  };
  fitting.fit(path + ".forward_share", plain_text(forward.share), sentence(forward, "host_to_device"),
              priced_duplex(forward.rows, true));
  fitting.fit(path + ".backward_share", plain_text(backward.share), sentence(backward, "device_to_host"),
              priced_duplex(backward.rows, false));
}

}  // namespace memwall
