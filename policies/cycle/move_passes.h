// The second and third pass of the move scheduler, behind MoveChoice. Internal to policies/cycle.
#pragma once

#include "policies/cycle/schedule_table.h"

namespace memwall {

// The slots in which copies out are issued, and their order: whenever a path is idle, of those whose content is there
// the one whose memory is needed first.
void order_departures(const ScheduleTable& table, MovePlan& plan);

// When memory is given up and what is away comes back, through one turn. `latest`: MoveChoice::latest().
void place_returns(const ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan);

}  // namespace memwall
