#include "study/python/binding/python_pager.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/error.h"
#include "study/python/binding/column_table.h"
#include "study/python/binding/step_tables.h"

namespace memwall {
namespace {

namespace py = pybind11;

// "make_room(): found 3, of type int; expected ...", as memwall/words.py has it.
[[noreturn]] void refuse_type(const std::string& where, const py::handle& found, const char* expected) {
  throw py::type_error(fmt::format("{}: found {}, of type {}; expected {}.", where,
                                   py::cast<std::string>(py::repr(found)),
                                   py::cast<std::string>(py::type::handle_of(found).attr("__name__")), expected));
}

// What Python sees of a PagerView for the time of one call; a view that Python keeps for longer answers nothing.
class ViewForPython {
 public:
  ViewForPython(const PagerView& view, const std::vector<std::string>& tiers) : view_(&view), tiers_(tiers) {}
  void close() { view_ = nullptr; }

  double now() const { return to_seconds(open().now()); }
  Bytes free_bytes(const py::object& given) const {
    if (!py::isinstance<py::str>(given)) refuse_type("PagerView.free_bytes(tier)", given, "the name of a tier");
    const auto tier = py::cast<std::string>(given);
    const auto found = std::ranges::find(tiers_, tier);
    if (found == tiers_.end())
      throw UsageError(fmt::format("The tier \"{}\" is unknown; expected one of {}.{}", tier, listed(tiers_),
                                   did_you_mean(tier, tiers_)));
    return open().free_bytes(static_cast<int>(found - tiers_.begin()));
  }
  // (storage, bytes, last_use_s, clean), until `bytes` are together; 0: all.
  py::list movable(const py::object& given) const {
    if (!py::isinstance<py::int_>(given) && !PyIndex_Check(given.ptr()))
      refuse_type("PagerView.movable(bytes)", given, "a whole number of bytes");
    int is_too_large = 0;
    Bytes bytes = PyLong_AsLongLongAndOverflow(py::int_(given).ptr(), &is_too_large);
    if (is_too_large != 0) bytes = 0;  // no storages are as many: all
    py::list rows;
    Bytes together = 0;
    open().each_movable([&](const ResidentStorage& r) {
      rows.append(py::make_tuple(r.storage, r.bytes, to_seconds(r.last_use), r.clean));
      together += r.bytes;
      return bytes <= 0 || together < bytes;
    });
    return rows;
  }

 private:
  const PagerView& open() const {
    if (view_ == nullptr) throw UsageError("A pager's view is of one call; this one is over.");
    return *view_;
  }
  const PagerView* view_;
  std::vector<std::string> tiers_;
};

// Closes the view at the end of the call, whatever Python keeps of it.
class OpenView {
 public:
  OpenView(const PagerView& view, const std::vector<std::string>& tiers)
      : view_(std::make_shared<ViewForPython>(view, tiers)) {}
  ~OpenView() { view_->close(); }
  OpenView(const OpenView&) = delete;
  OpenView& operator=(const OpenView&) = delete;
  const std::shared_ptr<ViewForPython>& operator*() const { return view_; }

 private:
  std::shared_ptr<ViewForPython> view_;
};

}  // namespace

PythonPager::PythonPager(std::string name, py::object pager) : name_(std::move(name)), pager_(std::move(pager)) {
  if (!py::hasattr(pager_, "make_room"))
    throw UsageError(fmt::format("Pager '{}': its object has no make_room(tier, bytes, view).", name_));
  const py::object named = py::getattr(pager_, "clock", py::str("host"));
  const auto clock = py::cast<std::string>(py::str(named));
  if (clock != "host" && clock != "device")
    throw UsageError(fmt::format("Pager '{}': its clock is \"{}\"; expected host or device.", name_, clock));
  clock_ = clock == "host" ? PagerClock::host : PagerClock::device;
}

PythonPager::~PythonPager() {
  const py::gil_scoped_acquire lock;
  pager_ = py::object();
}

void PythonPager::plan(const Machine& machine, const Trace& trace) {
  tiers_.clear();
  for (const Tier& tier : machine.tiers) tiers_.push_back(tier.name);
  const py::gil_scoped_acquire lock;
  if (py::hasattr(pager_, "plan"))
    pager_.attr("plan")(tiers_, std::make_shared<ColumnTable>(step_op_table(trace)),
                        std::make_shared<ColumnTable>(step_storage_table(trace)),
                        std::make_shared<ColumnTable>(step_use_table(trace)));
  spill_order_.clear();
  if (!py::hasattr(pager_, "spill_order")) return;
  const py::object order = pager_.attr("spill_order")();
  const std::string where = fmt::format("Pager '{}', spill_order()", name_);
  if (!py::isinstance<py::sequence>(order) || py::isinstance<py::str>(order))
    refuse_type(where, order, "a list of names of tiers");
  for (const py::handle tier : order) {
    if (!py::isinstance<py::str>(tier)) refuse_type(where, tier, "names of tiers");
    spill_order_.push_back(tier_named(py::cast<std::string>(tier)));
  }
}

int PythonPager::tier_named(const std::string& tier) const {
  const auto found = std::ranges::find(tiers_, tier);
  if (found == tiers_.end())
    throw UsageError(fmt::format("Pager '{}': it named the tier \"{}\"; expected one of {}.{}", name_, tier,
                                 listed(tiers_), did_you_mean(tier, tiers_)));
  return static_cast<int>(found - tiers_.begin());
}

// ("evict", storage, "host") or ("drop", storage).
Move PythonPager::move_of(const py::handle& answer) const {
  const auto refuse = [&]() -> Move {
    throw UsageError(
        fmt::format("Pager '{}': found the move {}; expected (\"evict\", storage, tier) or (\"drop\", storage).", name_,
                    py::cast<std::string>(py::repr(answer))));
  };
  if (!py::isinstance<py::tuple>(answer)) return refuse();
  const auto words = py::reinterpret_borrow<py::tuple>(answer);
  if (words.size() < 2 || !py::isinstance<py::str>(words[0]) || !py::isinstance<py::int_>(words[1])) return refuse();
  const auto kind = py::cast<std::string>(words[0]);
  int is_too_large = 0;
  const long long storage = PyLong_AsLongLongAndOverflow(py::object(words[1]).ptr(), &is_too_large);
  if (is_too_large != 0 || storage < 0 || storage >= kNoStorage) return refuse();
  Move move{.storage = static_cast<StorageId>(storage)};
  if (kind == "evict" && words.size() == 3 && py::isinstance<py::str>(words[2])) {
    move.to = static_cast<std::uint8_t>(tier_named(py::cast<std::string>(words[2])));
    return move;
  }
  if (kind != "drop" || words.size() != 2) return refuse();
  move.kind = MoveKind::drop;
  return move;
}

std::vector<Move> PythonPager::moves_of(const py::object& answer) const {
  std::vector<Move> moves;
  if (answer.is_none()) return moves;
  if (!py::isinstance<py::iterable>(answer))
    refuse_type(fmt::format("Pager '{}', make_room()", name_), answer,
                "a list of moves (\"evict\", storage, tier) or (\"drop\", storage)");
  for (const py::handle move : answer) moves.push_back(move_of(move));
  return moves;
}

std::vector<Move> PythonPager::make_room(int tier, Bytes bytes, const PagerView& view) {
  const py::gil_scoped_acquire lock;
  const OpenView open(view, tiers_);
  return moves_of(pager_.attr("make_room")(tiers_[static_cast<std::size_t>(tier)], bytes, *open));
}

void add_pager_view(py::module_& module) {
  py::class_<ViewForPython, std::shared_ptr<ViewForPython>>(module, "PagerView")
      .def_property_readonly("now", &ViewForPython::now)
      .def("free_bytes", &ViewForPython::free_bytes)
      .def("movable", &ViewForPython::movable, py::arg("bytes") = 0);
}

}  // namespace memwall
