// How well are published collectives priced, on the rows that nothing was fitted to? Every second row of each hardware
// is fitted (models/hw/calibrate/fit.py); the others are judged here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "models/hw/collective_cost.h"
#include "models/hw/machine_file.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Point {
  std::string machine;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::uint32_t ranks = 0;
  Bytes bytes = 0;
  double bus_bandwidth = 0;  // B/s
};

std::vector<std::vector<std::string>> rows_of(const std::filesystem::path& table) {
  std::ifstream file(table);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> cells;
    std::stringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    rows.push_back(cells);
  }
  if (!rows.empty()) rows.erase(rows.begin());  // headings
  return rows;
}

const std::map<std::string, std::string>& machine_of_hardware() {
  static const std::map<std::string, std::string> kMachines{{"8xA100 NVLink3", "a100-sxm-80gb"},
                                                            {"8xH200 NVLink4 NVSwitch", "h200-sxm-141gb"},
                                                            {"8xH200 node", "h200-sxm-141gb"},
                                                            {"8xB200 NVLink5", "b200-sxm-180gb"},
                                                            {"8xB200 node", "b200-sxm-180gb"},
                                                            {"32xH200 4 nodes p5en", "h200-sxm-141gb"},
                                                            {"4xV100-32G 1 node NVLink2", "v100-sxm2-32gb"}};
  return kMachines;
}

CollectiveKind kind_of(const std::string& name) {
  if (name == "all_gather") return CollectiveKind::all_gather;
  return name == "reduce_scatter" ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
}

// The rows that were not fitted, by hardware.
std::map<std::string, std::vector<Point>> judged(const std::filesystem::path& published) {
  std::map<std::string, std::vector<Point>> all;
  for (const auto& row : rows_of(published / "nccl_collectives_busbw.csv")) {
    const auto machine = machine_of_hardware().find(row[0]);
    if (machine == machine_of_hardware().end()) continue;
    all[row[0] + " " + row[1]].push_back({machine->second, kind_of(row[1]),
                                          static_cast<std::uint32_t>(std::stoul(row[2])), std::stoll(row[6]),
                                          std::stod(row[9]) * 1e9});
  }
  for (const auto& row : rows_of(published / "vtrain_nccl_allreduce_lut_a100_v100.csv"))
    all[row[0] + " of " + row[1]].push_back({row[0] == "a100" ? "a100-sxm-80gb" : "v100-sxm2-32gb",
                                             CollectiveKind::all_reduce, static_cast<std::uint32_t>(std::stoul(row[1])),
                                             std::stoll(row[2]), std::stod(row[4]) * 1e9});
  for (auto& [hardware, points] : all) {
    std::vector<Point> odd;
    for (std::size_t i = 1; i < points.size(); i += 2) odd.push_back(points[i]);
    points = odd;
  }
  std::erase_if(all, [](const auto& entry) { return entry.second.empty(); });
  return all;
}

double error_of(const Point& p) {
  const double seconds = to_seconds(collective_cost(load_machine(p.machine), p.kind, p.bytes, p.ranks).duration);
  const double found = ring_share(p.kind, p.ranks) * static_cast<double>(p.bytes) / seconds;
  return std::abs(found / p.bus_bandwidth - 1);
}

TEST(Collectives, BusBandwidthsOfTheJudgedHalf) {
  if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with data";
  const std::filesystem::path published = *shared_data() / "published";
  std::map<std::string, std::vector<double>> by_machine, by_size;
  std::vector<double> all;
  for (const auto& [hardware, points] : judged(published))
    for (const Point& point : points) {
      const double error = error_of(point);
      all.push_back(error);
      by_machine[point.machine].push_back(error);
      by_size[point.bytes < 1 << 20    ? "below 1 MiB"
              : point.bytes < 64 << 20 ? "1 to 64 MiB"
                                       : "64 MiB and more"]
          .push_back(error);
      RecordProperty(hardware + " of " + std::to_string(point.bytes), std::to_string(error));
    }
  ASSERT_GE(all.size(), 50u);
  const auto judge = [](const std::string& what, std::vector<double> errors) {
    std::sort(errors.begin(), errors.end());
    const double median = errors[errors.size() / 2], p90 = errors[errors.size() * 9 / 10];
    std::cout << what << ": " << errors.size() << " rows, median " << 100 * median << " %, p90 " << 100 * p90 << " %\n";
    EXPECT_LE(median, 0.10) << what;
    EXPECT_LE(p90, 0.25) << what;
  };
  judge("all", all);
  for (const auto& [machine, errors] : by_machine) judge(machine, errors);
  for (const auto& [size, errors] : by_size) judge(size, errors);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
