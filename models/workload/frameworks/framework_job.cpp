#include "models/workload/frameworks/framework_job.h"

#include <fmt/format.h>

#include <utility>

#include "models/workload/frameworks/framework_files.h"
#include "sim/error.h"

namespace memwall {

std::string_view to_string(Framework framework) {
  switch (framework) {
    case Framework::deepspeed:
      return "DeepSpeed";
    case Framework::torchtitan:
      return "torchtitan";
    case Framework::accelerate:
      return "Accelerate";
    case Framework::transformers:
      return "Transformers";
  }
  return "";
}

namespace {

FrameworkJob job_of(Framework framework, const ConfigurationFile& file, const FrameworkSurroundings& surroundings) {
  switch (framework) {
    case Framework::deepspeed:
      return deepspeed_job(file, surroundings);
    case Framework::torchtitan:
      return torchtitan_job(file, surroundings);
    case Framework::accelerate:
      return accelerate_job(file, surroundings);
    case Framework::transformers:
      break;
  }
  return transformers_job(file, surroundings);
}

// Where a file's ending does not say it.
ConfigurationFile::Syntax usual_syntax(Framework framework) {
  return framework == Framework::torchtitan   ? ConfigurationFile::Syntax::toml
         : framework == Framework::accelerate ? ConfigurationFile::Syntax::yaml
                                              : ConfigurationFile::Syntax::json;
}

}  // namespace

FrameworkJob read_framework_job(Framework framework, const std::filesystem::path& path,
                                const FrameworkSurroundings& surroundings) {
  const ConfigurationFile file = ConfigurationFile::read(path, usual_syntax(framework));
  FrameworkJob job = job_of(framework, file, surroundings);
  if (file.size() > 1 && !job.unknown_keys.empty() && file.unknown().size() == file.size())
    file.refuse(fmt::format("none of its {} keys ({}, …) is one of {}'s: it may be another program's file", file.size(),
                            file.unknown().front(), to_string(framework)));
  for (const std::string& key : job.unknown_keys) job.meant_keys.push_back(file.has_any(key) ? file.nearest(key) : "");
  job.files.insert(job.files.begin(), path);
  return job;
}

void set_number(FrameworkJob& job, const char* key, std::int64_t value) {
  job.settings.push_back(fmt::format("{}={}", key, value));
}

void take_over(FrameworkJob& job, FrameworkJob inner) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(job.settings, inner.settings);
  append(job.policies, inner.policies);
  append(job.notes, inner.notes);
  append(job.unknown_keys, inner.unknown_keys);
  append(job.files, inner.files);
  if (inner.batch > 0) job.batch = inner.batch;
  if (inner.accumulation > 0) job.accumulation = inner.accumulation;
  if (inner.ranks > 0) job.ranks = inner.ranks;
}

std::uint32_t ranks_of(const ConfigurationFile& file, std::uint32_t said, const FrameworkSurroundings& surroundings) {
  if (said > 0 && surroundings.ranks > 0 && said != surroundings.ranks)
    file.refuse(fmt::format("it is of {} processes, and {} GPUs were asked for", said, surroundings.ranks));
  return said > 0 ? said : surroundings.ranks;
}

void require_ranks(const ConfigurationFile& file, const FrameworkJob& job) {
  if (job.ranks == 0)
    throw UsageError(
        fmt::format("{}: it does not say how many processes train; give --gpus N, one process per GPU.", file.name()));
}

}  // namespace memwall
