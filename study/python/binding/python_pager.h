// A pager (sim/policy/pager.h) whose decisions a Python object makes.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "sim/policy/pager.h"

namespace memwall {

class PythonPager : public Pager {
 public:
  // `pager` has make_room, and may have clock, plan and spill_order. Throws UsageError where it lacks the first, or
  // `clock` is neither "host" nor "device". REQUIRES: the caller holds Python's lock.
  PythonPager(std::string name, pybind11::object pager);
  ~PythonPager() override;

  PagerClock clock() const override { return clock_; }
  void plan(const Machine& machine, const Trace& trace) override;
  std::vector<int> spill_order() const override { return spill_order_; }
  std::vector<Move> make_room(int tier, Bytes bytes, const PagerView& view) override;

 private:
  int tier_named(const std::string& tier) const;
  Move move_of(const pybind11::handle& answer) const;
  std::vector<Move> moves_of(const pybind11::object& answer) const;

  std::string name_;
  pybind11::object pager_;
  PagerClock clock_ = PagerClock::host;
  std::vector<std::string> tiers_;  // names, by index
  std::vector<int> spill_order_;
};

// The type PagerView, which a pager's methods get.
void add_pager_view(pybind11::module_& module);

}  // namespace memwall
