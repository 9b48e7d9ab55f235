#include "gui/view/window/export_dialog.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>

#include "gui/drawing/legend.h"
#include "gui/view/window/export_figure.h"
#include "sim/error.h"
#include "traces/run/analysis/pipeline_summary.h"

namespace memwall::gui {
namespace {

constexpr const char* kScreen = "screen";

void export_or_report(Workspace& workspace, const Figure& figure, const QString& path, double scale) {
  try {
    export_figure(figure, path.toStdString(), scale);
    workspace.say(QObject::tr("Wrote %1.").arg(path));
  } catch (const std::exception& error) {
    workspace.report(QString::fromUtf8(error.what()));
  }
}

}  // namespace

ExportDialog::ExportDialog(Workspace& workspace, QSize canvas, QWidget* parent)
    : QDialog(parent),
      workspace_(workspace),
      canvas_(canvas),
      view_(new QComboBox(this)),
      tier_(new QComboBox(this)),
      range_(new QComboBox(this)),
      path_(new QLineEdit(this)),
      scale_(new QDoubleSpinBox(this)) {
  setObjectName("export");
  setWindowTitle(tr("Export a figure"));
  setAttribute(Qt::WA_DeleteOnClose);
  const CanvasState& state = workspace_.state();
  view_->addItem(tr("What the screen shows"), kScreen);
  for (const std::string& name : run_figure_names()) {
    if (name == "compare" && state.runs.size() < 2) continue;
    if (name == "ranks" && state.runs[0].outline().run.trace->rank_table.size() < 2) continue;
    if (name == "pipeline" && !has_stages(state.runs[0].outline().run.trace)) continue;
    view_->addItem(QString::fromStdString(name), QString::fromStdString(name));
  }
  for (const Tier& tier : state.runs[0].outline().run.machine.tiers) tier_->addItem(QString::fromStdString(tier.name));
  range_->addItem(tr("What is visible"), "visible");
  if (state.selection.range) range_->addItem(tr("The chosen range"), "chosen");
  range_->addItem(tr("The whole run"), "whole");
  scale_->setRange(0.5, 8);
  scale_->setValue(2);
  scale_->setSuffix(tr(" pixels per point"));
  path_->setText(
      QDir::current().filePath(QFileInfo(QString::fromStdString(state.runs[0].name)).completeBaseName() + ".svg"));
  path_->setToolTip(tr("The ending says the format: .svg, .pdf or .png."));
  auto* browse = new QPushButton(tr("Choose…"), this);
  auto* file = new QHBoxLayout;
  file->addWidget(path_, 1);
  file->addWidget(browse);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, this);
  auto* form = new QFormLayout(this);
  form->addRow(tr("&View"), view_);
  form->addRow(tr("&Tier"), tier_);
  form->addRow(tr("&Range"), range_);
  form->addRow(tr("&File"), file);
  form->addRow(tr("&PNG"), scale_);
  form->addRow(buttons);
  connect(browse, &QPushButton::clicked, this, &ExportDialog::choose_file);
  connect(buttons, &QDialogButtonBox::accepted, this, &ExportDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(view_, &QComboBox::currentIndexChanged, this, &ExportDialog::adapt);
  connect(path_, &QLineEdit::textChanged, this, &ExportDialog::adapt);
  adapt();
  resize(560, sizeHint().height());
}

void ExportDialog::adapt() {
  const QString view = view_->currentData().toString();
  tier_->setEnabled(view == "memory");
  range_->setEnabled(draws_ranges(view.toStdString()));
  scale_->setEnabled(path_->text().endsWith(".png"));
}

void ExportDialog::choose_file() {
  const QString path =
      QFileDialog::getSaveFileName(this, tr("Export a figure"), path_->text(), tr("Figures (*.svg *.pdf *.png)"));
  if (!path.isEmpty()) path_->setText(path);
}

Figure ExportDialog::canvas_figure() const {
  CanvasFrame frame = draw_canvas(workspace_.state(), workspace_.theme(), canvas_.width(), canvas_.height());
  if (workspace_.state().show_legend) append_legend(frame, workspace_.theme());
  return std::move(frame.figure);
}

void ExportDialog::accept() {
  const QString path = path_->text();
  try {
    if (view_->currentData() == QLatin1String(kScreen)) {
      export_or_report(workspace_, canvas_figure(), path, scale_->value());
    } else {
      write_run_figure(path);
    }
  } catch (const InputError& error) {
    workspace_.report(QString::fromUtf8(error.what()));
  }
  QDialog::accept();
}

void ExportDialog::write_run_figure(const QString& path) {
  RunFigureRequest request;
  request.view = view_->currentData().toString().toStdString();
  request.tier = tier_->currentText().toStdString();
  const CanvasState& state = workspace_.state();
  if (request.view == "memory") request.clock = state.clock;
  if (range_->isEnabled() && range_->currentData() == "visible") request.range = state.viewport.visible();
  if (range_->isEnabled() && range_->currentData() == "chosen") request.range = state.selection.range;
  std::vector<OpenRun> runs = state.runs;
  if (request.view != "compare") runs.resize(1);
  const double scale = scale_->value();
  workspace_.background().start(
      tr("Drawing %1").arg(QFileInfo(path).fileName()),
      [workspace = &workspace_, request, runs, path, scale](const LoadProgress& progress) {
        std::vector<std::shared_ptr<const Run>> whole;
        std::vector<const Run*> drawn;
        std::vector<std::string> files;
        for (const OpenRun& run : runs) {
          whole.push_back(run.analysis ? run.analysis->run : run.source->whole(progress));
          drawn.push_back(whole.back().get());
          files.push_back(run.path);
        }
        auto figure = std::make_shared<Figure>(run_figure(drawn, files, request));
        return [workspace, figure, path, scale] { export_or_report(*workspace, *figure, path, scale); };
      },
      QStringLiteral("export"));
}

}  // namespace memwall::gui
