// What was transferred how, by class: for the notes of a trace that moved to another machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/hw/transferred_duration.h"

namespace memwall {

class TransferCounts {
 public:
  // `op` as it was measured.
  void add(const Op& op, const TransferredDuration& result);

  std::size_t changed() const { return changed_; }

  // One sentence for each class and rule, most time first: count, share of the measured device time, median factor,
  // interval (mean by time).
  std::vector<std::string> lines() const;

 private:
  struct Group {
    double seconds = 0, error_seconds = 0;
    std::vector<float> factors;
  };
  std::map<std::pair<std::string, TransferRule>, Group> groups_;
  double seconds_ = 0;
  std::size_t changed_ = 0;
};

}  // namespace memwall
