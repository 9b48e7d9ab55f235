// A job whose layers are divided over tensor-parallel ranks, of which policies have made several replicas.
// Internal to sim/policy.
#pragma once

#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// `after`: what policies made of `before`, a program that stands for the t ranks of one tensor-parallel group, with
// Trace::ranks saying over how many ranks its parameters are now shared or copied. Ranks that share a layer are
// neighbours, so that those which hold the same parameters are t apart: the groups that policies added get such members
// and are named and priced as data-parallel groups, which communicate at the same time; the program stands for all
// ranks; samples are those of the whole job. As it is where `before` is no such program or has no more replicas.
// Throws UsageError where the job has replicas of its own already.
Trace with_tensor_replicas(Trace after, const Trace& before, const Pricer& pricer);

}  // namespace memwall
