#include "study/rank_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::string_view kOfRank = "rank[";

[[noreturn]] void refuse_setting(const std::string& setting, std::string_view found) {
  throw UsageError(
      fmt::format("--set {}: {}; expected rank[N].gpu.clock=F, a factor on what the kernels of rank N run at, as in "
                  "rank[7].gpu.clock=0.9.",
                  setting, found));
}

// All of `text` as a number.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Only what the GPU computes: what ranks exchange takes the time of the links.
std::string scale_of(const std::string& setting) {
  const std::string_view text = setting;
  const std::size_t close = text.find(']'), equals = text.find('=');
  std::uint32_t rank = 0;
  if (close == std::string_view::npos || !read_number(text.substr(kOfRank.size(), close - kOfRank.size()), rank))
    refuse_setting(setting, "it names no rank");
  if (equals == std::string_view::npos || equals < close) refuse_setting(setting, "it has no value");
  const std::string_view path = text.substr(close + 1, equals - close - 1);
  if (path.starts_with(".link.")) refuse_setting(setting, "links of one rank alone are not implemented");
  if (path != ".gpu.clock")
    refuse_setting(setting, fmt::format("{} of one rank is not implemented", path.substr(path.starts_with('.'))));
  double factor = 0;
  if (!read_number(text.substr(equals + 1), factor) || !std::isfinite(factor) || factor < 1e-6)
    refuse_setting(setting, "it has no factor above 0");
  return fmt::format("kernels={:.6g},collectives=1,rank={}", 1 / factor, rank);
}

}  // namespace

Scenario with_rank_settings_as_scales(Scenario scenario) {
  const auto of_rank = [](const std::string& setting) { return setting.starts_with(kOfRank); };
  std::set<std::string> paths;
  for (const std::string& setting : scenario.settings) {
    if (!of_rank(setting)) continue;
    scenario.scale.push_back(scale_of(setting));
    const std::string path = setting.substr(0, setting.find('='));
    if (!paths.insert(path).second) refuse_setting(setting, "it is set twice");
  }
  std::erase_if(scenario.settings, of_rank);
  return scenario;
}

}  // namespace memwall
