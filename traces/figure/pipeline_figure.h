// A pipeline over time: a line per stage with its forward and backward passes, each with the number of its micro-batch,
// messages thin below them, and what it waits left white.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

enum class PipelineWork : std::uint8_t { forward, backward, update };

struct PipelinePassBar {
  PipelineWork work = PipelineWork::forward;
  std::uint32_t chunk = 0, microbatch = 0;  // of an update neither
  Time begin{}, end{};
  std::string title;  // shown on hovering
};
struct PipelineMessageBar {
  Time begin{}, end{};
};

struct PipelineRow {
  std::string name, note;               // "rank 8", "stage 1: layers 12 to 23"
  std::vector<PipelinePassBar> passes;  // ascending in begin
  std::vector<PipelineMessageBar> messages;
};

struct PipelineChart {
  std::string title, subtitle;
  Time begin{}, end{};
  std::uint32_t chunks = 1;  // that a rank has at most
  std::vector<PipelineRow> rows;
};

// What lies outside [begin, end] is left out. Neighbours of one colour that are thinner than can be seen are drawn as
// one. REQUIRES: begin <= end.
Figure draw_pipeline(const PipelineChart& chart);

}  // namespace memwall
