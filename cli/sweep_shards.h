// `memwall sweep --shard` and `memwall sweep merge`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/sweep_command.h"

namespace memwall {

// Runs the shard's points, keeps them in its journal, and says how many they were. Exit code 0 whatever they gave: the
// merged study says which of them failed. `watch`: as sweep() takes it.
int run_shard(const SweepOptions& o, const StudyFile& study, const SweepRequest& request, const std::string& shard,
              const SweepWatch& watch);

// The answer of the study whose shards these journals are, as the study itself would have given it.
int merge_shards(const SweepOptions& o, const std::vector<std::string>& journals);

}  // namespace memwall
