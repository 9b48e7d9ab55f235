// Several captures of one job become one trace: each rank's program, and the rendezvous of their collectives.
//
// A captured collective lasts until the last rank has arrived; what is its own is the duration of that last arriver.
// So every member of a rendezvous gets that duration, and who waits for whom follows from the replay. The captured
// starts and ends serve for matching alone; but of the ranks' programs relative to each other one thing must be kept:
// when each began. A rank's times count from its own first event, and before that its window is empty; the rank whose
// first event is later by d on the common clock gets d as host time before its first op (and before work that was
// already on its streams). So its first arrival is as captured, and after that arrivals are derived.
//
// A batch of sends and receives is one kernel that exchanges with several ranks. Where the capture says with whom, it
// becomes one op for each kernel of another rank that it meets (batched_exchanges.h), so that each pair waits for
// itself: a middle stage of a pipeline for both neighbours, and each of them for it alone.
//
// Ranks of the job that are not among the files arrive, in effect, with the last of those that are: its captured
// duration contains the wait for them, and stays so. Collectives that no other file has keep their captured duration.
#pragma once

#include <vector>

#include "models/workload/import/timed/imported_step.h"

namespace memwall {

// The steps must carry what joins them (ImportedStep::rank).
// Throws UsageError for a step of a format that has none, two files of one rank, files of different world sizes;
// InputError for a rank outside its job, for captures of several devices in one process, and as match_collectives does.
// REQUIRES: at least two steps, each sound and of one rank.
ImportedStep joined_steps(std::vector<ImportedStep> steps);

// Of a capture that stays alone: groups, the size of the job, and, where it has collectives, that they contain waiting
// for the ranks that are absent. Does nothing where ImportedStep::rank is not set.
void describe_rank(ImportedStep& step);

}  // namespace memwall
