// Machines come from text files with a schema (machine.proto). Every number in
// them has a unit and a source; nothing is taken silently.
//
// Errors in a file: InputError "FILE:LINE:COLUMN: what was found, what was
// expected, the nearest valid name". Unknown machine or bad override: UsageError.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace memwall {

// One number of a machine file, as written.
struct MachineNumber {
  std::string path;    // "gpu.hbm.bandwidth", "route.h2d.latency": what an override names
  std::string value;   // "3.35 TB/s"; of a curve "1 MiB: 0.42, 16 MiB: 0.95"
  std::string source;  // where it comes from; "--set" for an override
};

struct MachineSummary {
  std::string name, description;
};

// By name ("h100-sxm-80gb") or path ("./mine.textproto"). `settings` are overrides
// such as "gpu.hbm.bandwidth=4TB/s"; elements of lists are named: "link.pcie_h2d.bandwidth=50GB/s".
Machine load_machine(const std::string& name_or_path, const std::vector<std::string>& settings = {});

// From the text of a machine file; `name` is for messages.
Machine parse_machine(const std::string& text, const std::string& name);

// Every number with its unit and source, in file order.
std::vector<MachineNumber> machine_numbers(const std::string& name_or_path,
                                           const std::vector<std::string>& settings = {});

// Where they are: the environment's MEMWALL_MACHINES, else the folder that comes with memwall.
std::filesystem::path machine_folder();

// The machines that come with memwall (or are in MEMWALL_MACHINES), by name. A file that is damaged is left out; its
// sentence goes to `damaged`, if given.
std::vector<MachineSummary> list_machines(std::vector<std::string>* damaged = nullptr);
std::vector<Machine> sound_machines(std::vector<std::string>* damaged);
// Of those the ones that say all of themselves: no node or cluster made of another's GPU (models/hw/machine_base.h).
std::vector<Machine> whole_machines();
// Is there a machine of this name among them? Reads its file alone.
bool has_machine(const std::string& name);

// The machine whose GPU a capture reports under this name: among equal names the one
// whose memory is nearest to `total_memory` (bytes; 0 = not known). "" if none, or
// if the memory differs by more than a tenth. Damaged files are passed over. Of files that do not name the device
// anywhere only the text is looked at.
std::string machine_for_device(const std::string& device_name, Bytes total_memory);

}  // namespace memwall
