// The device: what it is, how fast its memory and its caches are, and what matrix products reach.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

constexpr double kFastestMemory = 1e14;    // bytes per second: no memory is
constexpr double kFastestProducts = 1e17;  // FLOP/s: no device reaches
constexpr const char* kStreams[] = {"hbm_read", "hbm_write", "hbm_triad"};

double l2_bytes(const Fitting& f) { return f.machine_file.number("gpu.l2_capacity"); }
double working_set(const Measurement& row) {
  const double stated = row.number("working_set", 0);
  return stated > 0 ? stated : size_of(row);
}

// A streaming benchmark may pass over its working set several times.
PricedRow priced_stream(const Measurement& row) {
  return {row, [traffic = traffic_of(row), set = working_set(row)](const Machine& machine, const Pricer& pricer) {
            Op op;
            op.kind = OpKind::kernel;
            op.operator_class = OperatorClass::memory;
            op.bytes = std::llround(set);
            const double fixed = to_seconds(efficiency_of(machine.gpu, OperatorClass::memory).fixed);
            return fixed + (to_seconds(pricer.kernel(op)) - fixed) * traffic / set;
          }};
}

// At the whole bandwidth, of which classes of kernels reach a share.
PricedRow priced_bandwidth(const Measurement& row) {
  return {row, [traffic = traffic_of(row)](const Machine& machine, const Pricer&) {
            const double fixed = to_seconds(efficiency_of(machine.gpu, OperatorClass::memory).fixed);
            return fixed + traffic / machine.links[machine.hbm_link].bandwidth;
          }};
}

// Rows whose working set is at least `least` bytes; where there are none, those of the largest.
std::vector<Measurement> large_rows(std::vector<Measurement> rows, double least) {
  double largest = 0;
  for (const Measurement& row : rows) largest = std::max(largest, working_set(row));
  least = std::min(least, largest);
  std::erase_if(rows, [&](const Measurement& row) { return working_set(row) < least; });
  return rows;
}

double base_fixed(const Fitting& f) { return to_seconds(efficiency_of(f.base.gpu, OperatorClass::memory).fixed); }

double median_rate(const std::vector<Measurement>& rows, double fixed) {
  std::vector<double> rates;
  for (const Measurement& row : rows) rates.push_back(traffic_of(row) / std::max(row.median - fixed, 0.5 * row.median));
  return median(rates);
}

// The host back end cannot ask for the size of its caches: the largest working set that is half again as fast
// as the largest of all tells it, by the law of models/hw/kernel_cost.h: what misses grows with size / capacity.
void fit_cache_capacity(Fitting& f) {
  std::vector<double> capacities;
  std::vector<PricedRow> used;
  std::string sentence;
  for (const char* benchmark : kStreams) {
    std::vector<Measurement> rows = time_rows(f.set, benchmark);
    std::sort(rows.begin(), rows.end(),
              [](const Measurement& a, const Measurement& b) { return working_set(a) < working_set(b); });
    if (rows.empty()) continue;
    const double memory = median_rate({rows.back()}, base_fixed(f));
    for (std::size_t i = rows.size(); i-- > 0;) {
      const double rate = median_rate({rows[i]}, base_fixed(f));
      if (rate < 1.5 * memory) continue;
      capacities.push_back(working_set(rows[i]) * rate / memory);
      used.push_back(priced_stream(rows[i]));
      sentence += (sentence.empty() ? "" : "; ") + sizes_sentence({rows[i]});
      break;
    }
  }
  if (capacities.empty()) return;
  const double kib = std::max(1.0, std::round(median(capacities) / 1024));
  f.fit("gpu.l2_capacity", kib >= 4096 ? fmt::format("{} MiB", std::llround(kib / 1024)) : fmt::format("{} KiB", kib),
        sentence + ", still faster than memory", used);
}

void fit_hbm(Fitting& f) {
  double best = 0, triad = 0;
  std::size_t count = 0;
  std::vector<Measurement> used, of_triad;
  std::string fastest;
  for (const char* benchmark : kStreams) {
    const std::vector<Measurement> all = time_rows(f.set, benchmark);
    count += all.size();
    if (all.empty()) continue;
    const std::vector<Measurement> rows = large_rows(all, 4 * l2_bytes(f));
    const double rate = median_rate(rows, base_fixed(f));
    if (std::string(benchmark) == "hbm_triad") triad = rate, of_triad = rows;
    if (rate <= best) continue;
    best = rate;
    used = rows;
  }
  if (count == 0) throw InputError("Calibration: hbm_read, hbm_write and hbm_triad have 0 measured rows; 1 is needed.");
  if (best > kFastestMemory)
    throw InputError(fmt::format("{}: {} are beyond any memory; expected at most {}.", row_name(used.front()),
                                 rate_text(best), rate_text(kFastestMemory)));
  std::vector<PricedRow> priced;
  for (const Measurement& row : used) priced.push_back(priced_bandwidth(row));
  f.fit("gpu.hbm.bandwidth", rate_text(best), sizes_sentence(used), std::move(priced));
  f.require_class(OperatorClass::memory);
  if (of_triad.empty()) of_triad = used, triad = best;
  std::vector<PricedRow> of_memory;
  for (const Measurement& row : of_triad) of_memory.push_back(priced_stream(row));
  f.fit("gpu.efficiency.memory.memory_share", plain_text(triad / best), sizes_sentence(of_triad), of_memory);
}

// Working sets well inside L2: what does not fit is at most a quarter, which HBM serves beside it.
void fit_l2(Fitting& f) {
  const double capacity = l2_bytes(f), hbm = f.machine_file.number("gpu.hbm.bandwidth"), fixed = base_fixed(f);
  std::vector<double> rates;
  std::vector<PricedRow> used;
  std::string sentence;
  for (const char* benchmark : kStreams) {
    const Measurement* largest = nullptr;
    const std::vector<Measurement> rows = time_rows(f.set, benchmark);
    for (const Measurement& row : rows)
      if (working_set(row) <= capacity / 4 && (!largest || working_set(row) > working_set(*largest))) largest = &row;
    if (!largest || largest->median < 1.25 * fixed) continue;
    const double rate = traffic_of(*largest) / (largest->median - fixed);
    if (rate > kFastestMemory) continue;
    rates.push_back(rate);
    used.push_back(priced_stream(*largest));
    sentence += (sentence.empty() ? "" : "; ") + sizes_sentence({*largest});
  }
  // These kernels read and write, and reach a share of what reading alone does: the base's, nobody measured it here.
  const double streaming = f.machine_file.number("gpu.residency.streaming_share", 1);
  if (!rates.empty()) f.fit("gpu.l2_bandwidth", rate_text(median(rates) / streaming), sentence, used);
  // A cache that were slower than what is behind it would slow every kernel.
  f.require_bandwidth("gpu.l2_bandwidth", hbm, "gpu.hbm.bandwidth");
}

// --- matrix products ---

struct ProductBenchmark {
  const char* benchmark;
  const char* peak;
  DataType type;
};
constexpr ProductBenchmark kProducts[] = {
    {"gemm_bf16", "bf16", DataType::bf16}, {"gemm_fp16", "fp16", DataType::fp16}, {"gemm_tf32", "tf32", DataType::tf32},
    {"gemm_fp32", "fp32", DataType::fp32}, {"gemm_fp8", "fp8", DataType::fp8},
};

double flops_of(const Measurement& row) {
  const double flops = row.flops > 0 ? row.flops : 2 * row.number("m") * row.number("n") * row.number("k");
  if (std::isfinite(flops) && flops >= 1 && flops < 1e24) return flops;
  throw InputError(
      fmt::format("{}: it does {} FLOPs; expected a number from 1 on, or m, n and k.", row_name(row), flops));
}

struct Products {
  const ProductBenchmark* benchmark = nullptr;
  std::vector<Measurement> rows, large;
  double best = 0;  // FLOP/s
};

std::vector<Products> measured_products(const Fitting& f) {
  std::vector<Products> all;
  for (const ProductBenchmark& b : kProducts) {
    Products products{&b, time_rows(f.set, b.benchmark), {}, 0};
    if (products.rows.empty()) continue;
    double most = 0;
    for (const Measurement& row : products.rows) {
      most = std::max(most, flops_of(row));
      products.best = std::max(products.best, flops_of(row) / row.median);
    }
    // What a product costs besides its arithmetic does not count in these.
    for (const Measurement& row : products.rows)
      if (flops_of(row) >= most / 64) products.large.push_back(row);
    if (products.best > kFastestProducts)
      throw InputError(fmt::format("{}: {} are beyond any device; expected at most {}.", b.benchmark,
                                   flops_text(products.best), flops_text(kFastestProducts)));
    all.push_back(products);
  }
  return all;
}

std::string shapes_sentence(const Products& p, std::size_t count) {
  return fmt::format("{}, {} shape{}", p.benchmark->benchmark, count, count == 1 ? "" : "s");
}

std::vector<PricedRow> priced_products(const std::vector<Measurement>& rows, DataType type) {
  std::vector<PricedRow> priced;
  for (const Measurement& row : rows) {
    Op op;
    op.kind = OpKind::kernel;
    op.operator_class = OperatorClass::gemm;
    op.data_type = type;
    op.flops = flops_of(row);
    op.bytes = row.bytes >= 1 && row.bytes < 0x1p60 ? std::llround(row.bytes) : 0;
    priced.push_back({row, [op](const Machine&, const Pricer& pricer) { return to_seconds(pricer.kernel(op)); }});
  }
  return priced;
}

// On the same GPU the data sheet's peak stays, and nothing may exceed it. Else the best rate is the peak.
void fit_peak(Fitting& f, const Products& p) {
  const std::string path = fmt::format("gpu.peak.{}.rate", p.benchmark->peak);
  const double base = f.machine_file.number(path);
  if (f.same_gpu && !f.host && base > 0) {
    if (p.best > 1.05 * base)
      throw InputError(fmt::format("{}: {} are more than the peak of this GPU, {}; expected at most a twentieth more.",
                                   p.benchmark->benchmark, flops_text(p.best), flops_text(base)));
    return;
  }
  std::vector<Measurement> best;
  for (const Measurement& row : p.rows)
    if (flops_of(row) / row.median == p.best) best.push_back(row);
  f.fit(path, flops_text(p.best),
        fmt::format("{}, the best rate of {}", p.benchmark->benchmark, row_name(best.front())),
        priced_products(best, p.benchmark->type));
}

double median_share(const Fitting& f, const Products& p) {
  const double peak = f.machine_file.number(fmt::format("gpu.peak.{}.rate", p.benchmark->peak));
  std::vector<double> shares;
  for (const Measurement& row : p.large) shares.push_back(std::min(1.0, flops_of(row) / row.median / peak));
  return median(shares);
}

// The smallest product, if it is mostly not arithmetic, or shows that the base's is too long.
void fit_product_fixed(Fitting& f, const Products& p, double share) {
  const double peak = f.machine_file.number(fmt::format("gpu.peak.{}.rate", p.benchmark->peak));
  const auto smallest = std::min_element(p.rows.begin(), p.rows.end(), [](const Measurement& a, const Measurement& b) {
    return flops_of(a) < flops_of(b);
  });
  const double arithmetic = flops_of(*smallest) / (peak * share);
  // One that the share was fitted to says nothing besides.
  if (p.large.size() == p.rows.size()) return;
  const double left = std::max(0.0, smallest->median - arithmetic);
  if (arithmetic > 0.5 * smallest->median && left >= f.machine_file.number("gpu.efficiency.gemm.fixed")) return;
  f.fit("gpu.efficiency.gemm.fixed", time_text(left), row_name(*smallest),
        priced_products({*smallest}, p.benchmark->type));
}

void set_capability(Fitting& f) {
  const std::string text = value_of(f.set.environment, "gpu.compute_capability");
  const std::size_t dot = text.find('.');
  const auto digits = [](const std::string& t) {
    return !t.empty() && t.size() < 4 && t.find_first_not_of("0123456789") == std::string::npos;
  };
  if (dot == std::string::npos || !digits(text.substr(0, dot)) || !digits(text.substr(dot + 1))) return;
  f.state("gpu.compute_major", text.substr(0, dot), "gpu.compute_capability");
  f.state("gpu.compute_minor", text.substr(dot + 1), "gpu.compute_capability");
}

// The device holds at least this.
double largest_buffer(const Fitting& f) {
  double largest = 0;
  for (const char* benchmark : {"hbm_read", "hbm_write", "hbm_triad"})
    for (const Measurement& row : f.set.of(benchmark)) largest = std::max(largest, row.number("working_set"));
  return largest;
}

}  // namespace

void fit_identity(Fitting& f, const std::string& name) {
  f.machine_file.set_text("name", name);
  const std::string gpu = value_of(f.set.environment, "gpu.name");
  if (!gpu.empty() && gpu != f.base.gpu.name) {
    const bool alias = std::find(f.base.gpu.aliases.begin(), f.base.gpu.aliases.end(), gpu) != f.base.gpu.aliases.end();
    if (!alias) {
      f.machine_file.set_text("gpu.name", gpu);
      f.machine_file.clear("gpu.alias");
    }
  }
  set_capability(f);
  const auto count = [&](const char* path, const char* key) {
    const double value = f.environment_number(key);
    if (value >= 1 && value <= 1e6) f.state(path, fmt::format("{}", std::llround(value)), key);
  };
  count("gpu.multiprocessors", "gpu.multiprocessors");
  count("gpu.threads_per_multiprocessor", "gpu.threads_per_multiprocessor");
  count("gpu_count", "gpu.count");
  const auto size = [&](const char* path, const char* key) {
    const double value = f.environment_number(key);
    if (value >= 1 && value <= 0x1p60) f.state(path, fmt::format("{} B", std::llround(value)), key);
  };
  size("gpu.l2_capacity", "gpu.l2_bytes");
  if (const double memory = f.environment_number("gpu.memory_bytes"); memory >= largest_buffer(f)) {
    size("gpu.hbm.capacity", "gpu.memory_bytes");
    if (f.machine_file.has("tier.peer_hbm")) size("tier.peer_hbm.capacity", "gpu.memory_bytes");
  } else if (memory > 0) {
    f.notes.push_back(
        fmt::format("gpu.memory_bytes of the environment is {}, less than {} that were measured on the "
                    "device; gpu.hbm.capacity is the base's.",
                    size_text(memory), size_text(largest_buffer(f))));
  }
  size("host.dram.capacity", "memory_bytes");
  size("host.memory_limit", "memory_limit_bytes");
  if (f.environment_number("gpu.count") == 1)
    for (const Link& link : f.base.links)
      if (link.sharers > 1 && f.machine_file.has("link." + link.name + ".sharers"))
        f.state("link." + link.name + ".sharers", "1", "gpu.count");
  if (f.environment_number("gpu.count") == 1 && f.machine_file.has("host.dram_sharers"))
    f.state("host.dram_sharers", "1", "gpu.count");
}

void fit_device_memory(Fitting& f) {
  if (f.host) fit_cache_capacity(f);
  fit_hbm(f);
  fit_l2(f);
  const std::vector<Measurement> context = f.set.of("context_bytes");
  if (context.empty()) return;
  const Measurement& row = context.back();
  if (!(row.median >= 0 && row.median < f.machine_file.number("gpu.hbm.capacity")))
    throw InputError(fmt::format("{}: {} B of {}; expected less than the device has.", row_name(row), row.median,
                                 size_text(f.machine_file.number("gpu.hbm.capacity"))));
  f.fit("gpu.hbm.unavailable", fmt::format("{} B", std::llround(row.median)), row_name(row),
        {{row, [](const Machine& machine, const Pricer&) {
            return static_cast<double>(machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].unavailable);
          }}});
}

void fit_matrix_products(Fitting& f) {
  const std::vector<Products> all = measured_products(f);
  if (all.empty())
    throw InputError(
        "Calibration: gemm_bf16, gemm_fp16, gemm_tf32, gemm_fp32 and gemm_fp8 have 0 measured rows; 1 is "
        "needed.");
  for (const Products& p : all) fit_peak(f, p);
  // Half precision is what trains; the order of kProducts says which type speaks for the class.
  const Products& speaker = all.front();
  const double share = median_share(f, speaker);
  f.require_class(OperatorClass::gemm);
  f.fit("gpu.efficiency.gemm.compute_share", plain_text(share), shapes_sentence(speaker, speaker.large.size()),
        priced_products(speaker.large, speaker.benchmark->type));
  fit_product_fixed(f, speaker, share);
  for (const Products& p : all)
    f.numbers.push_back(
        {"gpu.efficiency.gemm", shapes_sentence(p, p.rows.size()), priced_products(p.rows, p.benchmark->type), false});
}

}  // namespace memwall
