// Work that is running now: how much is left, how fast it goes, when it will end.
//
// An activity runs at full speed for its stand-alone duration. While a link that it
// crosses carries more than it can, the flows on it share max-min fairly
// (sim/engine/fair_share.h) and the slow ones end later. Speeds are solved again only when a
// start or an end touches a contended link, once per instant. A link whose drives have filled their write cache carries
// less than before (sim/engine/write_cache.h): the instant at which that begins is an event of its own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulation.h"
#include "sim/engine/write_cache.h"
#include "sim/machine/rank_machine.h"

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
  // The kinds of the events under which ends, solves and full write caches are scheduled.
  struct EventKinds {
    std::uint32_t end = 0, solve = 0, full = 0;
  };
  // `ranks`: folded ranks; a flow counts min(ranks, sharers) times on a shared link.
  // `programs`: ranks that the trace holds. `cached`: as SimulationOptions::cached.
  // What is common besides the machine's links, its `core_pools`, is numbered behind them and appears in no result.
  Activities(const RankMachine& machine, std::uint32_t ranks, std::size_t programs, const std::vector<double>& cached,
             EventQueue& queue, EventKinds kinds, Observer* observer);

  ActivityId start(Time now, const ActivitySpec& spec);
  // For an end event: the owner if the activity really ends now, or nothing if the event is stale.
  // The activity is gone afterwards.
  bool finish(Time now, ActivityId id, std::uint32_t& owner);
  // For a solve event.
  [[gnu::noinline]] void solve(Time now);
  // For the event of a full write cache behind a link.
  [[gnu::noinline]] void fill_cache(Time now, std::uint32_t link);
  // Share of a rank's multiprocessors that its activities with `on_multiprocessors` may use from now on, in (0, 1].
  [[gnu::noinline]] void set_multiprocessor_share(Time now, std::uint16_t rank, double share);
  // When it will end if nothing changes.
  Time expected_end(ActivityId id) const { return active_[id].end; }

  // As of `now`, when nothing runs any more.
  const std::vector<LinkResult>& results(Time now);

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
    double carried = 0;  // bytes of flows that cross with a share of theirs: whole numbers only in sum
    std::uint32_t flows = 0;
    bool contended = false;
    Time busy_since{};
    std::uint32_t cache = kNoCache;  // in caches_
  };
  // Behind a link that falls off.
  struct Cache {
    std::uint16_t link = 0;
    double bandwidth = 0;  // of the link while the cache has room
    WriteCache content;
  };
  static constexpr std::uint32_t kNoCache = 0xffffffff;

  void join(Time now, Activity& activity);
  void leave(Time now, Activity& activity);
  void touch(Time now, LinkState& link);
  [[gnu::noinline]] void set_speed(Time now, ActivityId id, double speed);
  [[gnu::noinline]] void report(Time now, std::uint16_t link);
  double rate_of(std::uint16_t link) const;
  void update_caches_of(Time now, const Activity& activity);
  [[gnu::noinline]] void update_cache(Time now, Cache& cache);

  EventQueue& queue_;
  EventKinds kinds_;
  Observer* observer_;
  std::vector<Activity> active_;
  std::vector<ActivityId> free_;
  std::vector<ActivityId> running_;
  std::vector<LinkState> links_;
  std::vector<LinkResult> results_;
  std::size_t reported_;  // links of the machine
  std::vector<Cache> caches_;
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
