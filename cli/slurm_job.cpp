#include "cli/slurm_job.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "cli/output_file.h"
#include "cli/print/shell_word.h"
#include "cli/terminal.h"
#include "sim/error.h"
#include "study/sweep/sweep_shard.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualBase = "memwall-sweep";
constexpr const char* kScriptEnding = ".sbatch";

// A word on an #SBATCH line: "16G", "02:00:00", "1-12:00:00", "gpu_short".
void require_word(const char* option, const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':' || c == '-' ||
           c == '_' || c == '.' || c == ',';
  };
  if (!std::ranges::all_of(word, is_plain))
    throw UsageError(
        fmt::format("{} {}: expected a word as sbatch takes it, of letters, digits and :-_., alone.", option, word));
}

// On #SBATCH lines quotes go around a value; %, quotes and line ends have a meaning there.
void require_path(const std::string& path) {
  if (path.find_first_of("%\"\\\n\r") != std::string::npos)
    throw UsageError(
        fmt::format("Slurm's output would go to {}, in which %, quotes, backslashes and line ends have a meaning of "
                    "their own; expected a folder without them.",
                    path));
}

std::string head(const SlurmOptions& slurm, const std::string& base, const char* what, const std::string& more) {
  std::string name = fs::path(base).filename().string();
  for (char& c : name)
    if (std::isspace(static_cast<unsigned char>(c))) c = '_';  // where an option of a directive ends
  std::string text = fmt::format("#!/bin/bash\n#SBATCH --job-name={}{}\n", name, what);
  text += fmt::format("#SBATCH --output=\"{}{}.out\"\n", base, *what == '\0' ? ".%a" : what) + more;
  text += "#SBATCH --open-mode=append\n";
  if (!slurm.partition.empty()) text += fmt::format("#SBATCH --partition={}\n", slurm.partition);
  return text;
}

std::string output_words(const SweepOptions& o) {
  std::string words = o.points.format == "table" ? "" : " --format " + shell_quoted(o.points.format);
  if (o.points.full) words += " --full";
  if (o.one_line) words += " --one-line";
  for (const auto& [option, place] :
       {std::pair("--csv", &o.files.csv), std::pair("--ndjson", &o.files.ndjson), std::pair("--json", &o.files.json)})
    if (!place->empty()) words += fmt::format(" {} {}", option, shell_quoted(*place));
  return words;
}

// What a program prints, and how it ended.
struct Printed {
  int code = 0;
  std::string text;
};
Printed printed_by(const std::string& command) {
  Printed printed;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw UsageError("sbatch cannot be started: no more processes or memory.");
  std::array<char, 4096> block{};
  while (const std::size_t read = std::fread(block.data(), 1, block.size(), pipe))
    printed.text.append(block.data(), read);
  const int status = ::pclose(pipe);
  printed.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  while (!printed.text.empty() && printed.text.back() == '\n') printed.text.pop_back();
  return printed;
}

// The number of the job. sbatch's own words go to stderr.
std::string submitted(const std::string& arguments) {
  const Printed printed = printed_by("sbatch --parsable " + arguments);
  const std::string job = printed.text.substr(0, printed.text.find(';'));  // "12;cluster"
  if (printed.code != 0 || job.empty() || job.find_first_not_of("0123456789") != std::string::npos)
    throw UsageError(fmt::format("sbatch {} ended with exit code {} and printed \"{}\"; expected the number of a job.",
                                 arguments, printed.code, printed.text));
  return job;
}

bool is_installed(const char* program) {
  return printed_by(fmt::format("command -v {} 2>/dev/null", program)).code == 0;
}

void write_text(const std::string& place, const std::string& text) {
  write_output(place, [&](std::ostream& out) { out << text; });
}

void check_words(const SweepOptions& o, const SlurmOptions& slurm) {
  require_word("--slurm-mem", slurm.memory);
  require_word("--slurm-time", slurm.time);
  require_word("--slurm-partition", slurm.partition);
  if (!o.points.journal.path.empty() || o.points.journal.none)
    throw UsageError("--slurm: each shard has a journal of its own beside the script; leave out --journal.");
  if (o.files.csv == "-" || o.files.ndjson == "-" || o.files.json == "-")
    throw UsageError(
        "--slurm: what the job prints goes to its own output; expected files for --csv, --ndjson, --json.");
}

}  // namespace

void add_slurm_options(CLI::App& app, SlurmOptions& slurm) {
  CLI::Option* const array =
      app.add_option(
             "--slurm", slurm.tasks,
             "Write and submit a job array of Slurm, with this many shards, and a job that merges them behind it")
          ->check(CLI::Range(std::size_t{1}, kMostShards));
  app.add_option("--slurm-script", slurm.script, "With --slurm: only write the script here, and what belongs to it")
      ->needs(array);
  app.add_option("--slurm-cpus", slurm.cpus, "With --slurm: cores of each shard, and its threads")
      ->check(CLI::Range(1u, 1024u))
      ->capture_default_str()
      ->needs(array);
  app.add_option("--slurm-mem", slurm.memory, "With --slurm: memory of each shard, as sbatch --mem: 4G")->needs(array);
  app.add_option("--slurm-time", slurm.time, "With --slurm: time of each shard, as sbatch --time: 02:00:00")
      ->needs(array);
  app.add_option("--slurm-partition", slurm.partition, "With --slurm: where it runs, as sbatch --partition")
      ->needs(array);
}

SlurmScripts slurm_scripts(const SweepOptions& o, const SlurmOptions& slurm, const std::string& program,
                           const std::string& folder, const std::string& base) {
  std::string limits = fmt::format("#SBATCH --cpus-per-task={}\n", slurm.cpus);
  if (!slurm.memory.empty()) limits += fmt::format("#SBATCH --mem={}\n", slurm.memory);
  if (!slurm.time.empty()) limits += fmt::format("#SBATCH --time={}\n", slurm.time);
  const std::string begin = fmt::format("set -eu\ncd {}\n", shell_quoted(folder));
  const std::string gaps =
      std::string(o.points.accept_gaps ? " --accept-gaps" : "") + (o.points.written_out ? " --written-out" : "");
  SlurmScripts scripts;
  scripts.array =
      head(slurm, base, "", fmt::format("#SBATCH --array=0-{}\n{}#SBATCH --requeue\n", slurm.tasks - 1, limits));
  scripts.array +=
      "# A task that is requeued goes on where it was stopped: its journal holds the points that are finished.\n";
  scripts.array += begin + fmt::format(
                               "exec {} sweep {}{} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --journal "
                               "{}.\"$SLURM_ARRAY_TASK_ID\"-of-{}.sqlite --jobs \"${{SLURM_CPUS_PER_TASK:-{}}}\"\n",
                               shell_quoted(program), shell_quoted(base + kStudyEnding), gaps, slurm.tasks,
                               shell_quoted(base), slurm.tasks, slurm.cpus);
  scripts.merge = head(slurm, base, "-merge", "#SBATCH --cpus-per-task=1\n") + begin;
  scripts.merge += fmt::format("exec {} sweep merge", shell_quoted(program));
  for (std::size_t i = 0; i < slurm.tasks; ++i)
    scripts.merge += " " + shell_quoted(shard_journal(base, {i, slurm.tasks}));
  scripts.merge += output_words(o) + "\n";
  return scripts;
}

int run_as_slurm_job(const SweepOptions& o, const SlurmOptions& slurm, const StudyFile& study) {
  check_words(o, slurm);
  std::string script = slurm.script.empty() ? std::string(kUsualBase) + kScriptEnding : slurm.script;
  const std::string base = script.ends_with(kScriptEnding)
                               ? script.substr(0, script.size() - std::string_view(kScriptEnding).size())
                               : script;
  const std::string merge_script = base + "-merge" + kScriptEnding;
  const std::string folder = fs::current_path().string();
  require_path(fs::absolute(base).string());
  const SlurmScripts scripts = slurm_scripts(o, slurm, fs::canonical("/proc/self/exe").string(), folder, base);
  for (const std::string& place : {script, merge_script, base + kStudyEnding}) require_harmless(place, {});
  write_text(base + kStudyEnding, study_text(study));
  write_text(script, scripts.array);
  write_text(merge_script, scripts.merge);
  const std::string by_hand = fmt::format("sbatch --dependency=afterok:$(sbatch --parsable {}) {}",
                                          shell_quoted(script), shell_quoted(merge_script));
  print(fmt::format("{}: the array of {} shards; {}: what merges them; {}: the study.\n", script, slurm.tasks,
                    merge_script, base + kStudyEnding));
  if (!slurm.script.empty() || !is_installed("sbatch")) {
    print(fmt::format("{}Submit them: {}\n", slurm.script.empty() ? "There is no sbatch here. " : "", by_hand));
    return 0;
  }
  const std::string array = submitted(shell_quoted(script));
  const std::string merge = submitted(fmt::format("--dependency=afterok:{} {}", array, shell_quoted(merge_script)));
  print(fmt::format("Submitted: job {} (shards), job {} behind it; the answer goes to {}-merge.out.\n", array, merge,
                    base));
  return 0;
}

}  // namespace memwall
