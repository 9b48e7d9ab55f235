// Does every include point down? The rules of docs/design.md, checked on the source text.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kMostNouns = 50;

// Room -> rooms whose headers its files may include besides its own. The nearest room above a file is its room; "sim"
// is what stands in sim/ itself. One room's README says what may stand in it.
using Rooms = std::set<std::string>;
Rooms all_of(std::initializer_list<Rooms> parts) {
  Rooms all;
  for (const Rooms& part : parts) all.insert(part.begin(), part.end());
  return all;
}

const Rooms kSim = {"sim", "sim/files", "sim/trace", "sim/machine", "sim/memory", "sim/engine", "sim/policy"};
const Rooms kPolicy = {"sim", "sim/trace", "sim/machine", "sim/policy", "policies/trace"};
const Rooms kRun = {"traces/run", "traces/run/analysis", "traces/run/export", "traces/run/file"};
const Rooms kFiles = all_of({kRun, {"traces/trace", "traces/plan", "traces/figure"}});
// models/workload/import: what every format stands on, what reads captures with times or a profiler's dataflow, and
// what others ask.
const Rooms kImported = {"sim", "sim/files", "sim/trace", "models/workload", "models/workload/import/bytes"};
const Rooms kTimed = all_of({kImported, {"models/workload/import/timed", "models/workload/import/execution_trace"}});
const Rooms kImport = {"models/workload/import", "models/workload/import/bytes", "models/workload/import/timed",
                       "models/workload/import/snapshot", "models/workload/import/ranks"};
const Rooms kStudied = {"models/hw",
                        "models/workload",
                        "models/workload/generate",
                        "models/workload/generate/configuration",
                        "models/workload/frameworks",
                        "models/workload/graft",
                        "models/workload/memory",
                        "models/workload/forecast"};
const Rooms kStudy = all_of({kStudied, {"study", "study/explain"}});

const std::map<std::string, Rooms> kMayInclude = {
    {"sim", {}},
    {"sim/files", {"sim"}},
    {"sim/trace", {"sim"}},
    {"sim/machine", {"sim", "sim/trace"}},
    {"sim/memory", {"sim"}},
    {"sim/policy", {"sim", "sim/trace", "sim/machine"}},
    {"sim/engine", {"sim", "sim/trace", "sim/machine", "sim/memory", "sim/policy"}},

    {"models/hw", {"sim", "sim/files", "sim/trace", "sim/machine"}},
    {"models/workload", {"sim", "sim/trace"}},
    {"models/workload/import/bytes", {"sim", "sim/files"}},
    {"models/workload/import/timed", kImported},
    {"models/workload/import/execution_trace", all_of({kImported, {"models/workload/import/timed"}})},
    {"models/workload/import/inference",
     all_of({kImported, {"models/workload/import/timed", "models/workload/import/execution_trace"}})},
    {"models/workload/import/kineto", all_of({kTimed, {"models/workload/import/inference"}})},
    {"models/workload/import/mwc", kTimed},
    {"models/workload/import/chakra", kTimed},
    {"models/workload/import/cupti", kTimed},
    {"models/workload/import/rocm", all_of({kTimed, {"models/workload/import/cupti"}})},
    {"models/workload/import/snapshot",
     all_of({kImported, {"sim/memory", "models/workload/import/timed", "models/workload/memory"}})},
    {"models/workload/import/tables", kTimed},
    {"models/workload/import",
     all_of({kTimed,
             {"models/workload/import/kineto", "models/workload/import/mwc", "models/workload/import/chakra",
              "models/workload/import/cupti", "models/workload/import/rocm", "models/workload/import/snapshot",
              "models/workload/import/tables"}})},
    {"models/workload/import/ranks", all_of({kTimed,
                                             {"models/workload/import", "models/workload/import/kineto",
                                              "models/workload/import/cupti", "models/workload/import/rocm"}})},
    {"models/workload/generate/configuration", {"sim", "sim/files", "models/workload/import/bytes"}},
    {"models/workload/generate/operators",
     {"sim", "sim/trace", "models/workload", "models/workload/generate/configuration"}},
    {"models/workload/generate/native",
     {"sim", "sim/trace", "models/workload", "models/workload/generate/configuration",
      "models/workload/generate/operators"}},
    {"models/workload/generate",
     {"sim", "sim/trace", "models/workload", "models/workload/generate/configuration",
      "models/workload/generate/operators", "models/workload/generate/native"}},
    {"models/workload/frameworks", {"sim", "models/workload/generate/configuration"}},
    {"models/workload/graft", {"sim", "sim/trace", "sim/machine", "models/workload"}},
    {"models/workload/memory", {"sim", "sim/trace", "sim/memory"}},
    {"models/workload/forecast", {"sim", "sim/machine", "models/workload/import/bytes", "models/workload/memory"}},

    {"policies/trace", {"sim", "sim/trace", "sim/machine"}},
    {"policies/plan", kPolicy},
    {"policies/recompute", all_of({kPolicy, {"policies/plan", "policies/profile"}})},
    {"policies/offload", all_of({kPolicy, {"policies/plan", "policies/profile"}})},
    {"policies/profile", all_of({kPolicy, {"policies/plan", "sim/memory", "sim/engine"}})},
    {"policies/solver", {"sim"}},
    {"policies/cycle", all_of({kPolicy, {"policies/profile"}})},
    {"policies/planners", all_of({kPolicy,
                                  {"policies/plan", "policies/recompute", "policies/profile", "policies/solver",
                                   "policies/cycle", "sim/memory", "sim/engine", "traces/plan"}})},
    {"policies/sharding", kPolicy},
    {"policies/batch", kPolicy},
    {"policies/recipe", kPolicy},
    {"policies/parallel", kPolicy},
    {"policies/fusion", kPolicy},
    {"policies/compile",
     all_of({kPolicy, {"policies/fusion", "policies/plan", "policies/planners", "policies/profile"}})},
    {"policies/pagers", kPolicy},

    {"traces/trace", {"sim", "sim/files", "sim/trace"}},
    {"traces/plan", {"sim", "sim/files", "sim/trace", "sim/machine", "sim/policy"}},
    {"traces/emit", {"sim", "sim/policy", "traces/plan"}},
    {"traces/figure", {"sim", "sim/memory"}},
    {"traces/run", kSim},
    {"traces/run/analysis", all_of({kSim, {"traces/run"}})},
    {"traces/run/file", all_of({kSim, {"traces/run"}})},
    {"traces/run/export", all_of({kSim, {"traces/run", "traces/run/analysis"}})},

    {"study", all_of({kSim,
                      kRun,
                      kImport,
                      kStudied,
                      {"models/workload/import/kineto", "policies/batch", "policies/cycle", "policies/plan",
                       "policies/profile", "policies/trace", "traces/plan", "traces/trace"}})},
    {"study/explain", all_of({kSim, {"study", "models/hw", "traces/run", "traces/run/analysis"}})},

    {"study/charts", {"sim", "study", "traces/figure"}},
    {"study/python", {}},
    {"study/python/binding", all_of({kSim,
                                     kStudy,
                                     kRun,
                                     {"study/charts", "study/python", "traces/figure", "gui/drawing", "gui/model", "cli",
                                      "cli/print", "policies/plan", "policies/planners", "traces/plan"}})},

    {"gui/model", all_of({kSim, kRun, {"traces/figure"}})},
    {"gui/drawing", all_of({kSim, kRun, {"traces/figure", "gui/model"}})},
    {"gui/paint", {"sim", "sim/files", "traces/figure"}},
    {"gui/probe", {"sim/files", "gui/model"}},
    {"gui/view", all_of({kSim, kRun, {"traces/figure", "gui/model", "gui/drawing"}})},
    {"gui/view/canvas", {"sim", "gui/model", "gui/drawing", "gui/paint", "gui/view"}},
    {"gui/view/panels",
     all_of({{"sim", "sim/files", "traces/figure", "gui/model", "gui/drawing", "gui/paint", "gui/view"}, kRun})},
    {"gui/view/window", all_of({kRun,
                                {"sim", "sim/files", "traces/figure", "gui/model", "gui/drawing", "gui/paint",
                                 "gui/view", "gui/view/canvas", "gui/view/panels"}})},

    {"validate/measurement", {"sim", "sim/files"}},
    {"validate/replay", all_of({kSim, {"validate/measurement"}})},
    {"validate/replay/cuda", all_of({kSim, {"validate/measurement", "validate/replay"}})},
    {"validate/replay/main", {"sim", "sim/files", "validate/measurement", "validate/replay"}},
    {"validate/bench", all_of({kSim, {"validate/measurement", "validate/replay"}})},
    {"validate/bench/cuda",
     all_of({kSim, {"validate/measurement", "validate/replay", "validate/replay/cuda", "validate/bench"}})},
    {"validate/calibrate", all_of({kSim, {"models/hw", "validate/measurement"}})},
    {"validate/report", all_of({kSim,
                                kImport,
                                kStudy,
                                kFiles,
                                {"models/workload/import/execution_trace", "models/workload/import/kineto",
                                 "validate/measurement", "validate/replay", "validate/calibrate"}})},
    {"validate/published", all_of({kSim, kImport, kStudy, kRun})},
    {"validate/transfer", all_of({kSim,
                                  {"models/hw", "models/workload/import/kineto", "models/workload/import/tables",
                                   "models/workload/import/timed", "validate/published"}})},

    {"cli/print", all_of({kSim,
                          kImport,
                          kStudy,
                          kFiles,
                          {"validate/published", "validate/replay", "validate/report", "validate/transfer"}})},
    {"cli/live", all_of({kSim,
                         kImport,
                         kStudy,
                         {"cli", "cli/print", "validate/measurement", "validate/replay", "validate/bench",
                          "validate/calibrate", "validate/report"}})},
    {"cli", all_of({kSim, kImport, kStudy, kFiles, {"cli/print", "study/charts", "traces/emit"}})},
    {"cli/verbs", all_of({kSim,
                          kImport,
                          kStudy,
                          kFiles,
                          {"cli", "cli/print", "cli/live", "gui/drawing", "policies/batch", "policies/trace",
                           "traces/emit", "validate/measurement", "validate/replay", "validate/calibrate",
                           "validate/report", "validate/published", "validate/transfer"}})},
};

// The nearest room above a path; "" where there is none.
std::string room_of(std::filesystem::path path) {
  for (path = path.parent_path(); !path.empty(); path = path.parent_path())
    if (kMayInclude.contains(path.generic_string())) return path.generic_string();
  return "";
}

std::vector<std::string> violations(const std::string& file, std::istream& text) {
  static const std::regex include(R"(^\s*#include\s+"([^"]+)\")");
  const std::string room = room_of(file);
  std::vector<std::string> found;
  std::smatch match;
  for (std::string line; std::getline(text, line);) {
    if (!std::regex_search(line, match, include)) continue;
    const std::string target = match[1];
    if (target.ends_with(".pb.h")) continue;                                 // generated from the room's own schema
    if (file == "cli/main.cpp" && room_of(target) == "cli/verbs") continue;  // the one place that knows the verbs
    if (room_of(target) != room && !kMayInclude.at(room).contains(room_of(target)))
      found.push_back(file + " includes " + target);
  }
  return found;
}

bool is_source(const std::filesystem::path& path) {
  const std::string extension = path.extension();
  return extension == ".h" || extension == ".cpp" || extension == ".cu";
}

// Of every room, relative to the root.
std::vector<std::filesystem::path> sources() {
  const std::filesystem::path root = MEMWALL_SOURCE;
  std::vector<std::filesystem::path> found;
  for (const char* folder : {"sim", "models", "policies", "traces", "study", "validate", "gui", "cli"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      const auto path = entry.path().lexically_relative(root);
      // What programs of others load or include stands alone.
      if (is_source(path) && !path.generic_string().starts_with("traces/capture")) found.push_back(path);
    }
  return found;
}

TEST(Layers, EveryIncludePointsDown) {
  const auto files = sources();
  for (const auto& file : files) {
    ASSERT_NE(room_of(file), "") << file << " stands in no room: expected a row in kMayInclude";
    std::ifstream text(MEMWALL_SOURCE / file);
    EXPECT_EQ(violations(file.generic_string(), text), std::vector<std::string>{});
  }
  EXPECT_GT(files.size(), 500u) << "the check must see the source";
}

// Follows the arrows from a room: does it come back?
bool leads_to(const std::string& from, const std::string& to, std::set<std::string>& seen) {
  for (const std::string& next : kMayInclude.at(from))
    if (next == to || (seen.insert(next).second && leads_to(next, to, seen))) return true;
  return false;
}

TEST(Layers, NoArrowsMakeACircle) {
  for (const auto& [room, allowed] : kMayInclude) {
    std::set<std::string> seen;
    EXPECT_FALSE(leads_to(room, room, seen)) << room;
  }
}

TEST(Layers, EveryRoomSaysWhatMayStandInIt) {
  for (const auto& [room, allowed] : kMayInclude) {
    std::ifstream readme(std::filesystem::path(MEMWALL_SOURCE) / room / "README.md");
    std::string title, sentence;
    std::getline(readme, title);
    while (std::getline(readme, sentence) && sentence.empty()) {
    }
    EXPECT_EQ(title, "# " + room) << "expected " << room << "/README.md, with its name as the title";
    EXPECT_GT(sentence.size(), 20u) << room;
  }
}

// A reader looks through a folder by names: at most so many nouns (a header, or a source without one).
TEST(Layers, NoRoomIsTooLargeToLookThrough) {
  std::map<std::filesystem::path, std::set<std::string>> nouns;
  for (const auto& file : sources()) nouns[file.parent_path()].insert(file.stem().string());
  for (const auto& [folder, names] : nouns) EXPECT_LE(names.size(), kMostNouns) << folder;
}

// One way from a step to a result: who simulates or rewrites asks study/.
TEST(Layers, OnlyAStudyRunsSteps) {
  static const std::regex call(R"(\b(apply_rewriters|simulate_and_record|simulate)\()");
  static const std::regex asks(R"(\b[Ss]tudy(\(\)|_)?\.(run|prepare)\()");
  std::set<std::string> around, through;
  for (const auto& file : sources()) {
    const std::string name = file.generic_string();
    if (name.starts_with("sim/") || name.starts_with("traces/run/run_recorder")) continue;  // where they are defined
    std::ifstream text(MEMWALL_SOURCE / file);
    for (std::string line; std::getline(text, line);) {
      if (line.find("//") < line.find_first_not_of(' ') + 1) continue;
      if (std::regex_search(line, call)) around.insert(name);
      if (std::regex_search(line, asks)) through.insert(name);
    }
  }
  // Calibration fits a constant to a program of two copies, which is no step. A planner, which a rewriter is, may ask
  // what the step that it was given does, and what its plan makes of it.
  // A layout's passes are run alone, then the job that is made of them.
  // A profile of another batch is grafted at its own and rewritten to the one that is asked for, before it is a step.
  EXPECT_EQ(around,
            (std::set<std::string>{
                "policies/profile/plan_estimate.cpp", "policies/profile/step_profile.cpp", "study/complete_step.cpp",
                "study/further_runs.cpp", "study/grafted_workload.cpp", "study/layout/chunk_costs.cpp",
                "study/layout/folded_job.cpp", "study/layout/folded_path.cpp", "study/layout/pass_path.cpp",
                "study/layout/reserved_memory.cpp", "study/study.cpp", "validate/calibrate/duplex_copies.cpp"}));
  for (const char* caller : {"cli/verbs/run.cpp", "cli/verbs/schedule.cpp", "cli/verbs/roofline.cpp",
                             "cli/live/live_validation.cpp", "validate/published/simulated_step.cpp",
                             "validate/report/repriced.cpp", "validate/report/pytorch_prediction.cpp"})
    EXPECT_TRUE(through.contains(caller)) << caller;
}

TEST(Layers, AnUpwardIncludeIsSeen) {
  std::istringstream text("#include <vector>\n#include \"sim/error.h\"\n  #include \"policies/trace/dataflow.h\"\n");
  EXPECT_EQ(violations("sim/engine/x.h", text),
            std::vector<std::string>{"sim/engine/x.h includes policies/trace/dataflow.h"});
  std::istringstream sideways("#include \"policies/offload/offload_settings.h\"\n");
  EXPECT_EQ(violations("policies/sharding/x.cpp", sideways).size(), 1u) << "kinds of policies do not see each other";
}

// Types that a file defines for others: in headers, and in sources outside of namespaces without a name.
std::vector<std::string> types_defined_in(const std::filesystem::path& file) {
  static const std::regex definition(R"(^(?:struct|class) ([A-Z]\w*)(?: final)?(?: :.*)? ?\{)");
  std::vector<std::string> types;
  std::ifstream text(file);
  std::smatch match;
  bool is_own = false;
  for (std::string line; std::getline(text, line);) {
    if (line == "namespace {" || line == "namespace MEMWALL_TEST_FILE {") is_own = true;
    if (line == "}  // namespace" || line == "}  // namespace MEMWALL_TEST_FILE") is_own = false;
    if (!is_own && std::regex_search(line, match, definition)) types.push_back(match[1]);
  }
  return types;
}

// Two types of one name in one namespace are one type to the linker: it keeps one of their inline
// functions for both, and writes over memory where their sizes differ.
TEST(Layers, NoTwoFilesDefineATypeOfOneName) {
  std::map<std::string, std::string> file_of;
  for (const char* folder : {"sim", "models", "policies", "traces", "study", "validate", "gui", "cli", "tests/support",
                             "tests/differential", "tests/unit", "tests/property"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      for (const std::string& type : types_defined_in(entry.path())) {
        const auto [first, is_new] = file_of.emplace(type, entry.path());
        EXPECT_TRUE(is_new) << type << " is defined in " << first->second << " and in " << entry.path();
      }
    }
  EXPECT_GT(file_of.size(), 100u) << "the check must see the source";
}

// But for what opens and replaces files, and asks for large pages: POSIX and Linux.
TEST(Layers, TheEngineUsesTheStandardLibraryOnly) {
  static const std::regex angle(R"(^\s*#include\s+<([^>]+)>)");
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / "sim")) {
    if (!is_source(entry.path()) || entry.path().parent_path().filename() == "files" ||
        entry.path().filename() == "large_pages.h")
      continue;
    std::ifstream text(entry.path());
    std::smatch match;
    for (std::string line; std::getline(text, line);)
      if (std::regex_search(line, match, angle)) {
        EXPECT_EQ(match[1].str().find_first_of("./"), std::string::npos) << entry.path() << ": " << line;
      }
  }
}

// Tests compile together: what one keeps to itself must not meet what another does. Programs of one file are alone.
TEST(Layers, EveryTestKeepsItsNamesToItself) {
  const std::set<std::string> alone = {"trace_copies_test.cpp", "snapshot_fuzz_test.cpp", "contributing_code_test.cpp"};
  std::size_t tests = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(MEMWALL_SOURCE) / "tests")) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("_test.cpp") || alone.contains(name)) continue;
    ++tests;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(text.find("\nnamespace MEMWALL_TEST_FILE {\n"), text.npos) << entry.path();
    EXPECT_EQ(text.find("\nnamespace {\n"), text.npos) << entry.path();
  }
  EXPECT_GT(tests, 400u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
