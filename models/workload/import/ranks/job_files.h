// The files of one job as a command line names them: which are captures of its ranks, and which ExecutionTrace is
// whose.
#pragma once

#include <cstdint>
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

// Is it a folder, or an archive of several files? Never throws.
bool stands_for_several(const std::filesystem::path& path);

// A folder stands for the captures directly in it (Kineto, .mwi, Nsight Systems' exports, ROCm's profiles), and for the
// ExecutionTraces there; what else it holds is left out. So does an archive of several files for those in it, which are
// named ARCHIVE:MEMBER; databases cannot be read there. An archive that holds none stays as it is. An ExecutionTrace among several captures joins one of them, as those of `execution_traces` do:
// that of the same rank; where ranks are not told, and there are as many as captures, that at the same place of the
// order. A file that is given alone stays as it is, whatever it is. Throws InputError for a folder without captures,
// UsageError for an ExecutionTrace of no capture's rank, or two of one. A folder among `execution_traces` stands for those
// in it, of which those of no capture's rank are passed over, unless that is all. REQUIRES: `given` is not empty.
JobFiles job_files(const std::vector<std::filesystem::path>& given,
                   const std::vector<std::filesystem::path>& execution_traces);

// That of the files which is of this rank: by what they say; where none says it, by their order. Throws UsageError naming
// the ranks that are there. REQUIRES: there are files.
JobFile file_of_rank(const JobFiles& job, std::uint32_t rank);

// Throws UsageError unless this is the rank that the capture itself says.
void require_rank(const std::filesystem::path& capture, std::uint32_t rank);

}  // namespace memwall
