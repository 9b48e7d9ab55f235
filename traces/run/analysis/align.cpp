// Which op of one run is which op of the other.
//
// Same lineage: rewriters keep ops, drop some and put others between them; so the n-th op of a key (thread,
// kind, name, operator, module, phase, added) is the n-th op of that key in the other run.
// Otherwise: a longest common subsequence of keys, thread by thread; where the two differ in more than
// kMaximalEdits places, a common one, not always the longest (sim/trace/sequence_alignment.h).
#include <algorithm>

#include "sim/text_hash.h"
#include "sim/trace/sequence_alignment.h"
#include "traces/run/analysis/compare_parts.h"

namespace memwall {

std::vector<std::uint64_t> text_hashes(const StringTable& strings) {
  std::vector<std::uint64_t> text(strings.size());
  for (StringId id = 0; id < text.size(); ++id) text[id] = hash_of(strings[id]);
  return text;
}

std::uint64_t name_key(const Op& op, const std::vector<std::uint64_t>& text) {
  return mixed(static_cast<std::uint64_t>(op.kind) + 1, text[op.name]);
}

std::uint64_t lineage_key(const Op& op, const std::vector<std::uint64_t>& text) {
  const std::uint64_t key = mixed(mixed(name_key(op, text), text[op.operator_name]), text[op.module]);
  return mixed(mixed(key, static_cast<std::uint64_t>(op.phase)), op.added ? 1 : 0);
}

namespace {

constexpr std::uint32_t kMaximalEdits = 2000;

std::vector<KeyedOps> by_thread(const Trace& trace, bool lineage) {
  std::vector<KeyedOps> threads(trace.threads.size());
  const std::vector<std::uint64_t> text = text_hashes(trace.strings);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    threads[op.thread].ops.push_back(id);
    threads[op.thread].keys.push_back(lineage ? lineage_key(op, text) : name_key(op, text));
  }
  return threads;
}

Alignment align_keys(Keys a, Keys b) {
  auto longest = longest_common_subsequence(a, b, kMaximalEdits);
  return longest ? std::move(*longest) : align_by_occurrence(a, b);
}

// Threads with the same name belong together (the n-th with the n-th of that name).
std::vector<std::size_t> partner_threads(const std::vector<HostThread>& base, const std::vector<HostThread>& other) {
  std::vector<bool> taken(other.size(), false);
  std::vector<std::size_t> partners;
  for (const HostThread& thread : base) {
    std::size_t partner = 0;
    while (partner < other.size() && (taken[partner] || other[partner].name != thread.name)) ++partner;
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

std::vector<OpPair> align(const std::vector<HostThread>& base_threads, const std::vector<KeyedOps>& base_ops,
                          const std::vector<HostThread>& other_threads, const std::vector<KeyedOps>& other_ops,
                          bool lineage) {
  const std::vector<std::size_t> partners = partner_threads(base_threads, other_threads);
  std::vector<OpPair> pairs;
  for (std::size_t i = 0; i < base_ops.size(); ++i) {
    if (partners[i] >= other_ops.size()) continue;
    const KeyedOps &a = base_ops[i], &b = other_ops[partners[i]];
    for (const auto& [mine, theirs] : lineage ? pairs_by_occurrence(a.keys, b.keys) : align_keys(a.keys, b.keys))
      pairs.push_back({a.ops[mine], b.ops[theirs]});
  }
  std::sort(pairs.begin(), pairs.end(), [](const OpPair& a, const OpPair& b) { return a.base < b.base; });
  return pairs;
}

std::vector<OpPair> align(const Run& base, const Run& other) {
  const bool lineage = same_lineage(base, other);
  return align(base.trace->threads, by_thread(base.trace, lineage), other.trace->threads,
               by_thread(other.trace, lineage), lineage);
}

}  // namespace memwall
