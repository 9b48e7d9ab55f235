// A machine file that says only what differs from another one, its base: `base: "a100-sxm-80gb"`.
#pragma once

#include <machine.pb.h>  // generated from machine.proto

namespace memwall {

// `difference` on top of `base`, which becomes the whole. A number, a curve, a word or a list of words takes the place
// of the base's; of a list of blocks (link, route, fabric, tier) those of equal names are put on top of each other,
// others are added at the end. The published rows that the base's numbers answer for (`calibration`) are the base's alone.
void put_on_base(const schema::Machine& difference, schema::Machine& base);

}  // namespace memwall
