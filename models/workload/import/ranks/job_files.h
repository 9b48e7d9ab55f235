// The files of one job as a command line names them: which are captures of its ranks, and which ExecutionTrace is
// whose.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace memwall {

struct JobFile {
  std::filesystem::path capture, execution_trace;  // the latter may be empty
};

struct JobFiles {
  std::vector<JobFile> files;      // in the order given, of a folder by name
  std::vector<std::string> notes;  // what a folder holds, how ExecutionTraces were matched
  std::vector<std::string> left_out;  // sentences: which files of a folder are no captures
};

// A folder stands for the captures directly in it, Kineto and .mwi, and for the ExecutionTraces there; what else it
// holds is left out. An ExecutionTrace among several captures joins one of them, as those of `execution_traces` do:
// that of the same rank; where ranks are not told, and there are as many as captures, that at the same place of the
// order. A file that is given alone stays as it is, whatever it is. Throws InputError for a folder without captures,
// UsageError for an ExecutionTrace of no capture's rank, or two of one. A folder among `execution_traces` stands for those
// in it, of which those of no capture's rank are passed over, unless that is all. REQUIRES: `given` is not empty.
JobFiles job_files(const std::vector<std::filesystem::path>& given,
                   const std::vector<std::filesystem::path>& execution_traces);

}  // namespace memwall
