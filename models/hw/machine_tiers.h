// What a machine file says of its tiers besides their size: where work can be done in their memory, and on which links
// of a route the bytes cross compressed.
//
// A tier with `compression` stores bytes / ratio. Which links carry that little is told route by route (`compressed`):
// those behind the engine that compresses. That engine is a link as any other; as it takes what is not compressed yet,
// it stands among `crosses` alone.
#pragma once

#include <string>

#include "sim/machine/machine.h"

namespace memwall {

namespace schema {
class Host;
class Machine;
}  // namespace schema

// Host memory that a container may not take (`memory_limit`) is not there: what the system takes for itself is outside
// of the container and of its limit. REQUIRES: `tier` is the host's, as its `dram` says.
void limit_host_memory(const schema::Host& from, Tier& tier);

// Tier::memory_link of every tier. REQUIRES: tiers and links are read; the names are known.
void read_memory_links(const schema::Machine& from, Machine& machine);

// Route::link_shares: 1 / compression on compressed links, and on what a `duplex` made of them. Throws InputError where
// a route is compressed on a link that it does not cross. REQUIRES: routes and duplex links are read; the names are
// known.
void read_compressed_links(const schema::Machine& from, Machine& machine);

// "" or what does not go together: a sentence without its end.
std::string tier_contradiction(const Machine& machine);

}  // namespace memwall
