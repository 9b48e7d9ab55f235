// Is the answer of the integer program the fastest of all schedules of small chains, and no slower than rotor's?
#include "policies/planners/checkmate_program.h"

#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <random>

#include "policies/planners/revolve.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kMega = 1 << 20;

// All schedules of a small chain, by Dijkstra's search over what is there. Shares the meaning of a stage alone.
class AllSchedules {
 public:
  AllSchedules(const CheckmateChain& chain, Bytes limit)
      : c_(chain), units_(static_cast<int>(chain.chain.stages.size()) - 1), limit_(limit) {}

  // Of what runs again.
  std::optional<std::int64_t> fastest() {
    State start{units_, 0, bit(kPassed, -1)};
    offer(start, 0);
    while (!queue_.empty()) {
      const auto [time, state] = queue_.top();
      queue_.pop();
      if (time > best_.at(state)) continue;
      if (state.turn < 0) return time;
      for (std::uint32_t v = state.there; v != 0; v &= v - 1)  // anything may be let go
        offer({state.turn, state.forward, state.there & ~(v & (~v + 1))}, time);
      if (state.turn == units_)
        first_forward(state);
      else
        backward_stage(state, time);
    }
    return std::nullopt;
  }

 private:
  enum Value { kOwn, kSaved, kPassed };
  // `turn`: the unit whose backward is next, units_: the program's forward runs; `forward`: its next unit.
  struct State {
    int turn = 0, forward = 0;
    std::uint32_t there = 0;
    auto operator<=>(const State&) const = default;
  };
  using Entry = std::pair<std::int64_t, State>;

  const RotorStage& stage(int i) const { return c_.chain.stages[static_cast<std::size_t>(i)]; }
  Bytes bytes(Value v, int unit) const {
    if (unit < 0) return v == kPassed ? c_.chain.input_passed : 0;
    if (v == kOwn) return stage(unit).saved - stage(unit).output_saved;
    return v == kSaved ? stage(unit).output_saved : stage(unit).output_passed;
  }
  std::uint32_t bit(Value v, int unit) const { return bytes(v, unit) == 0 ? 0 : 1u << (3 * (unit + 1) + v); }
  Bytes held(std::uint32_t there, int without) const {
    Bytes sum = 0;
    for (int i = -1; i < units_; ++i)
      for (const Value v : {kOwn, kSaved, kPassed})
        if (i != without && (there & bit(v, i)) != 0) sum += bytes(v, i);
    return sum;
  }
  static bool has(std::uint32_t there, std::uint32_t needed) { return (there & needed) == needed; }
  std::uint32_t output(int unit) const { return bit(kSaved, unit) | bit(kPassed, unit); }

  void offer(const State& state, std::int64_t time) {
    const auto [known, is_new] = best_.try_emplace(state, time);
    if (!is_new && known->second <= time) return;
    known->second = time;
    queue_.push({time, state});
  }

  void first_forward(const State& s) {
    const int i = s.forward;
    if (!has(s.there, output(i - 1))) return;
    const Bytes beside = held(s.there, i) + stage(units_).gradient;
    if (i == units_) {
      const std::uint32_t after = s.there & ~bit(kPassed, i - 1);
      if (beside + stage(i).while_saving <= limit_ && held(after, i) + stage(i).while_backward <= limit_)
        offer({units_ - 1, 0, after}, 0);
      return;
    }
    if (beside + stage(i).while_saving <= limit_) offer({s.turn, i + 1, s.there | output(i) | bit(kOwn, i)}, 0);
    if (c_.is_repeatable[static_cast<std::size_t>(i)] && beside + stage(i).while_passing <= limit_)
      offer({s.turn, i + 1, s.there | output(i)}, 0);
  }

  void backward_stage(const State& s, std::int64_t time) {
    const int k = s.turn;
    for (int i = 0; i <= k; ++i) {
      if (!c_.is_repeatable[static_cast<std::size_t>(i)] || !has(s.there, output(i - 1))) continue;
      const Bytes beside = held(s.there, i) + stage(k).gradient;
      const std::uint32_t passed = s.there | output(i);
      if (i < k && beside + stage(i).while_passing <= limit_)
        offer({k, 0, passed & ~bit(kOwn, i)}, time + stage(i).forward.count());
      if (beside + (i == k ? stage(i).while_last : stage(i).while_saving) <= limit_)
        offer({k, 0, passed | bit(kOwn, i)}, time + (i == k ? stage(i).forward_last : stage(i).forward).count());
    }
    std::uint32_t needed = bit(kOwn, k) | bit(kSaved, k - 1);
    if (c_.reads_own_output[static_cast<std::size_t>(k)]) needed |= bit(kSaved, k);
    const std::uint32_t after = s.there & ~(bit(kOwn, k) | output(k));
    if (has(s.there, needed) && held(after, k) + stage(k).while_backward <= limit_) offer({k - 1, 0, after}, time);
  }

  const CheckmateChain& c_;
  const int units_;
  const Bytes limit_;
  std::map<State, std::int64_t> best_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

CheckmateChain random_chain(std::mt19937& random, int units) {
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  CheckmateChain c;
  if (between(0, 2) == 0) c.chain.input_passed = between(1, 3) * kMega;
  for (int i = 0; i <= units; ++i) {
    RotorStage s;
    s.forward = microseconds(between(1, 9));
    s.forward_last = s.forward - microseconds(between(0, 1));
    const bool hands_on = i < units;
    s.output_saved = hands_on ? between(0, 3) * kMega : 0;
    s.output_passed = hands_on ? between(s.output_saved == 0 ? 1 : 0, 2) * kMega : 0;
    s.saved = i < units ? s.output_saved + between(0, 5) * kMega : 0;
    s.gradient = between(0, 2) * kMega;
    s.while_passing = s.output_saved + s.output_passed + between(0, 2) * kMega;
    s.while_saving = s.while_last = std::max(s.while_passing, s.saved + s.output_passed) + between(0, 1) * kMega;
    s.while_backward = s.saved + between(0, 3) * kMega;
    c.chain.stages.push_back(s);
    if (i == units) break;
    c.is_repeatable.push_back(between(0, 5) > 0);
    c.reads_own_output.push_back(between(0, 1) == 0);
  }
  return c;
}

class CheckmateProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LinearProgram::is_available()) GTEST_SKIP() << LinearProgram::missing();
  }
};

TEST_F(CheckmateProgramTest, IsTheFastestOfAllSchedules) {
  std::mt19937 random(7);
  int possible = 0, again = 0, looser = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const int units = 1 + static_cast<int>(random() % 4);
    const CheckmateChain chain = random_chain(random, units);
    const Bytes limit = static_cast<Bytes>(4 + random() % static_cast<std::uint32_t>(7 * units)) * kMega;
    const std::optional<std::int64_t> fastest = AllSchedules(chain, limit).fastest();
    const CheckmateProgram program(chain, limit);
    const CheckmateSchedule exact = program.exact({});
    const std::optional<Duration> bound = program.bound();
    EXPECT_TRUE(exact.is_optimal);
    if (!fastest) {
      EXPECT_GT(exact.over, 0);
      // So much more, and there is a schedule.
      EXPECT_TRUE(AllSchedules(chain, limit + static_cast<Bytes>(exact.over) + 1000).fastest().has_value());
      EXPECT_FALSE(AllSchedules(chain, limit + static_cast<Bytes>(exact.over) - 1000).fastest().has_value());
      continue;
    }
    ++possible;
    again += *fastest > 0 ? 1 : 0;
    EXPECT_EQ(exact.over, 0);
    EXPECT_EQ(exact.time.count(), *fastest);
    ASSERT_TRUE(bound.has_value());
    EXPECT_LE(bound->count(), *fastest);
    looser += bound->count() < *fastest * 99 / 100 ? 1 : 0;
    const CheckmateSchedule rounded = program.rounded();
    EXPECT_TRUE(rounded.over > 0 || rounded.time.count() >= *fastest);
  }
  EXPECT_GT(possible, 40);
  EXPECT_LT(possible, 120);
  EXPECT_GT(again, 20);
  EXPECT_GT(looser, 0);
}

// Equal stages that hand on one block and keep three for themselves: units x (1 + 3) + what is kept.
CheckmateChain equal_stages(std::size_t units) {
  CheckmateChain c;
  for (std::size_t i = 0; i <= units; ++i) {
    RotorStage s;
    s.forward = s.forward_last = microseconds(1);
    s.output_saved = i < units ? kMega : 0;
    s.saved = i < units ? 4 * kMega : 0;
    s.while_passing = s.output_saved;
    s.while_saving = s.while_last = s.while_backward = s.saved;
    c.chain.stages.push_back(s);
  }
  c.is_repeatable.assign(units, true);
  c.reads_own_output.assign(units, false);
  return c;
}

// No slower than the fastest persistent schedule, nor than revolve with the checkpoints for which there is room.
TEST_F(CheckmateProgramTest, IsNoSlowerThanPersistentSchedules) {
  const CheckmateChain chain = equal_stages(8);
  int compared = 0;
  for (Bytes limit = 6; limit <= 33; limit += 3) {
    const auto rotor = RotorTable(chain.chain, limit * kMega, static_cast<std::uint32_t>(limit)).schedule();
    if (!rotor) continue;
    ++compared;
    const CheckmateSchedule exact = CheckmateProgram(chain, limit * kMega).exact({20, 2000});
    EXPECT_EQ(exact.over, 0) << limit;
    EXPECT_LE(exact.time, rotor->time - microseconds(9)) << limit;
    const Duration revolve =
        microseconds(static_cast<std::int64_t>(revolve_reruns(8, static_cast<std::uint64_t>(limit - 4))));
    EXPECT_LE(exact.time, revolve) << limit;
  }
  EXPECT_GE(compared, 8);
}

TEST_F(CheckmateProgramTest, RoundingKeepsToItsLimitAndWhatIsNotNeededIsNotRunAgain) {
  const CheckmateChain chain = equal_stages(10);
  const CheckmateProgram all(chain, 41 * kMega);
  EXPECT_EQ(all.exact({}).time, Duration{});
  EXPECT_EQ(all.bound(), Duration{});
  EXPECT_EQ(all.rounded().time, Duration{});
  for (const Bytes limit : {30, 22, 16}) {
    const CheckmateSchedule rounded = CheckmateProgram(chain, limit * kMega).rounded();
    EXPECT_EQ(rounded.over, 0) << limit;
    EXPECT_GE(rounded.time, *CheckmateProgram(chain, limit * kMega).bound()) << limit;
  }
  // Without a search the best of rounding is what is left; the same each time.
  const CheckmateSchedule one = CheckmateProgram(chain, 16 * kMega).exact({60, 0}),
                          two = CheckmateProgram(chain, 16 * kMega).exact({60, 0});
  EXPECT_EQ(one.steps, two.steps);
  EXPECT_LE(one.time, CheckmateProgram(chain, 16 * kMega).rounded().time);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
