// Does a mutated copy of any capture, of any format, end in a sound trace or in a sentence that names the file, within
// bounds of time and memory?
//
// Of every format of the registry there is at least one small capture here; real ones, where they are, join in a
// shortened form. MEMWALL_FUZZ_SEED and MEMWALL_FUZZ_ROUNDS (default 10,000) look for new cases by hand.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "models/workload/import/bytes/byte_source.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/importer_samples.h"
#include "tests/support/mutation.h"
#include "tests/support/resident_memory.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"
#include "models/workload/import/importer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

constexpr std::size_t kUseful = 24 << 10;      // bytes of a real capture
constexpr std::size_t kLargest = 4 << 20;      // of a real one that cannot be shortened
constexpr double kMostSeconds = 10;            // of one import, of processor time
constexpr Bytes kMostMemory = Bytes{1} << 30;  // on top of what the process held before
constexpr std::chrono::seconds kHung{120};     // two cores may be busy with something else

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Ends the process, and says where, if a round takes too long: nothing else ends an endless loop.
class Watchdog {
 public:
  ~Watchdog() {
    const std::scoped_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  void begin(std::string what) {
    const std::scoped_lock lock(mutex_);
    what_ = std::move(what);
    ++round_;
    changed_.notify_all();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      const std::uint64_t round = round_;
      if (changed_.wait_for(lock, kHung, [&] { return done_ || round_ != round; }) || round == 0) continue;
      std::fprintf(stderr, "%s: no end after %lld s\n", what_.c_str(), static_cast<long long>(kHung.count()));
      std::_Exit(1);
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  std::uint64_t round_ = 0;
  bool done_ = false;
  std::jthread thread_{[this] { watch(); }};
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Real captures, shortened; what lies beside a table of several files comes along.
std::vector<ImporterSample> shared_samples() {
  std::vector<ImporterSample> samples;
  const auto data = shared_data();
  if (!data) return samples;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(*data / "traces"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    std::string content;
    try {
      content = read_file_text(file, std::size_t{1} << 28);
    } catch (const InputError&) {  // an archive of several files
      continue;
    }
    content = shortened_text(content, kUseful);
    if (content.size() > kLargest) content.resize(kUseful);
    ImporterSample sample{file.filename().string(), {{file.filename().string(), std::move(content)}}};
    if (file.extension() == ".csv")
      for (const fs::path& beside : files)
        if (beside != file && beside.parent_path() == file.parent_path())
          sample.files.push_back({beside.filename().string(), read_file_text(beside)});
    samples.push_back(std::move(sample));
  }
  return samples;
}

struct Counts {
  int sound = 0, refused = 0, unknown = 0;
};

// What is wrong with how the file was taken; "" if nothing is.
std::string fault_of(const fs::path& path, Counts& counts) {
  try {
    FileHead head = read_file_head(path);
    const Importer* importer = find_importer(head);
    if (importer == nullptr) {
      ++counts.unknown;
      return "";
    }
    const ImportedStep step = importer->import(path, {});
    const std::vector<std::string> faults = check(step.trace);
    ++counts.sound;
    return faults.empty() ? "" : "the trace is not sound: " + faults.front();
  } catch (const InputError& error) {
    ++counts.refused;
    const std::string text = error.what();
    return text.find(path.parent_path().filename().string()) == std::string::npos ? "no file is named: " + text : "";
  } catch (const std::exception& error) {
    return std::string("another error than InputError: ") + error.what();
  }
}

class ImportersFuzz : public ::testing::Test {
 protected:
  void write(const ImporterSample& sample, std::mt19937_64* random) {
    // The main file twice as often as one that lies beside it.
    const std::size_t changed = random == nullptr ? 0 : (*random)() % (sample.files.size() + 1) % sample.files.size();
    for (std::size_t i = 0; i < sample.files.size(); ++i) {
      const auto& [name, content] = sample.files[i];
      write_content(folder_ / name, random != nullptr && i == changed ? mutated(content, *random) : content);
    }
  }
  fs::path main_file(const ImporterSample& sample) const { return folder_ / sample.files.front().first; }

  ScratchFolder folder_;
};

TEST_F(ImportersFuzz, EveryFormatHasASmallCaptureThatIsRead) {
  std::set<std::string> read;
  for (const ImporterSample& sample : importer_samples()) {
    SCOPED_TRACE(sample.name);
    write(sample, nullptr);
    FileHead head = read_file_head(main_file(sample));
    const Importer* importer = find_importer(head);
    ASSERT_NE(importer, nullptr);
    const ImportedStep step = importer->import(main_file(sample), {});
    EXPECT_EQ(check(step.trace), std::vector<std::string>());
    EXPECT_FALSE(step.trace.ops.empty());
    read.insert(importer->name);
  }
  for (const Importer& importer : importers()) EXPECT_TRUE(read.contains(importer.name)) << importer.name;
}

TEST_F(ImportersFuzz, MutatedCopiesEndInASoundTraceOrASentence) {
  const std::uint64_t seed = from_environment("MEMWALL_FUZZ_SEED", 20'261'122);
  const std::uint64_t rounds = from_environment("MEMWALL_FUZZ_ROUNDS", 10'000);
  std::vector<ImporterSample> samples = importer_samples();
  for (ImporterSample& sample : shared_samples()) samples.push_back(std::move(sample));
  // Large ones come up less often: what counts is the number of copies.
  std::vector<double> weights;
  for (const ImporterSample& sample : samples) {
    std::size_t size = 0;
    for (const auto& file : sample.files) size += file.second.size();
    weights.push_back(std::max(0.1, 1 / (1 + static_cast<double>(size) / (16 << 10))));
  }
  std::discrete_distribution<std::size_t> choose(weights.begin(), weights.end());
  std::map<std::string, Counts> counts;
  Watchdog watchdog;
  int faults = 0;
  for (std::uint64_t round = 0; round < rounds && faults < 10; ++round) {
    std::mt19937_64 random(seed + round);
    const ImporterSample& sample = samples[choose(random)];
    const std::string where =
        "MEMWALL_FUZZ_SEED=" + std::to_string(seed + round) + " MEMWALL_FUZZ_ROUNDS=1, a copy of " + sample.name;
    watchdog.begin(where);
    write(sample, &random);
    const Bytes held = most_resident();
    const double begun = processor_seconds();
    std::string fault = fault_of(main_file(sample), counts[sample.name]);
    if (fault.empty() && processor_seconds() - begun > kMostSeconds) fault = "it took more than 10 s";
    if (fault.empty() && kFreedMemoryIsReused && most_resident() - held > kMostMemory)
      fault = "it took more than 1 GiB";
    if (fault.empty()) continue;
    ++faults;
    ADD_FAILURE() << where << ": " << fault;
  }
  Counts all;
  for (const auto& [name, c] : counts) {
    std::printf("%-50s %6d sound, %6d refused, %6d unknown\n", name.c_str(), c.sound, c.refused, c.unknown);
    all.sound += c.sound;
    all.refused += c.refused;
  }
  if (rounds < 1000) return;
  EXPECT_GT(all.sound, static_cast<int>(rounds) / 50);  // or the damage would never reach behind the first check
  EXPECT_GT(all.refused, static_cast<int>(rounds) / 50);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
