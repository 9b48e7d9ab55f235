// What a run shows of the parts of its machine, by their place in the machine of one GPU; of several ranks together.
// Internal to study/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "traces/run/run.h"

namespace memwall {

class OverrideFigures {
 public:
  // `numbers`: of the run's machine. The run outlives it.
  OverrideFigures(const Run& run, const std::vector<MachineNumber>& numbers);

  Bytes link_bytes(std::size_t link) const;  // carried
  double peak_rate(std::size_t link) const;  // bytes per second; infinite where rates were not recorded
  bool is_derived(const std::string& link) const { return !stated_links_.contains(link); }  // of a duplex block

  Bytes route_bytes(std::size_t route) const { return route_bytes_[route]; }
  bool is_slowed(std::size_t route) const { return slowed_[route]; }  // did a transfer take longer than alone?

  // Of all groups that run collectives.
  const std::set<std::uint32_t>& collective_ranks() const { return collective_ranks_; }

  bool is_used(std::size_t tier) const;
  Bytes peak_reserved(std::size_t tier) const;
  // Would the run be the same if the tier held so many bytes of tensors?
  bool fits_in(std::size_t tier, Bytes bytes) const;

 private:
  void look_at_ops();
  void look_at_transfer(OpId id, const std::vector<int>& tier_of_place);

  const Run& run_;
  std::set<std::string> stated_links_;
  std::vector<Bytes> route_bytes_;
  std::vector<bool> slowed_;
  std::set<std::uint32_t> collective_ranks_;
};

// "26 GB/s", "31.2 GB".
std::string bandwidth_text(double bytes_per_second);
std::string memory_text(Bytes bytes);

// Are both the same number: "26 GB/s", "26e9 B/s"?
bool same_quantity(const std::string& a, const std::string& b);

}  // namespace memwall
