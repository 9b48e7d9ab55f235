// Work that is running now: how much is left, how fast it goes, when it will end.
//
// An activity runs at full speed for its stand-alone duration. While a link that it
// crosses carries more than it can, the flows on it share max-min fairly
// (sim/engine/fair_share.h) and the slow ones end later. Speeds are solved again only when a
// start or an end touches a contended link, once per instant.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/fair_share.h"
#include "sim/machine/machine.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulation.h"

namespace memwall {

using ActivityId = std::uint32_t;
inline constexpr ActivityId kNoActivity = 0xffffffff;

struct ActivitySpec {
  std::uint32_t owner = 0;  // given back when it ends
  Duration duration{};      // alone
  Bytes bytes = 0;          // over each of `links`
  const std::uint16_t* links = nullptr;
  const double* link_shares = nullptr;  // of the bytes, per link; null: all of them
  std::uint32_t link_count = 0;
  double weight = 1;
  std::uint16_t rank = 0;           // of a trace that holds several: whose multiprocessors
  bool native = false;              // captured: what ran together then does not slow it now
  bool on_multiprocessors = false;  // slowed by collectives that policies add
};

class Activities {
 public:
  // `end_kind` and `solve_kind` are the event kinds under which ends and solves are scheduled.
  // `ranks`: folded ranks; a flow counts min(ranks, sharers) times on a shared link.
  // `programs`: ranks that the trace holds.
  Activities(const Machine& machine, std::uint32_t ranks, std::size_t programs, EventQueue& queue,
             std::uint32_t end_kind, std::uint32_t solve_kind, Observer* observer);

  ActivityId start(Time now, const ActivitySpec& spec);
  // For an end event: the owner if the activity really ends now, or nothing if the event is stale.
  // The activity is gone afterwards.
  bool finish(Time now, ActivityId id, std::uint32_t& owner);
  // For a solve event.
  [[gnu::noinline]] void solve(Time now);
  // Share of a rank's multiprocessors that its activities with `on_multiprocessors` may use from now on, in (0, 1].
  [[gnu::noinline]] void set_multiprocessor_share(Time now, std::uint16_t rank, double share);
  // When it will end if nothing changes.
  Time expected_end(ActivityId id) const { return active_[id].end; }

  const std::vector<LinkResult>& links() const { return results_; }

 private:
  struct Activity {
    std::uint32_t owner = 0;
    std::uint32_t position = 0;  // in running_
    Duration remaining{};        // of the stand-alone duration, at `updated`
    Time updated{}, end = kNever;
    double speed = 1, weight = 1, rate = 0;  // rate: bytes per second at full speed
    Bytes bytes = 0;
    const std::uint16_t* links = nullptr;
    const double* link_shares = nullptr;
    std::uint32_t link_count = 0;
    std::uint16_t rank = 0;
    bool native = false, on_multiprocessors = false, live = false;
    double share(std::uint32_t i) const { return link_shares == nullptr ? 1 : link_shares[i]; }
  };
  struct LinkState {
    double capacity = 0, load = 0, native_load = 0, multiplicity = 1;
    std::uint32_t flows = 0;
    bool contended = false;
    Time busy_since{};
  };

  void join(Time now, Activity& activity);
  void leave(Time now, Activity& activity);
  void touch(Time now, LinkState& link);
  [[gnu::noinline]] void set_speed(Time now, ActivityId id, double speed);
  [[gnu::noinline]] void report(Time now, std::uint16_t link);

  EventQueue& queue_;
  std::uint32_t end_kind_, solve_kind_;
  Observer* observer_;
  std::vector<Activity> active_;
  std::vector<ActivityId> free_;
  std::vector<ActivityId> running_;
  std::vector<LinkState> links_;
  std::vector<LinkResult> results_;
  std::vector<double> multiprocessor_share_;  // per rank
  bool solve_scheduled_ = false;
  // Of solve(), kept for their memory: the running flows by owner, what each crosses, what each asks for.
  FairShare fair_share_;
  std::vector<ActivityId> flows_;
  std::vector<std::pair<std::uint16_t, double>> crossed_;
  std::vector<FlowDemand> demands_;
  std::vector<double> capacities_;
};

}  // namespace memwall
