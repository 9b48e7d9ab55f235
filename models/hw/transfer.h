// Transfers a trace from the machine it was measured on to another one.
//
//   kernels, memsets, copies, collectives   by models/hw/transferred_duration.h, each with the error of its class
//   modelled ops                            priced anew
//   host time                               unchanged, unless asked for: see TransferSettings
//
// Durations in a capture of one rank hold what a collective waited for the other ranks; that part is transferred as the
// rest.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

struct TransferSettings {
  // Calls by the ratio of what both machines' files say of them (HostCosts: launch, copy, event, allocator), host gaps
  // by that of the framework's dispatch, gaps between queued kernels and launch latency likewise. Off by default: these
  // files have their numbers from captures with several profilers and versions of PyTorch, so that the ratio of two of
  // them says as much of these as of the processors; and a host gap holds the program's own Python.
  bool host = false;
};

// Two machines of one name may differ by settings (--set); what they have in common changes nothing.
// `from` may be null: the trace was measured nowhere (all modelled), or on an unknown machine, and
// then only modelled ops change. Changed ops of origin measured become transferred, with Op::error_permille; notes say
// what was transferred how, by class. Throws UsageError where `to` lacks a tier or route that a copy takes.
Trace transferred(Trace trace, const Machine* from, const Machine& to, const TransferSettings& settings = {});

// Would every op of the trace last as long on `other` as it does on `one`, for which it was transferred and priced?
// `measured`: measured ops count; without, they are taken as they were captured, whatever the machine.
bool priced_alike(const Trace& trace, const Machine& one, const Machine& other, bool measured);

}  // namespace memwall
