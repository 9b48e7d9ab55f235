// Which op of one run is which op of the other.
//
// Same lineage: rewriters keep ops, drop some and put others between them; so the n-th op of a key (thread,
// kind, name, operator, module, phase, added) is the n-th op of that key in the other run.
// Otherwise: a longest common subsequence of keys, thread by thread; where the two differ in more than
// kMaximalEdits places, a common one, not always the longest (sim/trace/sequence_alignment.h).
#include <algorithm>

#include "sim/text_hash.h"
#include "sim/trace/sequence_alignment.h"
#include "traces/run/analysis/compare.h"

namespace memwall {
namespace {

constexpr std::uint32_t kMaximalEdits = 2000;

// The ops of one host thread in their order, and their keys.
struct KeyedOps {
  std::vector<OpId> ops;
  std::vector<std::uint64_t> keys;
};

// Keys of all ops, comparable between runs: text is hashed, not its number.
std::vector<std::uint64_t> keys_of(const Trace& trace, bool lineage) {
  std::vector<std::uint64_t> text(trace.strings.size());
  for (StringId id = 0; id < text.size(); ++id) text[id] = hash_of(trace.strings[id]);
  std::vector<std::uint64_t> keys;
  keys.reserve(trace.ops.size());
  for (const Op& op : trace.ops) {
    std::uint64_t key = mixed(static_cast<std::uint64_t>(op.kind) + 1, text[op.name]);
    if (lineage) {
      key = mixed(mixed(key, text[op.operator_name]), text[op.module]);
      key = mixed(mixed(key, static_cast<std::uint64_t>(op.phase)), op.added ? 1 : 0);
    }
    keys.push_back(key);
  }
  return keys;
}

std::vector<KeyedOps> by_thread(const Trace& trace, bool lineage) {
  std::vector<KeyedOps> threads(trace.threads.size());
  const std::vector<std::uint64_t> keys = keys_of(trace, lineage);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    KeyedOps& thread = threads[trace.ops[id].thread];
    thread.ops.push_back(id);
    thread.keys.push_back(keys[id]);
  }
  return threads;
}

Alignment align_keys(Keys a, Keys b) {
  auto longest = longest_common_subsequence(a, b, kMaximalEdits);
  return longest ? std::move(*longest) : align_by_occurrence(a, b);
}

// Threads with the same name belong together (the n-th with the n-th of that name).
std::vector<std::size_t> partner_threads(const Trace& base, const Trace& other) {
  std::vector<bool> taken(other.threads.size(), false);
  std::vector<std::size_t> partners;
  for (const HostThread& thread : base.threads) {
    std::size_t partner = 0;
    while (partner < other.threads.size() && (taken[partner] || other.threads[partner].name != thread.name)) ++partner;
    if (partner < taken.size()) taken[partner] = true;
    partners.push_back(partner);
  }
  // Without a namesake, the thread at the same place if it is free: names are often just numbers.
  for (std::size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] < taken.size() || i >= taken.size() || taken[i]) continue;
    partners[i] = i;
    taken[i] = true;
  }
  return partners;
}

}  // namespace

bool same_lineage(const Run& base, const Run& other) {
  if (!base.inputs.empty() && !other.inputs.empty()) {
    const auto same = [](const InputFile& a, const InputFile& b) { return a.hash == b.hash; };
    if (std::equal(base.inputs.begin(), base.inputs.end(), other.inputs.begin(), other.inputs.end(), same)) return true;
  }
  return !base.trace->name.empty() && base.trace->name == other.trace->name;
}

std::vector<OpPair> align(const Run& base, const Run& other) {
  const bool lineage = same_lineage(base, other);
  const auto base_threads = by_thread(base.trace, lineage), other_threads = by_thread(other.trace, lineage);
  const std::vector<std::size_t> partners = partner_threads(base.trace, other.trace);
  std::vector<OpPair> pairs;
  for (std::size_t i = 0; i < base_threads.size(); ++i) {
    if (partners[i] >= other_threads.size()) continue;
    const KeyedOps &a = base_threads[i], &b = other_threads[partners[i]];
    for (const auto& [mine, theirs] : lineage ? pairs_by_occurrence(a.keys, b.keys) : align_keys(a.keys, b.keys))
      pairs.push_back({a.ops[mine], b.ops[theirs]});
  }
  std::sort(pairs.begin(), pairs.end(), [](const OpPair& a, const OpPair& b) { return a.base < b.base; });
  return pairs;
}

}  // namespace memwall
