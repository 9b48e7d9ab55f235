// place_returns (policies/cycle/move_passes.h) with ordered sets, and bytes slot by slot: what the fast one has to
// give, to the last number.
#pragma once

#include "policies/cycle/schedule_table.h"

namespace memwall {

void plain_place_returns(const ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan);

}  // namespace memwall
