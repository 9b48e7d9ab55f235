#include "models/workload/generate/parallel/pipeline_actions.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <tuple>

namespace memwall {
namespace {

using Kind = PipelineAction::Kind;
using Actions = std::vector<PipelineAction>;

Actions passes_of(const PipelineShape& s, std::int64_t rank) {
  Actions passes;
  for (const PipelinePass& pass : pipeline_order(PipelineSchedule::one_f_one_b, s, rank))
    passes.push_back({pass.backward ? Kind::backward : Kind::forward, pass.chunk * s.ranks + rank, pass.microbatch});
  return passes;
}

// The stages of the next passes, from pass `at` on, in their order; as many as may be unsharded at once.
std::vector<std::int64_t> next_stages(const Actions& passes, std::size_t at) {
  std::vector<std::int64_t> stages;
  for (; at < passes.size() && stages.size() < kMostUnshardedStages; ++at)
    if (std::ranges::find(stages, passes[at].stage) == stages.end()) stages.push_back(passes[at].stage);
  return stages;
}

// _add_unshard_reshard and _add_reduce_grad.
Actions with_sharding(const PipelineShape& s, const Actions& passes) {
  Actions all;
  std::vector<std::int64_t> active;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::vector<std::int64_t> wanted = next_stages(passes, i);
    const std::vector<std::int64_t> before = active;
    for (const std::int64_t stage : before) {
      if (std::ranges::find(wanted, stage) != wanted.end()) continue;
      all.push_back({Kind::reshard, stage});
      std::erase(active, stage);
    }
    for (const std::int64_t stage : wanted) {
      if (std::ranges::find(active, stage) != active.end()) continue;
      all.push_back({Kind::unshard, stage});
      active.push_back(stage);
    }
    all.push_back(passes[i]);
    if (passes[i].kind != Kind::backward || passes[i].microbatch + 1 != s.microbatches) continue;
    all.push_back({Kind::reduce_gradients, passes[i].stage});
    all.push_back({Kind::wait_for_reduction, passes[i].stage});
  }
  for (const std::int64_t stage : active) all.push_back({Kind::reshard, stage});
  return all;
}

// _add_send_recv: ranks take turns; who sends puts the receive behind what the receiver has done so far.
class Messages {
 public:
  Messages(const PipelineShape& shape, std::vector<Actions> passes)
      : s_(shape), passes_(std::move(passes)), next_(passes_.size(), 0), all_(passes_.size()), done_(passes_.size()) {}

  std::vector<Actions> run() && {
    std::size_t left = 0;
    for (const Actions& own : passes_) left += own.size();
    while (left > 0) {
      std::size_t taken = 0;
      for (std::size_t rank = 0; rank < passes_.size(); ++rank) {
        if (next_[rank] == passes_[rank].size() || !is_ready(rank, passes_[rank][next_[rank]])) continue;
        take(rank, passes_[rank][next_[rank]++]);
        ++taken;
      }
      assert(taken > 0);
      left -= taken;
    }
    return std::move(all_);
  }

 private:
  std::size_t rank_of(std::int64_t stage) const { return static_cast<std::size_t>(stage % s_.ranks); }
  std::int64_t last_stage() const { return s_.ranks * s_.chunks - 1; }

  bool is_ready(std::size_t rank, const PipelineAction& a) const {
    if (a.kind == Kind::forward && a.stage > 0)
      return done_[rank].contains({Kind::receive_input, a.stage, a.microbatch});
    if (a.kind == Kind::backward && a.stage < last_stage())
      return done_[rank].contains({Kind::receive_gradient, a.stage, a.microbatch});
    return true;
  }

  void take(std::size_t rank, const PipelineAction& a) {
    all_[rank].push_back(a);
    if (a.kind == Kind::forward && a.stage < last_stage())
      send(rank, {Kind::send_output, a.stage, a.microbatch}, {Kind::receive_input, a.stage + 1, a.microbatch});
    if (a.kind == Kind::backward && a.stage > 0)
      send(rank, {Kind::send_gradient, a.stage, a.microbatch}, {Kind::receive_gradient, a.stage - 1, a.microbatch});
  }

  void send(std::size_t rank, const PipelineAction& sent, const PipelineAction& received) {
    all_[rank].push_back(sent);
    all_[rank_of(received.stage)].push_back(received);
    done_[rank_of(received.stage)].insert({received.kind, received.stage, received.microbatch});
  }

  const PipelineShape& s_;
  std::vector<Actions> passes_;
  std::vector<std::size_t> next_;
  std::vector<Actions> all_;
  std::vector<std::set<std::tuple<Kind, std::int64_t, std::int64_t>>> done_;  // by rank: what it has received
};

// _add_wait_send
Actions with_waits(const Actions& actions) {
  Actions all;
  Actions sent;  // that nobody has waited for
  for (const PipelineAction& a : actions) {
    all.push_back(a);
    if (a.kind == Kind::send_output || a.kind == Kind::send_gradient) sent.push_back(a);
    if (a.kind != Kind::backward) continue;
    const auto own = std::ranges::find(sent, PipelineAction{Kind::send_output, a.stage, a.microbatch});
    if (own == sent.end()) continue;
    all.push_back({Kind::wait_for_output, a.stage, a.microbatch});
    sent.erase(own);
  }
  for (const PipelineAction& a : sent)
    all.push_back(
        {a.kind == Kind::send_output ? Kind::wait_for_output : Kind::wait_for_gradient, a.stage, a.microbatch});
  return all;
}

}  // namespace

std::vector<std::vector<PipelineAction>> pipeline_actions(const PipelineShape& shape) {
  std::vector<Actions> passes;
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank)
    passes.push_back(with_sharding(shape, passes_of(shape, rank)));
  std::vector<Actions> all;
  for (const Actions& own : Messages(shape, std::move(passes)).run()) all.push_back(with_waits(own));
  return all;
}

}  // namespace memwall
