#include "cli/print/largest_batch_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/answer.h"
#include "cli/print/table_cells.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// Which size is largest and what it gives, and what stops the next.
std::vector<std::string> batch_sentences(const LargestBatch& found) {
  const std::uint32_t ranks = found.probes.empty() ? 1 : found.probes.front().ranks;
  const auto samples = [](std::int64_t n) { return counted_text(static_cast<std::uint64_t>(n), "sample"); };
  const std::string each = ranks > 1 ? " per step and rank" : " per step";
  const std::string missing =
      found.limit ? fmt::format("{} are missing in {}", human_bytes(found.limit->missing), found.limit->tier)
                  : "no plan was found that keeps to the budget";
  if (found.largest == 0)
    return {fmt::format("Not even the smallest size fits, {}{}: {}.", samples(found.refused), each, missing)};
  std::vector<std::string> sentences{
      fmt::format("The largest batch that fits is {}{}{}{}.", samples(found.largest), each,
                  ranks > 1 ? fmt::format(", {} on {} ranks together", found.largest * ranks, ranks) : "",
                  found.refused == 0 ? ": nothing stops it up to the largest size that was tried"
                                     : fmt::format("; with {} {}", samples(found.refused), missing))};
  for (const BatchProbe& p : found.probes)
    if (p.samples == found.largest)
      sentences.push_back(fmt::format("A step then takes {} ({:.4g} samples/s{}).", human_time(p.step_time),
                                      samples_per_second(p), ranks > 1 ? " of all ranks" : ""));
  return sentences;
}

Table probe_table(const LargestBatch& found) {
  const std::uint32_t ranks = found.probes.empty() ? 1 : found.probes.front().ranks;
  Table t{.name = "probes",
          .title = ranks > 1 ? "The sizes that were tried (samples per step and rank)" : "The sizes that were tried",
          .columns = {"samples", "fits", "peak_allocated_bytes", "peak_reserved_bytes", "missing_bytes", "step_time_s",
                      "samples_per_second"},
          .headings = {"samples", "fits", "peak", "reserved", "missing", "step time",
                       ranks > 1 ? fmt::format("samples/s, {} ranks", ranks) : "samples/s"},
          .rows = {}};
  std::vector<BatchProbe> probes = found.probes;  // in the order in which they were tried
  std::ranges::sort(probes, {}, &BatchProbe::samples);
  for (const BatchProbe& p : probes) {
    const double rate = samples_per_second(p);
    t.rows.push_back({count_cell(static_cast<std::uint64_t>(p.samples)), cell(p.fits ? "yes" : "no"),
                      bytes_cell(p.peak_allocated), bytes_cell(p.peak_reserved), bytes_cell(p.missing),
                      time_cell(p.step_time),
                      rate > 0 ? number_cell(fmt::format("{:.1f}", rate), plain_number(rate)) : unrecorded_cell("-")});
  }
  return t;
}

Table size_table(const LargestBatch& found) {
  Table t{.name = "largest_batch",
          .title = "Largest batch",
          .columns = {"what", "value", "meaning"},
          .headings = {"", "", ""},
          .rows = {}};
  const auto row = [&](const char* what, Cell value, std::string meaning) {
    value.right = true;
    t.rows.push_back({cell(what), std::move(value), cell(std::move(meaning))});
  };
  const auto samples = [](std::int64_t n) { return count_cell(static_cast<std::uint64_t>(n)); };
  const bool several = !found.probes.empty() && found.probes.front().ranks > 1;
  row("largest", samples(found.largest),
      fmt::format("samples per step{}{}", several ? " and rank" : "",
                  found.largest == 0 ? ": not even the smallest fits" : " that fit, if what fits at N fits at less"));
  if (found.refused == 0)
    row("refused", samples(0), "none: nothing stops it up to the largest size that was tried");
  else
    row("refused", samples(found.refused), "the smallest that was tried and does not fit");
  if (found.fits_beyond)
    row("fits_beyond", samples(*found.fits_beyond),
        "fits although a smaller one does not: the allocator's pieces differ");
  return t;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

Table limit_table(const BatchLimit& limit, std::int64_t samples) {
  Table t{.name = "stops",
          .title = fmt::format("What stops {}: the first request for {} that found no memory",
                               counted_text(static_cast<std::uint64_t>(samples), "sample"), limit.tier),
          .columns = {"what", "value", "meaning"},
          .headings = {"", "", ""},
          .rows = {}};
  const auto row = [&](const char* what, Cell value, std::string meaning) {
    value.right = true;
    t.rows.push_back({cell(what), std::move(value), cell(std::move(meaning))});
  };
  const Usage& used = limit.request.usage;
  row("usable", bytes_cell(limit.usable), "of the tier, less context and driver");
  if (limit.request.storage == kNoStorage) {
    row("missing", bytes_cell(limit.missing), "what was held before the window is more than there is");
    return t;
  }
  row("request", bytes_cell(limit.requested_bytes),
      fmt::format("{} {}, in {}{}", limit.kind, or_dash(limit.label), limit.phase,
                  limit.module.empty() ? "" : " of " + limit.module));
  row("operator", cell(or_dash(limit.operator_name)), "that fills it");
  row("live", bytes_cell(used.requested), "as requested, by all that lives at that instant");
  row("rounding", bytes_cell(used.allocated - used.requested), "blocks less what was requested");
  row("fragments", bytes_cell(used.reserved - used.allocated), "reserved and free, but in pieces or in other pools");
  row("left", bytes_cell(std::max<Bytes>(0, limit.usable - used.reserved)), "not reserved yet");
  const bool in_pieces = std::max(used.allocated + limit.requested_bytes, used.reserved) <= limit.usable;
  row("missing", bytes_cell(limit.missing),
      in_pieces && limit.missing == limit.requested_bytes ? "in one piece: as many bytes are free, but not together"
                                                          : "at worst, over the whole step");
  return t;
}

Table kind_table(const BatchLimit& limit) {
  Table t{.name = "kinds",
          .title = "What lives at that instant, by kind (as requested)",
          .columns = {"kind", "bytes", "share"},
          .headings = {"kind", "bytes", "share"},
          .rows = {}};
  std::vector<std::pair<Bytes, int>> kinds;
  for (int k = 0; k < kStorageKinds; ++k)
    if (limit.request.by_kind[k] > 0) kinds.emplace_back(-limit.request.by_kind[k], k);
  std::sort(kinds.begin(), kinds.end());
  const auto all = static_cast<double>(std::max<Bytes>(1, limit.request.usage.requested));
  for (const auto& [bytes, kind] : kinds) {
    const double share = static_cast<double>(-bytes) / all;
    t.rows.push_back(
        {cell(std::string(to_string(static_cast<StorageKind>(kind)))), bytes_cell(-bytes), share_cell(share)});
  }
  return t;
}

}  // namespace

std::vector<Table> largest_batch_tables(const LargestBatch& found, const std::string& title) {
  std::vector<Table> tables = {answer_table(title, batch_sentences(found)), probe_table(found), size_table(found)};
  if (!found.limit) return tables;
  tables.push_back(limit_table(*found.limit, found.refused));
  if (found.limit->request.storage != kNoStorage) tables.push_back(kind_table(*found.limit));
  return tables;
}

}  // namespace memwall
