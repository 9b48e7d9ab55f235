#include "gui/drawing/op_marks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/model/navigation.h"

namespace memwall::gui {
namespace {

constexpr double kLeastWidth = 3;  // pixels of an outline
constexpr double kArrow = 7;       // pixels of an arrow's head

// Where a part of an op is on the screen: x may lie beyond the edges.
struct SpanBox {
  double x0 = 0, x1 = 0, top = 0, bottom = 0;
  double middle() const { return (top + bottom) / 2; }
};

class OpMarks {
 public:
  OpMarks(const std::vector<RowPlace>& rows, CanvasFrame& frame)
      : rows_(rows), state_(rows.front().state), theme_(rows.front().theme), frame_(frame) {}

  void draw() {
    mark_found();
    if (!state_.selection.op || !known(*state_.selection.op)) return;
    const OpRef op = *state_.selection.op;
    draw_arrows(op);
    outline(op, theme_.selection, 2);
    if (!state_.comparison) return;
    if (const auto other = state_.comparison->counterpart(op); other && known(*other))
      outline(*other, theme_.selection, 1.25);
  }

 private:
  bool known(OpRef op) const { return op.run < state_.runs.size() && op.op < state_.runs[op.run].outline().ops; }

  // Nothing where its block is not in memory (which is noted), or its lane is not on the screen.
  std::optional<SpanBox> box_of(OpRef op, bool want = true) {
    const OpenRun& run = state_.runs[op.run];
    const auto block = block_of(op);
    if (!block) {
      if (want) frame_.missing.push_back({op.run, SpanCache::block_of(op.op)});
      return std::nullopt;
    }
    const std::size_t i = op.op - block->spans.first;
    const Time begin = op.call ? block->spans.call_begin[i] : block->spans.begin[i];
    if (begin == kNever) return std::nullopt;
    const LaneTable& lanes = run.spans->lanes();
    const std::uint32_t lane =
        op.call ? lanes.of_thread(block->spans.thread[i]) : lanes.of_stream(block->spans.stream[i]);
    for (const RowPlace& row : rows_) {
      if (row.row.kind != RowKind::lane || row.row.run != op.run || row.row.index != lane) continue;
      const Duration time = op.call ? block->spans.call_time[i] : block->spans.time[i];
      return SpanBox{row.x(begin), row.x(begin + time), row.top, row.top + row.height};
    }
    return std::nullopt;
  }

  // Ops that were found stand close together: mostly the block is that of the one before.
  std::shared_ptr<const LoadedBlock> block_of(OpRef op) {
    const MissingBlock wanted{op.run, SpanCache::block_of(op.op)};
    if (!looked_ || last_ != wanted) {
      last_block_ = state_.runs[op.run].spans->find(wanted.block);
      last_ = wanted;
      looked_ = true;
    }
    return last_block_;
  }

  double left() const { return rows_.front().left; }
  double right() const { return left() + rows_.front().width; }

  void outline(OpRef op, Color color, double width) {
    const auto box = box_of(op);
    if (!box || box->x1 < left() || box->x0 > right()) return;
    const double x1 = std::max(box->x1, box->x0 + kLeastWidth);
    // Beyond the edges by a little: the sides of what goes on there are not drawn.
    const double from = std::max(left() - 2, std::round(box->x0)), to = std::min(right() + 2, std::round(x1));
    Polyline line;
    line.points = {{from, box->top}, {to, box->top}, {to, box->bottom}, {from, box->bottom}, {from, box->top}};
    line.stroke = color;
    line.width = width;
    frame_.figure.items.emplace_back(std::move(line));
  }

  void draw_arrows(OpRef op) {
    const OpenRun& run = state_.runs[op.run];
    const auto relations = run.spans->find_relations(op.op);
    if (!relations) {
      frame_.missing.push_back({op.run, SpanCache::kRelations});
      return;
    }
    if (const auto cause = cause_of(relations->detail, op); cause && known(*cause)) arrow(*cause, op);
    if (op.call) arrow(op, {op.run, op.op, false});
    for (const OpRelations::Follower& follower : relations->followers)
      if (follower.of_call == op.call) arrow(op, {op.run, follower.op, follower.call});
  }

  // From the end of what comes first to the begin of what waited.
  void arrow(OpRef from, OpRef to) {
    const auto a = box_of(from), b = box_of(to);
    if (!a || !b) return;
    Point start{std::min(a->x1, b->x0), a->middle()}, end{b->x0, b->middle()};
    // A steep line ends at the edge of the span's row, where its head does not cover the name.
    if (a->top != b->top && std::abs(end.x - start.x) < std::abs(end.y - start.y))
      end.y = a->top < b->top ? b->top : b->bottom;
    if (std::max(start.x, end.x) < left() || std::min(start.x, end.x) > right()) return;
    frame_.figure.items.emplace_back(Line{clipped(start, end), clipped(end, start), theme_.cursor, 1.5, false});
    if (end.x >= left() && end.x <= right()) draw_head(start, end);
  }

  void draw_head(Point start, Point end) {
    const double length = std::hypot(end.x - start.x, end.y - start.y);
    if (length < 2 * kArrow) return;
    const Point along{(end.x - start.x) / length * kArrow, (end.y - start.y) / length * kArrow};
    Polyline head;
    head.points = {end,
                   {end.x - along.x - along.y / 2, end.y - along.y + along.x / 2},
                   {end.x - along.x + along.y / 2, end.y - along.y - along.x / 2}};
    head.fill = theme_.cursor;
    frame_.figure.items.emplace_back(std::move(head));
  }

  // `point` moved along the line to `other` until it is within the drawing area.
  Point clipped(Point point, Point other) const {
    const double x = std::clamp(point.x, left(), right());
    if (x == point.x || point.x == other.x) return point;
    return {x, point.y + (other.y - point.y) * (x - point.x) / (other.x - point.x)};
  }

  // A mark below each op that was found, one per pixel of a row.
  void mark_found() {
    double last_x = -1, last_y = -1;
    for (const OpRef& op : state_.found) {
      if (!known(op)) continue;
      const auto box = box_of(op, false);
      if (!box || box->x1 < left() || box->x0 > right()) continue;
      const double x0 = std::max(left(), std::round(box->x0));
      const double x1 = std::min(right(), std::max(std::round(box->x1), x0 + 2));
      if (x0 == last_x && box->bottom == last_y) continue;
      last_x = x0;
      last_y = box->bottom;
      frame_.figure.items.emplace_back(Rectangle{x0, box->bottom - 4, x1 - x0, 3, theme_.found});
    }
  }

  const std::vector<RowPlace>& rows_;
  const CanvasState& state_;
  const Theme& theme_;
  CanvasFrame& frame_;
  MissingBlock last_;
  std::shared_ptr<const LoadedBlock> last_block_;
  bool looked_ = false;
};

// About when ops ran, without reading their blocks: of a block that is not in memory, spread over the time of its host
// calls, else of its work. Asked for ops in ascending order, it looks at each block once.
class AboutWhen {
 public:
  explicit AboutWhen(const CanvasState& state) : state_(state) {}

  std::optional<Time> operator()(OpRef op) {
    const MissingBlock wanted{op.run, SpanCache::block_of(op.op)};
    if (!looked_ || last_ != wanted) look(wanted);
    if (block_) {
      const std::size_t i = op.op - block_->spans.first;
      const Time begin = block_->spans.begin[i] != kNever ? block_->spans.begin[i] : block_->spans.call_begin[i];
      return begin == kNever ? std::nullopt : std::optional(begin);
    }
    if (!spread_) return std::nullopt;
    const double share = static_cast<double>(op.op % kSpanBlock) / kSpanBlock;
    return spread_->begin +
           Duration(std::llround(share * static_cast<double>((spread_->end - spread_->begin).count())));
  }

 private:
  void look(MissingBlock wanted) {
    const OpenRun& run = state_.runs[wanted.run];
    last_ = wanted;
    looked_ = true;
    spread_ = nullptr;
    block_ = run.spans->find(wanted.block);
    for (std::uint32_t lane = 0; !block_ && !spread_ && lane < run.outline().lanes.size(); ++lane) {
      if (run.outline().lanes[lane].kind == RunLaneKind::pager) continue;
      const LaneBlockSearch& search = run.spans->blocks_of(lane);
      const std::size_t index = search.index_of(wanted.block);
      if (index < search.blocks().size()) spread_ = &search.blocks()[index];
    }
  }

  const CanvasState& state_;
  MissingBlock last_;
  bool looked_ = false;
  std::shared_ptr<const LoadedBlock> block_;
  const LaneBlock* spread_ = nullptr;  // where its block is not in memory: over which time its ops are spread
};

}  // namespace

void draw_op_marks(const std::vector<RowPlace>& rows, CanvasFrame& frame) {
  if (!rows.empty()) OpMarks(rows, frame).draw();
}

void draw_found_ticks(const CanvasState& state, const Theme& theme, Figure& figure) {
  double last = -1;
  AboutWhen about_when(state);
  for (const OpRef& op : state.found) {
    if (op.run >= state.runs.size() || op.op >= state.runs[op.run].outline().ops) continue;
    const auto time = about_when(op);
    if (!time) continue;
    const double x = std::round(state.viewport.x(*time + (op.run == 0 ? Duration{} : state.shift)));
    if (x < 0 || x > state.viewport.width() || x == last) continue;
    last = x;
    figure.items.emplace_back(Rectangle{kTitleWidth + x - 1, kRulerHeight - 4, 2, 4, theme.found});
  }
}

}  // namespace memwall::gui
