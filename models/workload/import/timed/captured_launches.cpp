#include "models/workload/import/timed/captured_launches.h"

namespace memwall {

std::uint32_t CapturedLaunches::intern(const CapturedLaunch& launch) {
  if (last_ < launches_.size() && launches_[last_] == launch) return last_;
  const auto [found, is_new] = numbers_.try_emplace(launch, static_cast<std::uint32_t>(launches_.size()));
  if (is_new) launches_.push_back(launch);
  return last_ = found->second;
}

}  // namespace memwall
