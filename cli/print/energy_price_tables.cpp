#include "cli/print/energy_price_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/print/table_cells.h"
#include "sim/words.h"

namespace memwall {
namespace {

std::string human_joules(double joules) {
  if (joules == 0) return "0 J";
  static constexpr std::array units{ScaledUnit{1e-6, "uJ"}, ScaledUnit{1e-3, "mJ"}, ScaledUnit{1, "J"},
                                    ScaledUnit{1e3, "kJ"}, ScaledUnit{1e6, "MJ"},
                                    ScaledUnit{1e9, "GJ"}, ScaledUnit{1e12, "TJ"}};
  return scaled_text(joules, units, 4, TrailingZeros::dropped);
}

std::string human_dollars(double dollars) {
  constexpr double kMany = 1e4;
  return dollars < kMany ? fmt::format("{:.4g} $", dollars)
                         : grouped_text(static_cast<std::uint64_t>(std::llround(std::min(dollars, 9e18)))) + " $";
}

Cell joules_cell(double joules) { return number_cell(human_joules(joules), plain_number(joules)); }
Cell dollars_cell(double dollars) { return number_cell(human_dollars(dollars), plain_number(dollars)); }

std::string gpus_text(std::uint32_t gpus) { return gpus == 1 ? "one GPU" : fmt::format("all {} GPUs", gpus); }

// "power and idle_power"
std::string missing_powers(const StepEnergyPrice& energy_price) {
  std::vector<std::string> keys;
  for (const std::string& key : energy_price.missing)
    if (key != "price") keys.push_back(key);
  return fmt::format("{}", fmt::join(keys, " and no "));
}

}  // namespace

void add_energy_price_rows(const RunSummary& s, Table& t) {
  const StepEnergyPrice& e = s.energy_price;
  const auto row = [&](const char* what, Cell value, std::string includes) {
    value.right = true;
    t.rows.push_back({cell(what), std::move(value), cell(std::move(includes))});
  };
  if (e.energy)
    row("energy", joules_cell(*e.energy),
        fmt::format("of a step, {}; {} at {} of the time under load, and what moves data{}", gpus_text(e.gpus),
                    e.gpus == 1 ? "it is" : "they are", percent_text(e.busy_share),
                    e.host ? ", and the host" : "; without the host, whose power is not stated"));
  else
    row("energy", cell("-"), fmt::format("not known: machine {} states no {}", s.machine, missing_powers(e)));
  if (e.price)
    row("price", dollars_cell(*e.price),
        fmt::format("of a step, {} with {} share of the host", gpus_text(e.gpus), e.gpus == 1 ? "its" : "their"));
  else
    row("price", cell("-"), fmt::format("not known: machine {} states no price", s.machine));
}

Table training_table(const RunSummary& s) {
  Table t{.name = "training",
          .title = "",
          .columns = {"what", "value", "includes"},
          .headings = {"", "", ""},
          .rows = {},
          .wrap = true};
  if (!s.training) return t;
  constexpr double kHour = 3600;
  const TrainingCost& cost = *s.training;
  const auto row = [&](const char* what, Cell value, std::string includes) {
    value.right = true;
    t.rows.push_back({cell(what), std::move(value), cell(std::move(includes))});
  };
  t.title = fmt::format("Training on {:.4g} tokens (steps alone: no restarts, no evaluation, no checkpoints written)",
                        cost.tokens);
  row("steps", number_cell(fmt::format("{:.4g}", cost.steps), plain_number(cost.steps)),
      fmt::format("of {:.4g} tokens each", cost.tokens / cost.steps));
  row("time", number_cell(span_words(cost.seconds), plain_number(cost.seconds)),
      amount_words(s.tokens_per_second) + " tokens/s");
  row("GPU hours", number_cell(fmt::format("{:.4g}", cost.gpu_hours), plain_number(cost.gpu_hours)),
      gpus_text(s.energy_price.gpus));
  if (cost.dollars)
    row("price", dollars_cell(*cost.dollars),
        fmt::format("{:.4g} $ per GPU and hour", *cost.dollars / cost.gpu_hours));
  else
    row("price", cell("-"),
        fmt::format("not known: machine {} states no price; expected --price-per-gpu-hour", s.machine));
  if (cost.joules)
    row("energy", joules_cell(*cost.joules),
        fmt::format("{:.4g} kWh{}", *cost.joules / kHour / 1e3,
                    s.energy_price.host ? "" : "; without the host, whose power is not stated"));
  else
    row("energy", cell("-"), fmt::format("not known: machine {} states no {}", s.machine, missing_powers(s.energy_price)));
  return t;
}

Table energy_table(const RunSummary& s) {
  const StepEnergyPrice& e = s.energy_price;
  Table t{.name = "energy",
          .title = "Energy of a step, all GPUs together (a GPU's own memory is within its power)",
          .columns = {"part", "bytes", "joules", "added", "meaning"},
          .headings = {"", "bytes", "energy", "counted", ""},
          .rows = {},
          .wrap = true};
  if (!e.energy) return t;
  const auto power = [&](const char* name, double joules, const char* meaning) {
    t.rows.push_back({cell(name), number_cell("", ""), joules_cell(joules), cell("yes"), cell(meaning)});
  };
  power("gpu idle", e.gpu_idle, "what the GPUs draw always");
  power("gpu load", e.gpu_load, "what more while a kernel, a memset or a collective runs");
  if (e.host) power("host", *e.host, "the host's power, by the share of its GPUs that take part");
  const auto shares = [&](const std::vector<EnergyShare>& list, const char* kind, const char* meaning) {
    for (const EnergyShare& share : list)
      if (share.joules && share.bytes > 0)
        t.rows.push_back({cell(fmt::format("{} {}", kind, share.name)), bytes_cell(std::llround(share.bytes)),
                          joules_cell(*share.joules), cell(share.in_gpu_power ? "no" : "yes"),
                          cell(share.in_gpu_power ? "within the GPUs' power" : meaning)});
  };
  shares(e.links, "link", "bytes carried");
  shares(e.tiers, "tier", "bytes read and written, as stored");
  return t;
}

Table capacity_price_table(const RunSummary& s) {
  Table t{.name = "capacity_price",
          .title = "What the memory filled at the peak costs to buy (not part of the price of a step)",
          .columns = {"tier", "stored_bytes", "dollars"},
          .headings = {"tier", "stored", "price"},
          .rows = {},
          .wrap = true};
  for (const TierSummary& tier : s.tiers)
    if (tier.peak_price && tier.peak_allocated > 0)
      t.rows.push_back({cell(tier.name),
                        bytes_cell(std::llround(static_cast<double>(tier.peak_allocated) / tier.compression)),
                        dollars_cell(*tier.peak_price)});
  return t;
}

Table energy_price_differences(const Comparison& c) {
  Table t{.name = "energy_price",
          .title = "Energy and price of a step, all GPUs together",
          .columns = {"what", "base", "other", "difference"},
          .headings = {"", "base", "other", "difference"},
          .rows = {},
          .wrap = true};
  const auto row = [&](const char* what, const std::optional<double>& base, const std::optional<double>& other,
                       std::string (*text)(double)) {
    if (!base && !other) return;
    const auto side = [&](const std::optional<double>& v) {
      return v ? number_cell(text(*v), plain_number(*v)) : number_cell("not known", "");
    };
    Cell difference = number_cell("-", "");
    if (base && other)
      difference = number_cell((*other > *base ? "+" : "") + text(*other - *base), plain_number(*other - *base));
    t.rows.push_back({cell(what), side(base), side(other), std::move(difference)});
  };
  row("energy_joules", c.base_energy_price.energy, c.other_energy_price.energy, human_joules);
  row("price_dollars", c.base_energy_price.price, c.other_energy_price.price, human_dollars);
  return t;
}

}  // namespace memwall
