#include "tests/gui/support/panel_fixture.h"

#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {

OpenRun small_open_run(const std::string& name, bool slower) {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 2;
  shape.flops_per_second = shape.bytes_per_second = slower ? 1e9 : 2e9;
  shape.launch_cost = microseconds(2);
  shape.host_gap = microseconds(1);
  auto run = std::make_shared<Run>(simulate_and_record(gpt_step(shape), test_machine(), RunSettings{}));
  OpenRun open{name, name, source_of(run), {}, {}, {}};
  open.spans = std::make_shared<SpanCache>(open.source);
  return open;
}

PanelFixture::PanelFixture(std::size_t runs) {
  std::vector<OpenRun> open;
  open.push_back(small_open_run("base.h5"));
  if (runs > 1) open.push_back(small_open_run("other.h5", true));
  workspace.resize(600, 400);
  workspace.open(std::move(open));
  settle();
}

void PanelFixture::settle() {
  for (int i = 0; i < 3; ++i) {
    QCoreApplication::processEvents();
    workspace.background().wait();
  }
  QCoreApplication::processEvents();
}

}  // namespace memwall::gui
