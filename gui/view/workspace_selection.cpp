// Workspace: what is chosen, and going from one to another.
#include <algorithm>

#include "gui/view/workspace.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

// What is read of a file may turn out to be damaged: `fallback` then, and the reason as a problem.
template <typename Value, typename Read>
Value read_or(Workspace& workspace, Value fallback, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    workspace.report(QString::fromUtf8(error.what()));
  }
  return fallback;
}

bool shows_lane(const CanvasRow& row, std::uint8_t run, std::uint32_t lane) {
  return row.kind == RowKind::lane && row.run == run && row.index == lane;
}

}  // namespace

void Workspace::select(std::optional<OpRef> op) {
  if (op && (op->run >= state_.runs.size() || op->op >= state_.runs[op->run].outline().ops)) op.reset();
  if (op == state_.selection.op) return;
  state_.selection.op = op;
  // That those of another op cannot be read says nothing about this one's.
  if (op) unreadable_.erase({op->run, SpanCache::kRelations});
  Q_EMIT selection_changed();
}

void Workspace::go_to(OpRef op) {
  select(op);
  if (state_.selection.op != op) return;
  const OpenRun& run = state_.runs[op.run];
  const auto time = read_or<std::optional<TimeRange>>(*this, {}, [&] { return time_of(run, op); });
  const auto lane = read_or<std::optional<std::uint32_t>>(*this, {}, [&] { return lane_of(run, op); });
  if (!time) return;
  const Duration shift = op.run == 0 ? Duration{} : state_.shift;
  change_viewport([&](Viewport& viewport) { viewport.reveal(time->begin + shift); });
  if (!lane) return;
  const auto& rows = state_.rows.rows();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const CanvasRow& r) { return shows_lane(r, op.run, *lane); });
  if (row == rows.end()) return;
  if (row->rank) fold_rank({row->run, *row->rank}, false);
  const auto index = static_cast<std::size_t>(row - rows.begin());
  const auto shown = state_.rows.shown();
  if (std::find(shown.begin(), shown.end(), index) == shown.end()) {
    say(tr("Op %1 stands in \"%2\", which is not shown: \"Show all lanes\" in the menu View brings it back.")
            .arg(op.op)
            .arg(QString::fromStdString(row->title)));
  }
  reveal_row(index);
}

void Workspace::select_storage(std::optional<StorageRef> storage) {
  if (storage &&
      (storage->run >= state_.runs.size() || storage->storage >= state_.runs[storage->run].outline().storages)) {
    storage.reset();
  }
  if (storage == state_.selection.storage) return;
  const auto run_of = [](const std::optional<StorageRef>& chosen) { return chosen ? int{chosen->run} : -1; };
  const bool other_run = run_of(storage) != run_of(state_.selection.storage);
  state_.selection.storage = storage;
  // Only then: a person may have hidden the row, and goes on choosing.
  if (other_run) change_rows([this](RowList&) { show_residency_rows(); });
  if (storage) unreadable_.erase({storage->run, SpanCache::kUses});
  Q_EMIT selection_changed();
  reveal_residency_row();
}

// Rows that show the life of the chosen storage take room only where there is one.
void Workspace::show_residency_rows() {
  for (std::size_t i = 0; i < state_.rows.rows().size(); ++i) {
    CanvasRow& row = state_.rows.row(i);
    if (row.kind != RowKind::residency) continue;
    row.hidden = !state_.selection.storage || state_.selection.storage->run != row.run;
  }
}

// The row that shows the life of the chosen storage.
void Workspace::reveal_residency_row() {
  if (!state_.selection.storage) return;
  for (const std::size_t i : state_.rows.shown()) {
    const CanvasRow& row = state_.rows.rows()[i];
    if (row.kind == RowKind::residency && row.run == state_.selection.storage->run) return reveal_row(i);
  }
}

void Workspace::set_range(std::optional<TimeRange> range) {
  if (range == state_.selection.range) return;
  state_.selection.range = range;
  Q_EMIT selection_changed();
}

void Workspace::set_cursor(std::optional<Time> time) {
  if (time) time = std::clamp(*time, state_.whole().begin, state_.whole().end);
  if (time == state_.selection.cursor) return;
  state_.selection.cursor = time;
  Q_EMIT selection_changed();
}

void Workspace::go_to_time(Time time) {
  set_cursor(time);
  change_viewport([&](Viewport& viewport) { viewport.reveal(time); });
}

void Workspace::set_found(std::vector<OpRef> found) {
  if (found == state_.found) return;
  state_.found = std::move(found);
  Q_EMIT selection_changed();
}

void Workspace::show_path(bool on) {
  if (on == state_.show_path) return;
  state_.show_path = on;
  if (on && !analysed()) {
    say(tr("The critical path is being worked out."));
    load_analyses();
  }
  Q_EMIT rows_changed();
}

void Workspace::align_to(std::optional<OpRef> op) {
  Duration shift{};
  if (op) {
    if (state_.runs.size() < 2) return say(tr("Aligning needs two runs: C opens the second."));
    if (!state_.comparison || !analysed()) {
      load_analyses();
      return say(tr("The runs are still being compared; align again when that is done."));
    }
    if (!state_.comparison->counterpart(*op)) return say(tr("The other run has no counterpart of this op."));
    shift = state_.comparison->shift_to(*op, *state_.runs[0].analysis, *state_.runs[1].analysis);
  }
  if (shift == state_.shift) return;
  state_.shift = shift;
  state_.viewport.set_whole(state_.whole());
  tried_.clear();
  Q_EMIT viewport_changed();
  Q_EMIT rows_changed();
}

void Workspace::step(const std::function<std::optional<OpRef>(const OpenRun&, OpRef)>& find,
                     const QString& at_the_end) {
  const auto from = state_.selection.op;
  if (!from) return say(tr("Click a span first: this goes from the chosen op to another."));
  const auto to = read_or<std::optional<OpRef>>(*this, {}, [&] { return find(state_.runs[from->run], *from); });
  if (!to) return say(at_the_end);
  go_to(*to);
}

void Workspace::step_in_lane(Direction direction) {
  step([&](const OpenRun& run, OpRef op) { return next_in_lane(run, op, direction); },
       direction == Direction::forward ? tr("This is the last op of its lane.")
                                       : tr("This is the first op of its lane."));
}

void Workspace::step_along_dependency(Direction direction) {
  step([&](const OpenRun& run, OpRef op) { return along_dependency(run, op, direction); },
       direction == Direction::forward ? tr("No op waited for this one.") : tr("This op waited for no other."));
}

std::optional<TimeRange> Workspace::chosen_range() {
  const Selection& chosen = state_.selection;
  if (chosen.range) return chosen.range;
  const auto shifted = [&](TimeRange range, std::uint8_t run) {
    const Duration shift = run == 0 ? Duration{} : state_.shift;
    return TimeRange{range.begin + shift, range.end + shift};
  };
  if (chosen.op) {
    const auto time =
        read_or<std::optional<TimeRange>>(*this, {}, [&] { return time_of(state_.runs[chosen.op->run], *chosen.op); });
    if (time) return shifted(*time, chosen.op->run);
  }
  if (!chosen.storage || !state_.runs[chosen.storage->run].history) return std::nullopt;
  const auto& history = *state_.runs[chosen.storage->run].history;
  std::optional<TimeRange> life;
  for (const std::uint32_t row : history.life(chosen.storage->storage)) {
    const Residency& residency = history.residencies()[row];
    if (!life) life = TimeRange{residency.begin, residency.end};
    life->end = std::max(life->end, residency.end);
  }
  if (life) life->end = std::min(life->end, state_.runs[chosen.storage->run].whole().end);
  if (life) return shifted(*life, chosen.storage->run);
  return std::nullopt;
}

void Workspace::show_chosen() {
  const auto range = chosen_range();
  if (!range) return say(tr("Choose something first: click a span, drag a range, or choose a storage."));
  // A span's name and its neighbours stay readable; a range is shown as it was dragged.
  const Duration margin = state_.selection.range ? Duration{} : range->length() / 10;
  change_viewport([&](Viewport& viewport) { viewport.show({range->begin - margin, range->end + margin}); });
  if (state_.selection.op && !state_.selection.range) go_to(*state_.selection.op);
}

}  // namespace memwall::gui
