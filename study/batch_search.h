// Simulates a scenario's step at one number of samples after the other: the probe of find_largest_batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/batch/batch_request.h"
#include "study/largest_batch.h"
#include "study/study.h"

namespace memwall {

class BatchSearch {
 public:
  // `option`: what asked for the search, for messages: "--find-largest-batch". `watch`: null = nobody. `device_bytes`:
  // as of RunOptions. Throws UsageError where the scenario's policies name a batch.
  BatchSearch(Scenario scenario, std::string option, Study& study, Watch* watch, Bytes device_bytes = 0);

  // Throws UsageError where nobody says how many samples a step has.
  void require_samples(const Trace& trace) const;
  // The scenario at this many samples per step and rank.
  Scenario at(std::int64_t samples) const;
  BatchProbe operator()(std::int64_t samples, std::optional<BatchLimit>* limit);

 private:
  Study& study_;
  Watch* watch_;
  std::string option_;
  Scenario scenario_;  // its policies do not set the batch
  BatchRequest batch_;
  Bytes device_bytes_ = 0;
  int probes_ = 0;
};

}  // namespace memwall
