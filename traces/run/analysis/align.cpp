// Which op of one run is which op of the other.
//
// Same lineage: rewriters keep ops, drop some and put others between them; so the n-th op of a key (thread,
// kind, name, operator, module, phase, added) is the n-th op of that key in the other run.
// Otherwise: Myers' greedy algorithm finds the longest common subsequence of keys (E. W. Myers, "An O(ND)
// Difference Algorithm and Its Variations", Algorithmica 1986), thread by thread. Where the two differ in more
// than kMaximalEdits places, the pairs of equal keys and ordinals are taken that lie on a longest increasing
// chain: a common subsequence, not always the longest.
#include <algorithm>
#include <unordered_map>

#include "sim/longest_increasing_subsequence.h"
#include "sim/text_hash.h"
#include "traces/run/analysis/compare.h"

namespace memwall {
namespace {

constexpr std::ptrdiff_t kMaximalEdits = 2000;

struct Keyed {
  OpId op = kNoOp;
  std::uint64_t key = 0;
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

std::vector<OpPair> pair_by_ordinal(const std::vector<Keyed>& base, const std::vector<Keyed>& other) {
  std::unordered_map<std::uint64_t, std::vector<OpId>> ops_of_key;
  for (const Keyed& item : other) ops_of_key[item.key].push_back(item.op);
  std::unordered_map<std::uint64_t, std::size_t> taken;
  std::vector<OpPair> pairs;
  for (const Keyed& item : base) {
    const auto found = ops_of_key.find(item.key);
    if (found == ops_of_key.end()) continue;
    std::size_t& n = taken[item.key];
    if (n < found->second.size()) pairs.push_back({item.op, found->second[n++]});
  }
  return pairs;
}

// The longest chain of pairs that ascends on both sides.
std::vector<OpPair> ascending_pairs(const std::vector<OpPair>& pairs) {
  std::vector<OpId> others;
  for (const OpPair& pair : pairs) others.push_back(pair.other);
  std::vector<OpPair> chain;
  for (const std::size_t i : longest_increasing_subsequence(others)) chain.push_back(pairs[i]);
  return chain;
}

// Myers: furthest[d][k] is how far base is matched after d edits on diagonal k = x - y.
class LongestCommonSubsequence {
 public:
  LongestCommonSubsequence(const std::vector<Keyed>& base, const std::vector<Keyed>& other)
      : base_(base),
        other_(other),
        n_(static_cast<std::ptrdiff_t>(base.size())),
        m_(static_cast<std::ptrdiff_t>(other.size())) {}

  // False if more than kMaximalEdits are needed.
  bool find(std::vector<OpPair>& pairs) {
    const std::ptrdiff_t limit = std::min(n_ + m_, kMaximalEdits);
    for (std::ptrdiff_t d = 0; d <= limit; ++d) {
      furthest_.emplace_back(static_cast<std::size_t>(2 * d + 1), 0);
      for (std::ptrdiff_t k = -d; k <= d; k += 2) {
        std::ptrdiff_t x = d == 0 ? 0 : entry(d, k);
        while (x < n_ && x - k < m_ && base_[at(x)].key == other_[at(x - k)].key) ++x;
        reached(d, k) = x;
        if (x >= n_ && x - k >= m_) {
          collect(d, k, pairs);
          return true;
        }
      }
    }
    return false;
  }

 private:
  static std::size_t at(std::ptrdiff_t i) { return static_cast<std::size_t>(i); }
  std::ptrdiff_t& reached(std::ptrdiff_t d, std::ptrdiff_t k) { return furthest_[at(d)][at(k + d)]; }
  bool from_above(std::ptrdiff_t d, std::ptrdiff_t k) {
    return k == -d || (k != d && reached(d - 1, k - 1) < reached(d - 1, k + 1));
  }
  // Where diagonal k is entered with the d-th edit: by an op of other (from k + 1), or of base (from k - 1).
  std::ptrdiff_t entry(std::ptrdiff_t d, std::ptrdiff_t k) {
    return from_above(d, k) ? reached(d - 1, k + 1) : reached(d - 1, k - 1) + 1;
  }

  void collect(std::ptrdiff_t d, std::ptrdiff_t k, std::vector<OpPair>& pairs) {
    const auto first = static_cast<std::ptrdiff_t>(pairs.size());
    for (std::ptrdiff_t x = reached(d, k);; --d) {
      const std::ptrdiff_t start = d == 0 ? 0 : entry(d, k);
      for (; x > start; --x) pairs.push_back({base_[at(x - 1)].op, other_[at(x - k - 1)].op});
      if (d == 0) break;
      const bool above = from_above(d, k);
      k += above ? 1 : -1;
      x = above ? x : x - 1;
    }
    std::reverse(pairs.begin() + first, pairs.end());
  }

  const std::vector<Keyed>& base_;
  const std::vector<Keyed>& other_;
  std::ptrdiff_t n_, m_;
  std::vector<std::vector<std::ptrdiff_t>> furthest_;
};

// The ops of each host thread, in their order.
std::vector<std::vector<Keyed>> by_thread(const Trace& trace, bool lineage) {
  std::vector<std::vector<Keyed>> threads(trace.threads.size());
  const std::vector<std::uint64_t> keys = keys_of(trace, lineage);
  for (OpId id = 0; id < trace.ops.size(); ++id) threads[trace.ops[id].thread].push_back({id, keys[id]});
  return threads;
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
    const std::vector<Keyed>&a = base_threads[i], &b = other_threads[partners[i]];
    std::vector<OpPair> found;
    if (lineage)
      found = pair_by_ordinal(a, b);
    else if (!LongestCommonSubsequence(a, b).find(found))
      found = ascending_pairs(pair_by_ordinal(a, b));
    pairs.insert(pairs.end(), found.begin(), found.end());
  }
  std::sort(pairs.begin(), pairs.end(), [](const OpPair& a, const OpPair& b) { return a.base < b.base; });
  return pairs;
}

}  // namespace memwall
