// A step at a third size, from captures of one program at two: another batch, or another length.
//
// Every size of a storage and every extent of a shape is a line through its two values (sizes are samples, or
// tokens where only those differ). A storage whose shape is known has the bytes of its new shape, which is exact where
// two extents grow (attention scores over the length). FLOPs, durations and waves of an op follow the product of those
// extents of its work that change, or the size itself where its shape is unknown. The host's program and its times are
// those of the nearer capture. What does not fit (no partner, no whole number, bytes or work that would be negative)
// stays as the nearer capture has it, and is counted and named in the notes.
#pragma once

#include <cstdint>
#include <string>

#include "sim/trace/trace.h"

namespace memwall {

enum class SizeUnit : std::uint8_t { samples, tokens };
std::string_view to_string(SizeUnit unit);

// What the captures differ in: samples per step, or tokens per step at equal samples.
// Throws UsageError where they do not say, are alike, or are no whole numbers.
SizeUnit unit_of_sizes(const Trace& first, const Trace& second);

// The step at `size` of that unit. At the size of one of the two it is that one.
// Throws UsageError where the traces are not of one program (less than half of the ops are alike), or where the result
// would be larger than a machine's memory could be.
// REQUIRES: check() of both is empty; size >= 1.
Trace at_size(const Trace& first, const Trace& second, std::int64_t size);

}  // namespace memwall
