// All-reduces by size (vtrain_nccl_allreduce_lut_a100_v100.csv: two and eight GPUs; nccl_collectives_busbw.csv: eight)
// and copies to and from the host (link_bandwidth_points.csv).
//
// The files of A100, V100 and H200 have their fabrics from these tables, all but A100's between two GPUs. Of copies
// there is one size for each GPU, which its machine file states: nothing can be learnt from these but that routes are
// found.
#include <fmt/format.h>

#include <map>

#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

WorkPart all_reduce(double message, double ranks) {
  WorkPart part;
  part.op.kind = OpKind::collective;
  part.op.collective = CollectiveKind::all_reduce;
  part.op.bytes = static_cast<Bytes>(2 * (ranks - 1) / ranks * message);
  return part;
}

// Pairs of rows that differ in the machine alone.
class Pairs {
 public:
  void add(const std::string& machine, TransferRow row, double seconds) {
    auto [before, is_new] = first_.try_emplace(row.name, row);
    if (is_new) {
      before->second.from = machine;
      before->second.measured_from = seconds;
    } else if (before->second.from != machine) {
      TransferRow pair = before->second;
      pair.to = machine;
      pair.measured_to = seconds;
      add_both_ways(rows_, pair);
    }
  }
  std::vector<TransferRow> rows() && { return std::move(rows_); }

 private:
  std::map<std::string, TransferRow> first_;
  std::vector<TransferRow> rows_;
};

}  // namespace

std::vector<TransferRow> reduction_rows(const std::vector<CsvTableRow>& table) {
  Pairs pairs;
  for (const CsvTableRow& r : table) {
    TransferRow row;
    row.table = "vtrain_nccl_allreduce_lut_a100_v100";
    row.kind = "collective";
    row.ranks = static_cast<std::uint32_t>(r.integer("ranks"));
    row.name = fmt::format("{} ranks, {} MiB", row.ranks, r.integer("bytes") >> 20);
    row.work = {all_reduce(r.number("bytes"), row.ranks)};
    row.calibrated = row.ranks == 8;
    pairs.add(r.text("gpu") == "a100" ? "a100-sxm-80gb" : "v100-sxm2-16gb", row, r.number("oop_ns") * 1e-9);
  }
  return std::move(pairs).rows();
}

std::vector<TransferRow> collective_rows(const std::vector<CsvTableRow>& table) {
  Pairs pairs;
  for (const CsvTableRow& r : table) {
    const std::string& hardware = r.text("hardware");
    const bool a100 = hardware == "8xA100 NVLink3";
    if ((!a100 && hardware != "8xH200 NVLink4 NVSwitch") || r.text("collective") != "all_reduce") continue;
    TransferRow row;
    row.table = "nccl_collectives_busbw";
    row.kind = "collective";
    row.ranks = 8;
    row.name = fmt::format("8 ranks, {} KiB", r.integer("bytes") >> 10);
    row.work = {all_reduce(r.number("bytes"), 8)};
    row.calibrated = true;
    pairs.add(a100 ? "a100-sxm-80gb" : "h200-sxm-141gb", row, r.number("time_us") * 1e-6);
  }
  return std::move(pairs).rows();
}

std::vector<TransferRow> link_rows(const std::vector<CsvTableRow>& table) {
  struct Known {
    const char *hardware, *test, *machine;
  };
  constexpr Known kKnown[] = {
      {"8xA100 (README sample; PCIe4)", "H2D memcpy CE", "a100-sxm-80gb"},
      {"8xH200 node (AWS p5en)", "H2D pinned memcpy CE (PCIe5 x16), per link", "h200-sxm-141gb"},
      {"GH200 480GB", "H2D memcpy CE NVLink-C2C", "gh200-480gb"}};
  Pairs pairs;
  for (const CsvTableRow& r : table)
    for (const Known& known : kKnown) {
      if (r.text("hardware") != known.hardware || r.text("test") != known.test) continue;
      constexpr double kBytes = 512.0 * (1 << 20);  // nvbandwidth's default
      TransferRow row;
      row.table = "link_bandwidth_points";
      row.kind = "copy";
      row.name = "host to device, 512 MiB";
      row.source = "host";
      row.target = "hbm";
      WorkPart part;
      part.op.kind = OpKind::copy;
      part.op.bytes = static_cast<Bytes>(kBytes);
      row.work = {part};
      row.calibrated = true;
      pairs.add(known.machine, row, kBytes / (r.number("GBps") * 1e9));
    }
  return std::move(pairs).rows();
}

}  // namespace memwall
