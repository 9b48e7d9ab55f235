#include "cli/print/roofline_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/print/answer.h"
#include "cli/print/format.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"
#include "sim/words.h"

namespace memwall {
namespace {

std::string human_flops(double rate) {
  static constexpr std::array kUnits{"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && rate >= 999.95) rate /= 1000, ++unit;
  return fmt::format("{:.{}f} {}", rate, rate < 10 ? 2 : rate < 100 ? 1 : 0, kUnits[unit]);
}

std::string human_intensity(double intensity) {
  return intensity < 10 ? fmt::format("{:.2f}", intensity) : fmt::format("{:.{}f}", intensity, intensity < 100 ? 1 : 0);
}

Cell flops_cell(double rate) {
  return rate > 0 ? number_cell(human_flops(rate), plain_number(rate)) : unrecorded_cell("-");
}

Cell rate_cell(double rate) { return number_cell(human_rate(rate), plain_number(rate)); }

// Infinite (nothing crosses that level) and unknown are no numbers of JSON.
Cell intensity_cell(double intensity) {
  if (!std::isfinite(intensity) || intensity <= 0) return unrecorded_cell(intensity > 0 ? "no traffic" : "-");
  return number_cell(human_intensity(intensity), plain_number(intensity));
}

double share(Duration part, Duration whole) { return whole.count() > 0 ? to_seconds(part) / to_seconds(whole) : 0; }

std::string sentence(RooflineBound bound) {
  switch (bound) {
    case RooflineBound::compute:
      return "arithmetic at the peak of its data type would take longest";
    case RooflineBound::l2:
      return "traffic between multiprocessors and L2 would take longest";
    case RooflineBound::hbm:
      return "traffic of HBM would take longest";
    case RooflineBound::latency:
      return "at least half of the time is the fixed cost of such a kernel";
    case RooflineBound::unknown:
      break;
  }
  return "neither FLOPs nor bytes are known";
}

Table roofs(const Roofline& r) {
  Table t;
  t.name = "roofs";
  t.title = "Roofs (ridge: FLOP per byte from which work is no longer bound by the level)";
  t.columns = {"roof", "kind", "rate"};
  for (const MemoryRoof& m : r.memory) t.columns.push_back("ridge_" + std::string(m.name == "L2" ? "l2" : "hbm"));
  t.headings = {"roof", "kind", "rate"};
  for (const MemoryRoof& m : r.memory) t.headings.push_back("ridge at " + m.name);
  for (const MemoryRoof& m : r.memory) {
    t.rows.push_back({cell(m.name), cell("memory"), rate_cell(m.bandwidth)});
    t.rows.back().resize(t.columns.size(), unrecorded_cell("-"));
  }
  for (const ComputeRoof& c : r.compute) {
    t.rows.push_back({cell(std::string(to_string(c.data_type))), cell("compute"), flops_cell(c.flops)});
    for (const MemoryRoof& m : r.memory) t.rows.back().push_back(intensity_cell(c.flops / m.bandwidth));
  }
  return t;
}

Table bounds(const Roofline& r) {
  Table t;
  t.name = "bounds";
  const Duration unknown = r.by_bound[static_cast<std::size_t>(RooflineBound::unknown)];
  t.title = fmt::format("What bounds the kernels ({} one by one; {} of it is bound by memory{})",
                        human_time(r.kernel_time), percent_text(share(r.memory_bound(), r.kernel_time)),
                        unknown.count() == 0 ? ""
                                             : fmt::format(", of {} neither FLOPs nor bytes are known",
                                                           percent_text(share(unknown, r.kernel_time))));
  t.columns = {"bound", "time_s", "share", "meaning"};
  t.headings = {"bound", "time", "share", ""};
  for (int i = 0; i < kRooflineBounds; ++i) {
    const Duration time = r.by_bound[static_cast<std::size_t>(i)];
    if (time.count() == 0 && i == static_cast<int>(RooflineBound::unknown)) continue;
    const auto bound = static_cast<RooflineBound>(i);
    t.rows.push_back({cell(std::string(to_string(bound))), time_cell(time), share_cell(share(time, r.kernel_time)),
                      cell(sentence(bound))});
  }
  return t;
}

Table classes(const Roofline& r) {
  Table t;
  t.name = "classes";
  t.title = "By class of operator (memory-bound: the part of the class's time that L2 or HBM bounds)";
  t.columns = {"class", "time_s", "share", "memory_bound"};
  t.headings = {"class", "time", "share", "memory-bound"};
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c < r.by_class.size(); ++c)
    if (r.by_class[c].count() > 0) order.push_back(c);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return r.by_class[a] > r.by_class[b]; });
  for (const std::size_t c : order)
    t.rows.push_back({cell(std::string(to_string(static_cast<OperatorClass>(c)))), time_cell(r.by_class[c]),
                      share_cell(share(r.by_class[c], r.kernel_time)),
                      share_cell(share(r.memory_bound_by_class[c], r.by_class[c]))});
  return t;
}

Table operators(const Roofline& r, std::size_t most) {
  Table t;
  t.name = "operators";
  const std::size_t shown = std::min(most, r.operators.size());
  t.title = fmt::format(
      "Operators by their time, {} in all (numbers in module paths folded; of roof: attained of what is attainable)",
      r.operators.size());
  t.columns = {"rank",  "operator", "module", "phase",    "class",      "ops",     "time_s",
               "share", "at_l2",    "at_hbm", "achieved", "attainable", "of_roof", "bound"};
  t.headings = {"",      "operator",  "module",     "phase",    "class",      "ops",     "time",
                "share", "FLOP/B L2", "FLOP/B HBM", "achieved", "attainable", "of roof", "bound"};
  for (std::size_t i = 0; i < shown; ++i) {
    const RooflineOperator& o = r.operators[i];
    t.rows.push_back({count_cell(i + 1), cell(o.name), cell(o.module.empty() ? "-" : o.module),
                      cell(std::string(to_string(o.phase))), cell(std::string(to_string(o.operator_class))),
                      count_cell(o.ops), time_cell(o.duration), share_cell(share(o.duration, r.kernel_time)),
                      intensity_cell(o.intensity_at_l2()), intensity_cell(o.intensity_at_hbm()),
                      flops_cell(o.achieved()), flops_cell(o.attainable()),
                      o.share_of_roof() > 0 ? share_cell(o.share_of_roof()) : unrecorded_cell("-"),
                      cell(std::string(to_string(o.bound())))});
  }
  return t;
}

Table transfers(const Roofline& r) {
  Table t;
  t.name = "transfers";
  t.title = "Copies and collectives (no FLOPs: bound by their route or fabric)";
  t.columns = {"transfer", "ops", "bytes", "time_s", "achieved", "bandwidth", "of_roof"};
  t.headings = {"transfer", "ops", "bytes", "time", "achieved", "bandwidth", "of roof"};
  for (const RooflineTransfer& x : r.transfers) {
    const double rate = x.duration.count() > 0 ? static_cast<double>(x.bytes) / to_seconds(x.duration) : 0;
    t.rows.push_back({cell(x.name), count_cell(x.ops), bytes_cell(x.bytes), time_cell(x.duration),
                      rate > 0 ? rate_cell(rate) : unrecorded_cell("-"),
                      x.bandwidth > 0 ? rate_cell(x.bandwidth) : unrecorded_cell("-"),
                      x.bandwidth > 0 ? share_cell(x.share_of_roof()) : unrecorded_cell("-")});
  }
  return t;
}

// Why a kernel may take less than its FLOPs or bytes allow, where it was measured.
std::string reason_of_kernel(const RooflineOperator& o) {
  if (o.bound() == RooflineBound::compute)
    return fmt::format(
        "needed fewer operations (convolutions by Winograd's algorithm or FFT) or computed in another "
        "type than {}",
        to_string(o.data_type));
  return "had more of its bytes from L2 than is taken for granted, or moved fewer than its tensors hold";
}

std::string above_roof(const RooflineOperator& o, const std::string& stranger) {
  const std::string head = fmt::format("{} ({}, {}): {} of the roof. ", o.name, o.module.empty() ? "-" : o.module,
                                       to_string(o.phase), percent_text(o.share_of_roof()));
  if (o.origin == Origin::transferred)
    return head + fmt::format(
                      "Nothing ran on this machine: its time is a transfer of one that was measured on another, where "
                      "it was above the roof as well. The kernel {}.",
                      reason_of_kernel(o));
  if (!stranger.empty()) return head + stranger;
  return head + fmt::format("It took less time than its {} allow on this machine: it {}.",
                            o.bound() == RooflineBound::compute ? "FLOPs" : "bytes", reason_of_kernel(o));
}

std::string above_roof(const RooflineTransfer& x, const std::string& stranger) {
  const std::string head =
      fmt::format("{}: {} of the bandwidth that the machine file has. ", x.name, percent_text(x.share_of_roof()));
  if (x.origin == Origin::transferred)
    return head +
           "Nothing ran on this machine: its time is a transfer of one that was measured on another, where it was "
           "above its machine's file as well.";
  if (!stranger.empty()) return head + stranger;
  return head + "The capture was made on a machine with a faster link; calibrate a file of your own.";
}

// Nothing is faster than its roof: what says so has a reason. `stranger`: that of measured times which may be another
// machine's, "" where they are this one's.
Table above_roof(const Roofline& r, const std::string& stranger) {
  constexpr double kRounding = 1e-6;
  Table t{.name = "above_roof",
          .title = "Above 100 % of the roof",
          .columns = {"note"},
          .headings = {""},
          .rows = {},
          .prose = true};
  for (const RooflineOperator& o : r.operators)
    if (o.share_of_roof() > 1 + kRounding) t.rows.push_back({cell(above_roof(o, stranger))});
  for (const RooflineTransfer& x : r.transfers)
    if (x.share_of_roof() > 1 + kRounding) t.rows.push_back({cell(above_roof(x, stranger))});
  return t;
}

std::vector<Cell> change(const std::string& name, const Cell& before, const Cell& after, double from, double to) {
  const double saved = from > 0 ? (from - to) / from : 0;
  return {cell(name), before, after, share_cell(saved)};
}

Table fusion_table(const FusionEffect& f) {
  Table t;
  t.name = "fusion";
  if (!f.refusal.empty()) {
    t.title = "What fusion would save";
    t.columns = {"reason"};
    t.prose = true;
    t.rows.push_back({cell("Not known. " + f.refusal)});
    return t;
  }
  t.title = f.merged_ops == 0
                ? "What fusion would save: nothing is left to merge"
                : fmt::format("What fusion would save: {} ops become {}, {} intermediates of {} never reach memory",
                              grouped_text(f.merged_ops), grouped_text(f.merged_into), grouped_text(f.vanished),
                              human_bytes(f.vanished_bytes));
  t.columns = {"quantity", "as_it_is", "fused", "saved"};
  t.headings = {"", "as it is", "fused", "saved"};
  const StepTotals &a = f.before, &b = f.after;
  const auto number = [](auto n) { return static_cast<double>(n); };
  t.rows.push_back(
      change("kernels", count_cell(a.kernels), count_cell(b.kernels), number(a.kernels), number(b.kernels)));
  t.rows.push_back(change("their traffic", bytes_cell(a.bytes), bytes_cell(b.bytes), number(a.bytes), number(b.bytes)));
  t.rows.push_back(change("their time", time_cell(a.kernel_time), time_cell(b.kernel_time), to_seconds(a.kernel_time),
                          to_seconds(b.kernel_time)));
  t.rows.push_back(change("step time", time_cell(a.step_time), time_cell(b.step_time), to_seconds(a.step_time),
                          to_seconds(b.step_time)));
  t.rows.push_back(change("peak memory", bytes_cell(a.peak), bytes_cell(b.peak), number(a.peak), number(b.peak)));
  t.rows.push_back(
      change("intermediates in memory", bytes_cell(f.vanished_bytes), bytes_cell(0), number(f.vanished_bytes), 0));
  return t;
}

// What bounds the kernels, which operator is worth a look, and what fusion would save.
std::vector<std::string> roofline_sentences(const Roofline& r, const FusionEffect& fusion) {
  if (r.operators.empty()) return {"The step has no kernels."};
  std::vector<std::pair<double, std::string>> bounds;
  for (int b = 0; b < kRooflineBounds; ++b)
    bounds.emplace_back(share(r.by_bound[static_cast<std::size_t>(b)], r.kernel_time),
                        std::string(to_string(static_cast<RooflineBound>(b))));
  std::stable_sort(bounds.begin(), bounds.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = fmt::format(
      "The kernels of all steps take {} one by one, bound mostly by {} ({} of their "
      "time)",
      human_time(r.kernel_time), bounds[0].second, share_words(bounds[0].first));
  if (bounds[1].first >= 0.01) text += fmt::format(" and by {} ({})", bounds[1].second, share_words(bounds[1].first));
  std::vector<std::string> sentences{text + "."};
  // What an operator takes beyond its roof: no kernel that does the same work can save more.
  const RooflineOperator* worst = nullptr;
  const auto beyond = [](const RooflineOperator& o) { return to_seconds(o.duration) - o.roof_seconds; };
  for (const RooflineOperator& o : r.operators)
    if (o.roof_seconds > 0 && o.bound() != RooflineBound::unknown && (worst == nullptr || beyond(o) > beyond(*worst)))
      worst = &o;
  if (worst != nullptr && beyond(*worst) > 0)
    sentences.push_back(fmt::format(
        "Most lies between {} and its roof: it takes {} ({} of the time) at {} of what {} allows, so better kernels "
        "could "
        "save {} at most.",
        worst->name, human_time(worst->duration), share_words(share(worst->duration, r.kernel_time)),
        share_words(worst->share_of_roof()), to_string(worst->bound()), human_time(from_seconds(beyond(*worst)))));
  if (fusion.refusal.empty() && fusion.merged_ops > 0)
    sentences.push_back(
        fmt::format("Fusion would make the step {}: {} fewer bytes of kernels' traffic.",
                    changed_words(human_time(fusion.after.step_time), human_time(fusion.before.step_time),
                                  to_seconds(fusion.after.step_time), to_seconds(fusion.before.step_time)),
                    human_bytes(fusion.before.bytes - fusion.after.bytes)));
  return sentences;
}

// "mm" of "aten::mm", "log_softmax" of "aten::_log_softmax".
std::string short_name(const std::string& name) {
  const std::size_t colons = name.rfind("::");
  const std::size_t first = name.find_first_not_of('_', colons == std::string::npos ? 0 : colons + 2);
  return first == std::string::npos ? name : name.substr(first);
}

}  // namespace

std::vector<Table> roofline_tables(const Roofline& r, const FusionEffect& fusion, std::size_t most,
                                   const std::string& title, const std::string& stranger) {
  std::vector<Table> all{answer_table(title, roofline_sentences(r, fusion)), bounds(r), operators(r, most)};
  all.back().screen_rows = 10;
  for (Table& detail : std::vector<Table>{roofs(r), classes(r)}) {
    detail.detail = true;
    all.push_back(std::move(detail));
  }
  if (!r.transfers.empty()) {
    all.push_back(transfers(r));
    all.back().detail = true;
  }
  if (Table t = above_roof(r, stranger); !t.rows.empty()) all.push_back(std::move(t));
  all.push_back(fusion_table(fusion));
  return all;
}

JsonField bound_field(const Roofline& r) {
  if (r.kernel_time.count() == 0) return {"bound_by", "null"};
  const auto most = std::max_element(r.by_bound.begin(), r.by_bound.end());
  return text_field("bound_by", std::string(to_string(static_cast<RooflineBound>(most - r.by_bound.begin()))));
}

RooflineChart roofline_chart(const Roofline& r, const std::string& step, const std::string& machine) {
  constexpr double kLeastShare = 0.001;
  RooflineChart chart;
  chart.title = step + " on " + machine + ": roofline";
  Duration without{};
  for (const RooflineOperator& o : r.operators)
    if (!(o.flops > 0)) without += o.duration;
  chart.subtitle = fmt::format(
      "Kernels take {}, one by one: {} of it bound by memory, {} by arithmetic, {} by latency. {} is spent without "
      "FLOPs (casts, copies) and not drawn. Area of a point: its share of the time.",
      human_time(r.kernel_time), percent_text(share(r.memory_bound(), r.kernel_time)),
      percent_text(share(r.by_bound[static_cast<std::size_t>(RooflineBound::compute)], r.kernel_time)),
      percent_text(share(r.by_bound[static_cast<std::size_t>(RooflineBound::latency)], r.kernel_time)),
      percent_text(share(without, r.kernel_time)));
  for (const MemoryRoof& m : r.memory) chart.memory.push_back({m.name, m.bandwidth});
  for (const ComputeRoof& c : r.compute) chart.compute.push_back({std::string(to_string(c.data_type)), c.flops});
  for (const RooflineOperator& o : r.operators) {
    const double part = share(o.duration, r.kernel_time);
    if (part < kLeastShare) break;
    const std::string name = short_name(o.name), phase(to_string(o.phase));
    const bool says_phase = o.phase == Phase::unknown || name.ends_with(phase);
    chart.points.push_back({.name = says_phase ? name : name + ", " + phase,
                            .module = o.module,
                            .detail = fmt::format("{} of the time, {} of roof, {}", percent_text(part),
                                                  percent_text(o.share_of_roof()), to_string(o.bound())),
                            .word = std::string(to_string(o.operator_class)),
                            .share = part,
                            .flops_per_second = o.achieved(),
                            .intensity = o.intensity_at_hbm(),
                            .near_intensity = o.intensity_at_l2()});
  }
  return chart;
}

}  // namespace memwall
