// The ranks of a job by place: how long each waits for others and holds them up, which groups they meet in, and what
// the links of each place carry.
#pragma once

#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

struct RankRow {
  std::string name;  // "rank 11, GPU 3, rail 3"
  // Seconds, >= 0: it waited for ranks of its own node, for those of others, and by how much others waited for it.
  double waits_near = 0, waits_far = 0, held_up = 0;
  std::string note;  // "waits 1.2 ms, 1.1 ms of it for rank 3 (node 0); came last to 3 of 8"
};

struct PlacedLinkRow {
  std::string name;  // "nvlink_out of GPU 3"
  Bytes bytes = 0;
  double utilization = 0;  // share of what it could have carried, 0 to 1
  double bandwidth = 0;    // bytes per second
};

struct RankPlace {
  std::string name;  // "node 1"; "" = all ranks, where nothing is known of nodes
  std::vector<RankRow> ranks;
  std::vector<PlacedLinkRow> links;  // that carried something
};

struct RankGroupRow {
  std::string name;   // "dp"
  std::string place;  // "8 ranks over 2 nodes, rail 3"
  std::string note;   // "12 collectives; its ranks waited 3.1 ms, last most often: rank 11 (node 1), 9 of 12"
};

struct RanksChart {
  std::string title, subtitle;
  std::vector<std::string> left_out;  // sentences: of rows that the picture has not
  std::vector<RankPlace> places;      // in the order of the picture
  std::vector<RankGroupRow> groups;   // likewise
};

// All bars of waits have one scale, that of the longest: what waits least is seen against what waits most.
Figure draw_ranks(const RanksChart& chart);

}  // namespace memwall
