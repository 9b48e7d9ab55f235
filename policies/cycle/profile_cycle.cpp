#include "policies/cycle/profile_cycle.h"

#include "policies/cycle/rerun_prices.h"

namespace memwall {

const ProfileCycle& cycle_of(const StepProfile& profile) {
  return profile.derived().once<ProfileCycle>([&] { return ProfileCycle(profile); });
}

const RerunPrices& rerun_prices_of(const StepProfile& profile) {
  const ProfileCycle& made = cycle_of(profile);
  return profile.derived().once<RerunPrices>([&] { return least_rerun_prices(profile, made.step, made.cycle); });
}

}  // namespace memwall
