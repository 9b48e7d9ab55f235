// What a machine file says of the drives of a storage tier: how many there are, how much one of them may be written in
// its life, what they take quickly and how they write once that is full.
//
// All of it is about writes, which have to be told from everything else: Tier::write_link is the link that every route
// into the tier crosses and nothing else does (no route from elsewhere, no fabric). Of several it is the last that the
// first route names, the nearest to the drives.
#pragma once

#include <string>

#include "sim/machine/machine.h"

namespace memwall {

namespace schema {
class Machine;
}

// Tier::drives, endurance and write_link of every storage tier, Link::write_cache and sustained of those links.
// REQUIRES: tiers, links, routes and fabrics are read, those that a `duplex` makes included.
void read_drives(const schema::Machine& from, Machine& machine);

// "" or what does not go together, as the file has it: a sentence without its end. REQUIRES: read_drives(from,
// machine).
std::string drive_contradiction(const schema::Machine& from, const Machine& machine);

}  // namespace memwall
