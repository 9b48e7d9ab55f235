// Changes to a run file that leave its checksums right, as an earlier memwall or someone who means harm would make
// them.
#pragma once

#include <string>

namespace memwall {

// Of the bytes of a run file: makes every checksum right again. REQUIRES: its first block says how long it is.
void reseal(std::string& bytes);

}  // namespace memwall
