// Is a trace a program that can run? Asked after import and after every rewriter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Sentences, one per fault found (at most `limit`), naming op number and storage;
// empty when the trace is sound: indices in range, no negative size or duration,
// every read has a live writer, allocs and frees balance, waits name recorded
// events, hand-overs point backward, phases stand in order within a step, and ranks in one trace share nothing but
// the rendezvous of their collectives.
std::vector<std::string> check(const Trace& trace, std::size_t limit = 20);

// Throws InputError with the first sentences if `check` finds any; `what` names the file.
void require_sound(const Trace& trace, const std::string& what);

// The same of a trace that memwall made of a sound one: a fault is memwall's own, whatever the user gave. Throws
// std::logic_error; `maker` names the policy or pager.
void require_made_sound(const Trace& trace, const std::string& maker);

// The same of a trace that was sound before nothing but times and amounts of its ops were changed.
void require_sound_costs(const Trace& trace, const std::string& what);

// For every op, a hash of what it computes: its operator and name, and the hashes of the
// contents it reads. A recomputed op has the same hash as its original if and only if
// (up to collisions) it computes the same content. Index: op id; 0 for ops that write nothing.
std::vector<std::uint64_t> producer_hashes(const Trace& trace);

}  // namespace memwall
