// Real captures, simulated, written and opened as the viewer does: for tests of what it shows of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/model/time_range.h"
#include "tests/support/shared_data.h"
#include "traces/run/run.h"

namespace memwall::gui {

struct ViewerCapture {
  const char* name;
  const char* machine;
  Trace (*import)(const std::filesystem::path& traces);
  const char* word;  // that some of its ops bear
};
void PrintTo(const ViewerCapture& capture, std::ostream* out);
const std::vector<ViewerCapture>& viewer_captures();

struct OpenedCapture {
  std::shared_ptr<const memwall::Run> run;  // in memory, as simulated
  OpenRun shown;                            // from the file, as the viewer opens it
};

// One run file per capture for all tests of this program.
const OpenedCapture& opened_capture(const ViewerCapture& capture);

class ViewerCaptures : public testing::TestWithParam<ViewerCapture> {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "the folder of captures is absent; set MEMWALL_SHARED";
    open_ = &opened_capture(GetParam());
  }
  const memwall::Run& run() const { return *open_->run; }
  const OpenRun& shown() const { return open_->shown; }
  const Trace& trace() const { return open_->run->trace; }
  const OpRecord& record(OpId id) const { return open_->run->result.records[id]; }

  // Three zooms: all of it, the middle tenth, a thousandth of it.
  std::vector<TimeRange> zooms() const {
    const Duration whole = run().result.end;
    std::vector<TimeRange> ranges{{Time{}, whole}};
    for (const std::int64_t part : {10, 1000}) ranges.push_back({whole / 2, whole / 2 + whole / part});
    return ranges;
  }

 private:
  const OpenedCapture* open_ = nullptr;
};

}  // namespace memwall::gui
