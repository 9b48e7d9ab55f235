// Every command that the documentation shows does what the page says: it ends with code 0 (3 where the page says that
// the step does not fit), and prints the lines that the page shows below it ("..." stands for what is left out).
//
// A command runs in a folder that has the files it names: samples of traces/samples, generated steps, and captures of
// MEMWALL_SHARED; where these are absent it is not run, and the test prints its name. Of a command with a placeholder
// ("--machine NAME"), and of a part of a command (`run --policy fusion`), verb and options must exist.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/doc_commands.h"
#include "tests/support/importer_samples.h"
#include "tests/support/program.h"
#include "tests/support/published_tables.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

const fs::path kRoot = MEMWALL_SOURCE;

// What is shown and not run, with the reason.
struct NotRun {
  const char* pattern;
  const char* reason;
  bool is_command = true;  // its verb and options must exist
};
const std::vector<NotRun> kNotRun = {
    {"memwall view( .*)?", "opens a window"},
    {"memwall-viewer(?!.* --picture).*", "opens a window"},
    {"memwall watch", "asks the driver of a GPU"},
    {"memwall run .*--policy exec:.*", "asks a Python program; tests/unit/policies/planners/exec_test.cpp runs it"},
    {"memwall validate --live.*", "measures this computer for minutes"},
    {"memwall-bench( .*)?", "measures this computer for minutes"},
    {"memwall-replay( .*)?", "executes a schedule for half a minute; tests/hardware/replay_program_test.cpp runs it"},
    {"memwall (schedule|execution) 1", "the first line of a file", false},
};

const NotRun* why_not_run(const std::string& text) {
  for (const NotRun& n : kNotRun)
    if (std::regex_match(text, std::regex(n.pattern))) return &n;
  return nullptr;
}

// What a word of the documentation stands for.
const std::vector<std::pair<const char*, const char*>> kPlaceholders = {
    {"(run|inspect|roofline|schedule) (STEP|CAPTURE|X.mwt)", "$1 step.mwt"},
    {"(import|run) FILE", "$1 profile.json.gz"},
    {"import --explain FILE", "import --explain profile.json.gz"},
    {"forecast FILE", "forecast snapshot.pickle"},
    {"memory SNAPSHOT", "memory snapshot.pickle"},
    {"export RUN.h5", "export run.h5"},
    {"calibrate DIR", "calibrate results"},
    {"generate WORKLOAD", "generate gpt2-124m"},
    {"--published FOLDER", "--published published"},
    {"--transfer FOLDER", "--transfer published_and_traces"},
    {"compare A B C", "compare a100-sxm-80gb h100-sxm-80gb mi300x"},
    {"(machines show|machines check) NAME", "$1 h100-sxm-80gb"},
    {"--machine (X|OTHER)", "--machine v100-sxm2-32gb"},
    {"--allocator NAME", "--allocator ideal"},
};

std::string without_placeholders(std::string text) {
  for (const auto& [pattern, replacement] : kPlaceholders)
    text = std::regex_replace(text, std::regex(pattern + std::string("(?= |$)")), replacement);
  return text;
}

bool has_placeholder(const DocCommand& command) {
  static const std::regex placeholder("(.*[=/])?[A-Z][A-Z_]*(\\.[a-z0-9.]+)?(=[A-Z]+)?");
  for (const std::string& word : command.words())
    if (std::regex_match(word, placeholder) || word.find("…") != word.npos || word.find("...") != word.npos)
      return true;
  return false;
}

// The folder in which the commands of one page run.
class Workplace {
 public:
  const ScratchFolder& folder() const { return folder_; }
  // Puts there what the command reads; false if that is among the captures that are absent.
  bool has_inputs_of(const DocCommand& command) {
    const std::vector<std::string> words = command.words();
    if (command.text.starts_with("memwall machines check") && !shared_data()) return false;
    for (std::size_t w = 1; w < words.size(); ++w) {
      static const std::set<std::string> outputs = {"-o", "--output", "--svg", "--timeline", "--picture", "--runs"};
      if (!outputs.contains(words[w - 1]) && !make(words[w])) return false;
    }
    return true;
  }

 private:
  bool copied(const fs::path& from, const std::string& name) {
    if (!fs::exists(from)) return false;
    if (fs::exists(folder_.path() / name)) return true;
    fs::create_directories((folder_.path() / name).parent_path());
    fs::copy(from, folder_.path() / name, fs::copy_options::recursive);
    return true;
  }
  bool capture(const std::string& path, const std::string& name) {
    const auto data = shared_data();
    return data && copied(*data / path, name);
  }
  bool written(const std::string& arguments) { return run_memwall(folder_, arguments).code == 0; }
  bool sample(const std::string& extension, const std::string& name) {
    for (const ImporterSample& s : importer_samples())
      for (const auto& [file, content] : s.files)
        if (file.ends_with(extension)) {
          write_content(folder_ / name, content);
          return true;
        }
    return false;
  }
  bool network(const std::string& name, int batch, int length) {
    return written("generate gpt2-124m --batch " + std::to_string(batch) + " --seq " + std::to_string(length) + " -o " +
                   name);
  }
  bool ranks(const std::string& ending) {
    for (const char* rank : {"0", "1", "2", "3"})
      if (!capture("traces/dlrm_8xv100/rank" + std::string(rank) + ".kineto.json.gz", "rank" + (rank + ending)))
        return false;
    return true;
  }
  bool text(const std::string& name, const std::string& content) {
    write_content(folder_ / name, content);
    return true;
  }
  bool vgg13(const std::string& name) {
    return make("profile.json.gz") && make("et.json.gz") &&
           written("import profile.json.gz --et et.json.gz -o " + name);
  }
  bool make(const std::string& word);

  const ScratchFolder folder_;
};

constexpr const char* kNetwork =
    "base: \"gpt2-124m\"\nmodel { layers: 2 width: 256 heads: 4 }\nrecipe { batch: 2 sequence: 128 }\n";
constexpr const char* kHuggingFaceNetwork =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 256, \"n_head\": 4, \"n_positions\": 128, \"vocab_size\": "
    "512}";

std::string driver_log() {
  std::string log = "timestamp, memory.used [MiB]\n";
  for (int second = 0; second < 48; ++second)
    log += "2026/11/21 10:00:" + std::to_string(10 + second) + ".000, " + std::to_string(1000 + 500 * (second % 6)) +
           " MiB\n";
  return log;
}

// A word that names no file needs nothing.
bool Workplace::make(const std::string& word) {
  const std::string snapshots = "traces/snapshots/", samples = (kRoot / "traces/samples").string();
  const std::string name = word.starts_with("./") ? word.substr(2) : word;
  const std::map<std::string, std::function<bool()>> makers = {
      {"step.mwt", [&] { return copied(samples + "/gpt_124m.mwt", name); }},
      {"trace.mwt", [&] { return copied(samples + "/gpt_124m.mwt", name); }},
      {"step.mwc.gz", [&] { return copied(samples + "/captures/gpt2_124m.mwc.gz", name); }},
      {"out.mwc.gz", [&] { return copied(samples + "/captures/gpt2_124m.mwc.gz", name); }},
      {"2.mwc", [&] { return network(name, 2, 128); }},
      {"4.mwc", [&] { return network(name, 4, 128); }},
      {"short.mwc", [&] { return network(name, 1, 64); }},
      {"long.mwc", [&] { return network(name, 1, 128); }},
      {"base.h5", [&] { return make("step.mwt") && written("run step.mwt -o base.h5"); }},
      {"run.h5", [&] { return make("step.mwt") && written("run step.mwt --policy checkpoint:mode=full -o run.h5"); }},
      {"other.h5", [&] { return make("step.mwt") && written("run step.mwt --policy fusion -o other.h5"); }},
      {"ranks.h5", [&] { return ranks(".json.gz") && written("run rank0.json.gz rank3.json.gz -o ranks.h5"); }},
      {"job.h5",
       [&] {
         return written(
             "run gpt3-175b:tensor=8,pipeline=8,interleave=3,sequence_parallel=1,micro_batch=1,batch=8 --machine "
             "dgx-a100-80gb -o job.h5");
       }},
      {"profile.json.gz", [&] { return capture("traces/kineto/vgg13_h100_bs512_train.json", name); }},
      {"fake.mwc.gz", [&] { return copied(samples + "/captures/variants/vgg13_batch_512.mwc.gz", name); }},
      {"et.json.gz", [&] { return capture("traces/execution_trace/vgg13_h100_bs512.json", name); }},
      {"vgg13.mwt", [&] { return vgg13(name); }},
      {"vgg13.h5", [&] { return make("vgg13.mwt") && written("run vgg13.mwt -o vgg13.h5"); }},
      {"vgg13_offload.h5",
       [&] {
         return make("vgg13.h5") && written("run vgg13.mwt --policy offload:what=activations,to=host -o " + name);
       }},
      {"rank*.json.gz", [&] { return ranks(".json.gz"); }},
      {"rank*.kineto.json.gz", [&] { return ranks(".kineto.json.gz"); }},
      {"memory.pickle", [&] { return capture(snapshots + "lm_medium_ctx128_train.pickle", name); }},
      {"snapshot.pickle", [&] { return capture(snapshots + "lm_medium_ctx128_train.pickle", name); }},
      {"a.pickle", [&] { return capture(snapshots + "lm_medium_ctx128_train.pickle", name); }},
      {"b.pickle", [&] { return capture(snapshots + "lm_medium_ctx256_train.pickle", name); }},
      {"trace.csv",
       [&] { return capture("traces/triosim/resnet50_h100_bs128/trace.csv", name) && make("tensor.csv"); }},
      {"tensor.csv", [&] { return capture("traces/triosim/resnet50_h100_bs128/tensor.csv", name); }},
      {"published", [&] { return copy_few_published_tables(folder_ / name); }},
      {"published_and_traces", [&] { return capture("", name); }},
      {"run-4711.mwi", [&] { return sample(".mwi", name); }},
      {"log.csv", [&] { return text(name, driver_log()); }},
      {"config.json", [&] { return text(name, kHuggingFaceNetwork); }},
      {"ds_config.json",
       [&] {
         return text(name, R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
                               "zero_optimization": {"stage": 3, "overlap_comm": true}})");
       }},
      {"llama405b.toml",
       [&] {
         return text(name,
                     "[model]\nname = \"llama3\"\nflavor = \"405B\"\nconverters = [\"quantize.linear.float8\"]\n"
                     "[quantize.linear.float8]\nfilter_fqns = [\"output\"]\n"
                     "[training]\nlocal_batch_size = 32\nseq_len = 8192\n"
                     "[parallelism]\ntensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n"
                     "pipeline_parallel_degree = 8\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
                     "pipeline_parallel_microbatch_size = 2\n"
                     "[activation_checkpoint]\nmode = \"full\"\n[compile]\nenable = true\n");
       }},
      {"small.textproto", [&] { return text(name, kNetwork); }},
      {"results", [&] { return copied(kRoot / "validate/data/two-core-epyc", name); }},
  };
  if (fs::exists(folder_.path() / name)) return true;
  if (name.starts_with("traces/") || name.starts_with("tests/") || name.starts_with("validate/") ||
      name.starts_with("docs/"))
    return copied(kRoot / name, name);
  const auto maker = makers.find(name);
  return maker == makers.end() || maker->second();
}

// The programs, their help, and whether verbs and options exist.
class Programs {
 public:
  // Nothing where the program is not built (the viewer, without Qt).
  std::optional<std::string> path(const std::string& name) const {
    const fs::path viewer = fs::path(MEMWALL_PROGRAM).parent_path() / "../gui/memwall-viewer";
    if (name == "memwall-viewer") return fs::exists(viewer) ? std::optional(viewer.string()) : std::nullopt;
    return name == "memwall-bench"    ? MEMWALL_BENCH_PROGRAM
           : name == "memwall-replay" ? MEMWALL_REPLAY_PROGRAM
                                      : MEMWALL_PROGRAM;
  }

  // A verb or an option that the program does not have; "" if there is none.
  std::string unknown_word(const DocCommand& command) {
    const std::vector<std::string> words = command.words();
    if (!path(words[0])) return "";
    std::string help = words[0];
    if (words[0] == "memwall") {
      if (!has_verb("memwall", words.at(1))) return words[1];
      help += " " + words[1];
      if (words.size() > 2 && has_verb(help, words[2])) help += " " + words[2];
    }
    for (const std::string& word : words) {
      if (!word.starts_with("--")) continue;
      const std::regex option("(^|[ ,])" + word.substr(0, word.find('=')) + "($|[ ,=\n:])");
      if (!std::regex_search(help_of(help), option)) return word;
    }
    return "";
  }

 private:
  const std::string& help_of(const std::string& words) {
    const auto [entry, is_new] = helps_.try_emplace(words);
    const std::size_t blank = words.find(' ');
    if (is_new) {
      const CommandOutcome o = run_command(
          "'" + *path(words.substr(0, blank)) + "'" + (blank == words.npos ? "" : words.substr(blank)) + " --help",
          folder_.path());
      entry->second = o.out;
    }
    return entry->second;
  }
  bool has_verb(const std::string& words, const std::string& verb) {
    const std::string& help = help_of(words);
    const std::size_t begin = help.find("Subcommands:");
    return begin != help.npos && help.find("\n  " + verb + " ", begin) != help.npos;
  }

  const ScratchFolder folder_;
  std::map<std::string, std::string> helps_;
};

// The lines that the page shows are printed, in their order.
std::string first_that_is_not_printed(const std::string& shown, const std::string& printed) {
  const std::string all = with_single_blanks(printed);
  std::size_t at = 0;
  std::istringstream lines(std::regex_replace(shown, std::regex("\\.\\.\\."), "\n"));
  for (std::string line; std::getline(lines, line);) {
    line = with_single_blanks(line);
    const std::size_t found = all.find(line, at);
    if (found == all.npos) return line;
    at = found + line.size();
  }
  return "";
}

bool says_that_it_does_not_fit(const DocCommand& c) {
  return (c.comment + c.output).find("not fit") != std::string::npos;
}

class Page {
 public:
  // Sentences about what is wrong with the page's commands.
  std::vector<std::string> problems(const std::string& text) {
    for (DocCommand& command : doc_commands(text)) check(std::move(command));
    compare_pictures();
    return problems_;
  }

 private:
  void compare_pictures() {
    const fs::path drawn = place_.folder().path() / "docs";
    if (!fs::exists(drawn)) return;
    for (const auto& entry : fs::recursive_directory_iterator(drawn)) {
      const fs::path name = entry.path().lexically_relative(place_.folder().path());
      if (name.extension() == ".svg" && content_of(entry.path()) != content_of(kRoot / name))
        problems_.push_back(name.string() + ": the commands of the page draw another picture than stands there");
    }
  }
  void add(const DocCommand& c, const std::string& sentence) {
    problems_.push_back("line " + std::to_string(c.line) + ": " + c.text + "\n  " + sentence);
  }
  void check(DocCommand c) {
    const NotRun* reason = why_not_run(c.text);
    if (reason != nullptr && !reason->is_command) return;
    c.text = without_placeholders(c.text);
    const std::string unknown = programs_.unknown_word(c);
    if (!unknown.empty()) return add(c, "there is no verb or option \"" + unknown + "\"");
    if (reason != nullptr || has_placeholder(c)) return;
    const auto program = programs_.path(c.words()[0]);
    if (!program || !place_.has_inputs_of(c)) {
      std::cout << "not run: " << c.text << (program ? ": its captures are absent\n" : ": the program is not built\n");
      return;
    }
    const auto data = shared_data();
    const std::string captures = data ? "MEMWALL_SHARED='" + data->parent_path().string() + "' " : "";
    run(c, captures + "QT_QPA_PLATFORM=offscreen '" + *program + "'" + c.text.substr(c.words()[0].size()));
  }
  void run(const DocCommand& c, const std::string& line) {
    const CommandOutcome o = run_command(line, place_.folder().path());
    static const std::regex lacks_an_argument("required|is missing|no capture is given");
    if (!c.fenced && o.code == 2 && std::regex_search(o.err, lacks_an_argument)) return;  // a part of a command
    if (o.code != (says_that_it_does_not_fit(c) ? 3 : 0))
      add(c, "ends with code " + std::to_string(o.code) + ": " + o.err);
    const std::string absent = first_that_is_not_printed(c.output, o.out);
    if (!absent.empty()) add(c, "does not print \"" + absent + "\", but:\n" + o.out);
  }

  Workplace place_;
  Programs programs_;
  std::vector<std::string> problems_;
};

std::vector<std::string> pages() {
  std::vector<std::string> found = {"README.md", "CONTRIBUTING.md", "traces/capture/README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path().lexically_relative(kRoot));
  std::sort(found.begin(), found.end());
  return found;
}

class DocsCommands : public ::testing::TestWithParam<std::string> {};

TEST_P(DocsCommands, DoWhatThePageSays) {
  const std::string text = content_of(kRoot / GetParam());
  EXPECT_FALSE(text.empty());
  for (const std::string& sentence : Page().problems(text)) ADD_FAILURE() << GetParam() << ", " << sentence;
}

std::string name_of_page(const ::testing::TestParamInfo<std::string>& page) {
  return std::regex_replace(page.param, std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Page, DocsCommands, ::testing::ValuesIn(pages()), name_of_page);

std::size_t number_of_problems(const std::string& text) { return Page().problems(text).size(); }

TEST(DocsCommandsTest, FindsWhatIsWrong) {
  EXPECT_EQ(number_of_problems("```\nmemwall frobnicate step.mwt\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run step.mwt --no-such-option\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run NAME.mwt --no-such-option\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run step.mwt --machine no-such\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run nobody-makes-this.mwt\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run\n```\n"), 1u) << "a whole command is expected in a block";
  EXPECT_EQ(number_of_problems("```\nmemwall view --no-such-option\n```\n"), 1u) << "also of what is not run";
  EXPECT_EQ(number_of_problems("With `memwall frobnicate`, or\n`memwall machines\nfrobnicate`."), 2u);
  EXPECT_EQ(number_of_problems("With `memwall run --no-such-option`."), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall policies\n  a line that it ... does not print\n```\n"), 1u);
  EXPECT_EQ(number_of_problems("```\nmemwall run llama3-8b:batch=2,sequence=4096 --machine h100-sxm-80gb\n```\n"), 1u)
      << "it does not fit, and the page must say so";
}

TEST(DocsCommandsTest, TakesWhatIsRight) {
  EXPECT_EQ(number_of_problems("`memwall run`, `memwall`, `memwall run --policy fusion`, `memwall machines show X`."),
            0u);
  EXPECT_EQ(number_of_problems("```\nmemwall machines show t4   # a comment\nmemwall machines && memwall policies\n"
                               "  name ... what it\n  ...\n\nnamespace memwall {\n```\n"
                               "```cpp\nmemwall frobnicate\n```\n"),
            0u);
  EXPECT_EQ(number_of_problems("```\nmemwall run llama3-8b:batch=2,sequence=4096 --machine h100-sxm-80gb # does not fit"
                               "\n  It does not fit: ... are missing in hbm\n```\n"),
            0u);
}

TEST(DocsCommandsTest, EveryStudyStandsInThePage) {
  const std::string page = content_of(kRoot / "docs/studies.md");
  std::size_t studies = 0;
  for (const auto& entry : fs::directory_iterator(kRoot / "docs/studies")) {
    if (entry.path().extension() != ".study") continue;
    ++studies;
    const std::string name = "studies/" + entry.path().stem().string();
    EXPECT_NE(page.find("memwall sweep docs/" + name + ".study"), page.npos) << name;
    EXPECT_NE(page.find("](" + name + ".svg)"), page.npos) << name;
  }
  EXPECT_GE(studies, 10u);
}

// A reason that belongs to no command of any page is a leftover.
TEST(DocsCommandsTest, EveryReasonBelongsToACommand) {
  std::set<const NotRun*> used;
  for (const std::string& page : pages())
    for (const DocCommand& c : doc_commands(content_of(kRoot / page))) used.insert(why_not_run(c.text));
  for (const NotRun& n : kNotRun) EXPECT_TRUE(used.contains(&n)) << n.pattern;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
