#include "gui/view/workspace.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <iterator>

#include "gui/model/run_label.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

// How long blocks are read before the picture is drawn again with them.
constexpr std::chrono::milliseconds kSharpening{60};

QString name_of(const OpenRun& run) { return QString::fromStdString(run.name); }

// Beside each other runs are called by what tells them apart.
std::vector<OpenRun> labelled(std::vector<OpenRun> runs) {
  std::vector<const Run*> outlines;
  std::vector<std::string> files;
  for (const OpenRun& run : runs) {
    outlines.push_back(&run.outline().run);
    files.push_back(run.path);
  }
  const std::vector<std::string> labels = run_labels(outlines, files);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].label = runs.size() > 1 ? labels[i] : "";
  return runs;
}

}  // namespace

Workspace::Workspace(QObject* parent) : QObject(parent), theme_(light_theme()) {}

// ---------------------------------------------------------------- runs

void Workspace::begin_with(std::vector<OpenRun> runs) {
  background_.cancel_all();
  loading_.clear();
  tried_.clear();
  unreadable_.clear();
  asked_history_ = false;
  const double width = state_.viewport.width();
  const bool legend = state_.show_legend;
  state_ = CanvasState{};
  state_.show_legend = legend;
  state_.runs = labelled(std::move(runs));
  state_.viewport = Viewport(state_.whole(), width);
  state_.rows = RowList::of(state_.runs);
  show_residency_rows();
}

void Workspace::open(std::vector<OpenRun> runs) {
  assert(runs.size() <= 2);
  begin_with(std::move(runs));
  Q_EMIT runs_changed();
  load_again();
}

bool Workspace::history_stopped() const {
  return asked_history_ && background_.idle() &&
         std::any_of(state_.runs.begin(), state_.runs.end(), [](const OpenRun& run) { return run.history == nullptr; });
}

void Workspace::load_again() {
  for (std::size_t run = 0; run < state_.runs.size(); ++run) {
    if (!state_.runs[run].history) load_history(run);
  }
  const bool small = std::all_of(state_.runs.begin(), state_.runs.end(),
                                 [](const OpenRun& run) { return run.outline().ops <= kSmallRun; });
  if (has_run() && small) load_analyses();
}

void Workspace::close() { open({}); }

void Workspace::load_history(std::size_t run) {
  asked_history_ = true;
  const auto source = state_.runs[run].source;
  background_.start(
      tr("Reading which storage lives where: %1").arg(name_of(state_.runs[run])),
      [this, run, source](const LoadProgress& progress) {
        auto history = ResidencyHistory::load(*source, progress);
        return [this, run, history] {
          state_.runs[run].history = history;
          Q_EMIT loaded();
        };
      },
      QStringLiteral("history/%1").arg(run));
}

void Workspace::load_analyses() {
  for (std::size_t run = 0; run < state_.runs.size(); ++run) {
    if (!state_.runs[run].history) load_history(run);
    if (!state_.runs[run].analysis) load_analysis(run);
  }
  if (analysed() && !state_.comparison) load_comparison();
}

void Workspace::load_analysis(std::size_t run) {
  const auto source = state_.runs[run].source;
  background_.start(
      tr("Working out what decides the time of %1").arg(name_of(state_.runs[run])),
      [this, run, source](const LoadProgress& progress) {
        auto analysis = analyse(*source, progress);
        return [this, run, analysis] {
          state_.runs[run].analysis = analysis;
          if (analysed()) load_comparison();
          Q_EMIT loaded();
        };
      },
      QStringLiteral("analysis/%1").arg(run));
}

void Workspace::load_comparison() {
  if (state_.runs.size() < 2) return;
  const auto base = state_.runs[0].analysis, other = state_.runs[1].analysis;
  background_.start(
      tr("Comparing the runs op by op"),
      [this, base, other](const LoadProgress& progress) {
        if (!progress(0)) throw LoadCancelled{};
        auto comparison = compare_runs(*base, *other);
        return [this, comparison] {
          state_.comparison = comparison;
          Q_EMIT loaded();
        };
      },
      QStringLiteral("comparison"));
}

bool Workspace::analysed() const {
  return has_run() && std::all_of(state_.runs.begin(), state_.runs.end(),
                                  [](const OpenRun& run) { return run.analysis != nullptr; });
}

void Workspace::load_blocks(const std::vector<MissingBlock>& missing) {
  std::vector<MissingBlock> wanted;
  for (const MissingBlock& block : missing) {
    if (!tried_.contains(block) && !unreadable_.contains(block)) wanted.push_back(block);
  }
  if (wanted == loading_) return;  // they are on their way
  loading_ = wanted;
  if (wanted.empty()) return background_.cancel(QStringLiteral("blocks"));
  std::vector<std::shared_ptr<SpanCache>> caches;
  for (const OpenRun& run : state_.runs) caches.push_back(run.spans);
  background_.start(
      tr("Reading spans"),
      [this, wanted, caches](const LoadProgress& progress) {
        std::vector<MissingBlock> read, bad;
        QString error;
        const auto until = std::chrono::steady_clock::now() + kSharpening;
        for (const MissingBlock& block : wanted) {
          if (!progress(0)) throw LoadCancelled{};
          try {
            caches[block.run]->load(block.block);
            read.push_back(block);
          } catch (const InputError& problem) {
            bad.push_back(block);
            error = QString::fromUtf8(problem.what());
          }
          if (std::chrono::steady_clock::now() > until) break;
        }
        return [this, read, bad, error] {
          loading_.clear();
          // Relations of the op, uses of the storage that was chosen last have one number whichever that is: those of
          // the next one are to be read again.
          std::copy_if(read.begin(), read.end(), std::inserter(tried_, tried_.end()),
                       [](const MissingBlock& block) { return SpanCache::is_block(block.block); });
          unreadable_.insert(bad.begin(), bad.end());
          if (!error.isEmpty()) report(error);
          Q_EMIT loaded();
        };
      },
      QStringLiteral("blocks"), true);
}

// ---------------------------------------------------------------- visible range, rows, marks

void Workspace::change_viewport(const std::function<void(Viewport&)>& change) {
  const TimeRange before = state_.viewport.visible();
  const double width = state_.viewport.width();
  change(state_.viewport);
  if (state_.viewport.visible() == before && state_.viewport.width() == width) return;
  tried_.clear();
  Q_EMIT viewport_changed();
}

void Workspace::change_rows(const std::function<void(RowList&)>& change) {
  change(state_.rows);
  state_.scroll = std::clamp(state_.scroll, 0.0, most_scroll());
  tried_.clear();
  Q_EMIT rows_changed();
}

void Workspace::reset_rows() {
  change_rows([this](RowList& rows) {
    rows = RowList::of(state_.runs);
    show_residency_rows();
  });
}

void Workspace::fold_rank(RowList::RankRef rank, bool folded) {
  change_rows([&](RowList& rows) { rows.fold(rank, folded); });
}

void Workspace::show_legend(bool on) {
  if (on == state_.show_legend) return;
  state_.show_legend = on;
  Q_EMIT rows_changed();
}

double Workspace::most_scroll() const { return std::max(0.0, state_.rows.height() - height_); }

void Workspace::scroll_to(double y) {
  y = std::clamp(y, 0.0, most_scroll());
  if (y == state_.scroll) return;
  state_.scroll = y;
  tried_.clear();
  Q_EMIT rows_changed();
}

void Workspace::reveal_row(std::size_t row) {
  for (const RowList::Place& place : state_.rows.places()) {
    if (place.row != row) continue;
    const double top = place.begins_group ? place.top - RowList::kGroupHeight : place.top;
    const double bottom = place.top + place.height;
    if (top < state_.scroll) {
      scroll_to(top);
    } else if (bottom > state_.scroll + height_) {
      scroll_to(std::min(top, bottom - height_));
    }
  }
}

void Workspace::resize(double width, double height) {
  height_ = std::max(1.0, height);
  change_viewport([&](Viewport& viewport) { viewport.resize(std::max(1.0, width)); });
  scroll_to(state_.scroll);
  Q_EMIT resized();
}

void Workspace::set_bookmarks(std::vector<Bookmark> bookmarks) {
  if (bookmarks == state_.bookmarks) return;
  state_.bookmarks = std::move(bookmarks);
  Q_EMIT bookmarks_changed();
}

void Workspace::set_theme(const Theme& theme) {
  theme_ = theme;
  Q_EMIT theme_changed();
}

void Workspace::say(const QString& text) { Q_EMIT said(text); }

void Workspace::report(const QString& sentence) { Q_EMIT problem(sentence); }

}  // namespace memwall::gui
