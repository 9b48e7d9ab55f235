// A study as jobs of Slurm: an array with a task for each shard, and a job that merges them once all have ended well.
//
// Sources: slurm.schedmd.com/sbatch.html and job_array.html: `#SBATCH` lines, --array, SLURM_ARRAY_TASK_ID, --requeue,
// --dependency=afterok. A task that is requeued goes on where it was stopped, from its journal.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "cli/sweep_command.h"

namespace memwall {

struct SlurmOptions {
  std::size_t tasks = 0;                // shards; 0 = no job is asked for
  std::string script;                   // only written, not submitted; "" = submitted
  unsigned cpus = 1;                    // of each task, threads
  std::string memory, time, partition;  // as sbatch takes them; "" = as the cluster has it
};

void add_slurm_options(CLI::App& app, SlurmOptions& slurm);

// The two scripts: of the array, and of what comes behind it. `base`: path without ending, beside which the study, the
// journals and the output lie.
struct SlurmScripts {
  std::string array, merge;
};
SlurmScripts slurm_scripts(const SweepOptions& o, const SlurmOptions& slurm, const std::string& program,
                           const std::string& folder, const std::string& base);

// Writes the study and both scripts, and submits them where sbatch is there and no script alone was asked for; says
// what was written and submitted. `study`: whole, with what the command said. Returns the exit code. Throws UsageError
// where a word is none that sbatch takes, a place cannot be written, or sbatch refuses.
int run_as_slurm_job(const SweepOptions& o, const SlurmOptions& slurm, const StudyFile& study);

}  // namespace memwall
