#include "models/workload/import/kineto/kineto_categories.h"

#include <fmt/format.h>

#include <algorithm>

namespace memwall {
namespace {

using std::string_view;
using Category = KinetoCategory;

constexpr std::int64_t kKnownSchema = 1;  // libkineto/src/output_json.cpp

struct CategoryName {
  string_view name;
  Category category;
};

// libkineto/src/ActivityType.cpp. Those that are `none` are not needed: flows say again what correlations say, ranges of
// the GPU what those of the host say.
constexpr CategoryName kCategories[] = {
    {"cpu_op", Category::operation},       {"Operator", Category::operation}, {"user_annotation", Category::annotation},
    {"cuda_runtime", Category::call},      {"Runtime", Category::call},       {"cuda_driver", Category::call},
    {"hip_runtime", Category::call},       {"runtime", Category::call},       {"kernel", Category::kernel},
    {"Kernel", Category::kernel},          {"gpu_memcpy", Category::copy},    {"Memcpy", Category::copy},
    {"gpu_memset", Category::memset},      {"Memset", Category::memset},      {"cuda_sync", Category::sync},
    {"python_function", Category::python}, {"", Category::none},              {"Trace", Category::none},
    {"ac2g", Category::none},              {"async_cpu_to_gpu", Category::none},   {"async_gpu", Category::none},
    {"async", Category::none},             {"fwdbwd", Category::none},        {"gpu_user_annotation", Category::none},
    {"cpu_instant_event", Category::none}, {"[memory]", Category::none},      {"overhead", Category::none},
    {"external_correlation", Category::none}, {"cuda_profiler_range", Category::none}, {"collective_comm", Category::none},
    {"mtia_runtime", Category::none},      {"mtia_ccp_events", Category::none}, {"mtia_insight", Category::none},
    {"mtia_counters", Category::none},     {"xpu_runtime", Category::none},   {"xpu_driver", Category::none},
    {"hip_driver", Category::none},        {"hpu_op", Category::none},        {"glow_runtime", Category::none},
    {"privateuse1_runtime", Category::none}, {"privateuse1_driver", Category::none}, {"trace_metadata", Category::none},
};

const CategoryName* find(string_view name) {
  const auto found =
      std::find_if(std::begin(kCategories), std::end(kCategories), [&](const auto& c) { return c.name == name; });
  return found == std::end(kCategories) ? nullptr : found;
}

}  // namespace

KinetoCategory kineto_category(string_view name) {
  const CategoryName* known = find(name);
  return known == nullptr ? Category::none : known->category;
}

std::vector<Decision> category_decisions(const TimedCapture& capture) {
  std::uint64_t events = 0, unknown = 0;
  std::string names;
  for (const auto& [category, count] : capture.events_by_category) {
    events += count;
    if (find(category) != nullptr) continue;
    unknown += count;
    names += (names.empty() ? "" : ", ") + category.substr(0, 40);
  }
  std::vector<Decision> all;
  if (unknown > 0)
    all.push_back({"events of unknown categories", fmt::format("They are counted and left out: {}.", names), unknown,
                   events});
  else
    all.push_back({"events of known categories",
                   "Every category of the file is one that is read or known not to be needed.", events, events});
  if (capture.schema_version > kKnownSchema)
    all.push_back({"schema version",
                   fmt::format("The file says version {}, newer than {}, the newest that is known: what is known in it "
                               "was read.",
                               capture.schema_version, kKnownSchema),
                   0, 0});
  return all;
}

}  // namespace memwall
