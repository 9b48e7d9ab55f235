#include "study/scale_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>

#include "sim/error.h"

namespace memwall {
namespace {

const std::vector<std::string> kKeys = {"kernels", "copies", "host", "collectives", "rank"};

[[noreturn]] void refuse_key(const std::string& text, const std::string& key) {
  const std::string near = nearest_name(key, kKeys);
  throw UsageError(
      fmt::format("--scale {}: \"{}\" cannot be scaled{}; expected kernels, copies, host or collectives, as in "
                  "kernels=1.1,host=0.5, and of one rank with rank=2.",
                  text, key, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
}

// All of `text` as a number.
template <class Number>
bool read(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// What commas separate; "a,,b" are three items.
std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items(1);
  for (const char c : text) {
    if (c == ',')
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

double factor_of(const std::string& text, const std::string& item, const std::string& value) {
  double factor = 0;
  if (!read(value, factor) || !std::isfinite(factor) || factor < 0 || factor > 1e6)
    throw UsageError(fmt::format(
        "--scale {}: \"{}\" has no factor; expected a number from 0 to 1e6, as in kernels=1.1.", text, item));
  return factor;
}

std::uint32_t rank_of_item(const std::string& text, const std::string& item, const std::string& value) {
  std::uint32_t rank = 0;
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !read(value, rank))
    throw UsageError(fmt::format("--scale {}: \"{}\" names no rank; expected its number, as in rank=2.", text, item));
  return rank;
}

ScaleFactors parse_scale(const std::string& text) {
  ScaleFactors factors;
  std::set<std::string> given;
  for (const std::string& item : items_of(text)) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "kernels")
      factors.kernels = factor_of(text, item, value);
    else if (key == "copies")
      factors.copies = factor_of(text, item, value);
    else if (key == "host")
      factors.host = factor_of(text, item, value);
    else if (key == "collectives")
      factors.collectives = factor_of(text, item, value);
    else if (key == "rank")
      factors.rank = rank_of_item(text, item, value);
    else
      refuse_key(text, key);
    if (!given.insert(key).second) throw UsageError(fmt::format("--scale {}: \"{}\" is given twice.", text, key));
  }
  if (given.empty() || given == std::set<std::string>{"rank"})
    throw UsageError(fmt::format("--scale {}: nothing is scaled; expected a factor, as in kernels=1.1.", text));
  return factors;
}

}  // namespace

std::vector<ScaleOption> parse_scales(const std::vector<std::string>& texts) {
  std::vector<ScaleOption> scales;
  for (const std::string& text : texts) scales.push_back({text, parse_scale(text)});
  return scales;
}

std::vector<ScaleFactors> combined(const std::vector<ScaleOption>& scales) {
  std::vector<ScaleFactors> all;
  for (const ScaleOption& scale : scales) {
    const ScaleFactors& more = scale.factors;
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const ScaleFactors& one) { return one.rank == more.rank; });
    if (same == all.end()) {
      all.push_back(more);
      continue;
    }
    same->kernels *= more.kernels;
    same->copies *= more.copies;
    same->host *= more.host;
    if (more.collectives) same->collectives = same->collectives.value_or(1) * *more.collectives;
  }
  return all;
}

std::string coverage_text(const ScaleFactors& f) {
  std::string text;
  const auto add = [&](double factor, const char* name, const char* covers) {
    if (factor != 1) text += fmt::format("{}{} x {:g} ({})", text.empty() ? "" : ", ", name, factor, covers);
  };
  add(f.kernels, "kernels",
      f.collectives ? "kernels and memsets" : "kernels, memsets, and collectives that meet no other rank in the trace");
  add(f.copies, "copies", "copies and storage I/O");
  add(f.host, "host", "calls, work of the host and the time between; not what calls wait for");
  add(f.collectives.value_or(1), "collectives", "all collectives");
  if (text.empty()) text = "nothing";
  return text + (f.rank ? fmt::format(" of rank {}", *f.rank) : "");
}

}  // namespace memwall
