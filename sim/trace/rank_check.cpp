#include "sim/trace/rank_check.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/trace/rank_tables.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"

namespace memwall {
namespace {

constexpr Bytes kLargestMemory = Bytes{1} << 50;  // as of a storage

class RankChecker {
 public:
  RankChecker(const Trace& trace, std::size_t limit) : t_(trace), limit_(limit) {}

  std::vector<std::string> run(bool of_ops) {
    if (check_table() && check_owners() && of_ops) {
      event_.assign(t_.event_count, kNobody);
      storage_.assign(t_.storages.size(), kNobody);
      for (OpId id = 0; id < t_.ops.size() && sentences_.size() < limit_; ++id) check_op(id);
    }
    return std::move(sentences_);
  }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffff;
  struct Rendezvous {
    CollectiveKind kind = CollectiveKind::none;
    OpId first = kNoOp;
  };

  void fault(const std::string& sentence) {
    if (sentences_.size() < limit_) sentences_.push_back(sentence);
  }

  std::string name(std::size_t rank) const {
    return t_.rank_table.empty() ? "the trace" : "rank " + std::to_string(t_.rank_table[rank].number);
  }

  bool check_table() {
    for (std::size_t i = 0; i < t_.rank_table.size(); ++i) {
      const Rank& rank = t_.rank_table[i];
      if (i > 0 && rank.number <= t_.rank_table[i - 1].number)
        fault("The table of ranks has rank " + std::to_string(rank.number) + " behind rank " +
              std::to_string(t_.rank_table[i - 1].number) + "; expected ascending numbers.");
      if (rank.untracked_bytes < 0 || rank.untracked_bytes > kLargestMemory || rank.reserved_at_start < 0 ||
          rank.reserved_at_start > kLargestMemory)
        fault("The bytes that rank " + std::to_string(rank.number) +
              " holds before the window are beyond measure; expected 0 to 2^50.");
      if (!std::is_sorted(rank.stands_for.begin(), rank.stands_for.end(), std::less_equal<>()) ||
          std::binary_search(rank.stands_for.begin(), rank.stands_for.end(), rank.number))
        fault("Rank " + std::to_string(rank.number) +
              " stands for further ranks whose numbers do not ascend, or for itself; expected each other rank once.");
      if (rank.ranks == 0) fault("Rank " + std::to_string(rank.number) + " stands for 0 ranks; expected 1 or more.");
    }
    check_stand_ins();
    return sentences_.empty();
  }

  // Each rank of the job runs one program.
  void check_stand_ins() {
    std::unordered_map<std::uint32_t, std::uint32_t> program_of;  // by rank; the number of the rank that stands for it
    for (const Rank& rank : t_.rank_table) program_of.emplace(rank.number, rank.number);
    for (const Rank& rank : t_.rank_table)
      for (const std::uint32_t number : rank.stands_for) {
        const auto [other, added] = program_of.emplace(number, rank.number);
        if (added || number == rank.number) continue;
        if (other->second == number)
          fault("Rank " + std::to_string(rank.number) + " stands for rank " + std::to_string(number) +
                ", which has a program of its own; expected each rank in one program.");
        else if (other->second != rank.number)
          fault("Ranks " + std::to_string(other->second) + " and " + std::to_string(rank.number) +
                " both stand for rank " + std::to_string(number) + "; expected each rank in one program.");
      }
  }

  // Of threads and streams; a device is one rank's.
  bool check_owners() {
    const std::size_t ranks = rank_count(t_);
    const auto known = [&](const std::string& what, std::uint16_t rank) {
      if (rank >= ranks)
        fault(what + " is of rank number " + std::to_string(rank) + " in a table of " + std::to_string(ranks) + ".");
      return rank < ranks;
    };
    for (const HostThread& thread : t_.threads) known("Host thread '" + thread.name + "'", thread.rank);
    std::unordered_map<std::uint16_t, std::uint16_t> rank_of_device;
    for (const Stream& stream : t_.streams) {
      if (!known("Stream '" + stream.name + "'", stream.rank)) continue;
      const std::uint16_t owner = rank_of_device.try_emplace(stream.device, stream.rank).first->second;
      if (owner != stream.rank)
        fault("Device " + std::to_string(stream.device) + " has streams of " + name(owner) + " and " +
              name(stream.rank) + "; expected devices of its own for each rank.");
    }
    return sentences_.empty();
  }

  void check_op(OpId id) {
    const Op& op = t_.ops[id];
    if (has_rendezvous(op)) check_rendezvous(id);
    if (t_.rank_table.empty()) return;
    const std::uint16_t rank = rank_of(t_, op);
    const std::string what = "Op " + std::to_string(id) + " of " + name(rank);
    const bool has_stream = runs_on_device(op.kind) || op.kind == OpKind::graph_launch ||
                            op.kind == OpKind::event_record || op.kind == OpKind::event_wait ||
                            op.wait_for == WaitFor::stream;
    if (has_stream && t_.streams[op.stream].rank != rank)
      fault(what + " is on a stream of " + name(t_.streams[op.stream].rank) + "; expected one of its own.");
    if (op.kind == OpKind::hand_over) check_partner(what, "continues", op.target, rank);
    if (op.source != kNoOp) check_partner(what, repeats(op) ? "repeats" : "is the backward of", op.source, rank);
    if (targets_event(op)) claim(what + " names event ", op.target, event_[op.target], rank);
    if (op.kind == OpKind::alloc || op.kind == OpKind::free)
      claim(what + " names storage ", op.target, storage_[op.target], rank);
    for (const Use& use : t_.uses_of(op)) claim(what + " uses storage ", use.storage, storage_[use.storage], rank);
  }

  void check_partner(const std::string& what, const char* does, OpId other, std::uint16_t rank) {
    const std::uint16_t owner = rank_of(t_, t_.ops[other]);
    if (owner != rank)
      fault(what + " " + does + " op " + std::to_string(other) + ", which is of " + name(owner) +
            "; ranks know of each other by collectives only.");
  }

  void claim(const std::string& what, std::uint32_t number, std::uint32_t& owner, std::uint16_t rank) {
    if (owner == kNobody) owner = rank;
    if (owner != rank)
      fault(what + std::to_string(number) + ", which is of " + name(owner) +
            "; ranks know of each other by collectives only.");
  }

  void check_rendezvous(OpId id) {
    const Op& op = t_.ops[id];
    const auto [entry, added] = rendezvous_.try_emplace(op.target, Rendezvous{op.collective, id});
    const std::string rendezvous = "rendezvous " + std::to_string(op.target);
    if (entry->second.kind != op.collective)
      fault("Op " + std::to_string(id) + " comes to " + rendezvous + " with the collective " +
            std::string(to_string(op.collective)) + ", op " + std::to_string(entry->second.first) + " with " +
            std::string(to_string(entry->second.kind)) + "; expected one kind.");
    const std::uint16_t rank = t_.rank_table.empty() ? 0 : rank_of(t_, op);
    if (!present_.emplace(op.target, rank).second)
      fault("Op " + std::to_string(id) + " comes to " + rendezvous + ", to which " + name(rank) +
            " has come before; expected one op of each rank.");
  }

  const Trace& t_;
  std::size_t limit_;
  std::vector<std::uint32_t> event_, storage_;  // whose
  std::unordered_map<std::uint32_t, Rendezvous> rendezvous_;
  std::set<std::pair<std::uint32_t, std::uint16_t>> present_;  // rendezvous, rank
  std::vector<std::string> sentences_;
};

}  // namespace

std::vector<std::string> check_ranks(const Trace& trace, std::size_t limit, bool of_ops) {
  return RankChecker(trace, limit).run(of_ops);
}

}  // namespace memwall
