#include "models/hw/nearest_machine.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "models/hw/machine_file.h"

namespace memwall {
namespace {

// Upper case, without the words that every name of a maker has.
std::set<std::string> model_words(const std::string& name) {
  static const std::set<std::string> kMakers{"NVIDIA", "AMD", "TESLA", "INSTINCT", "QUADRO", "GRAPHICS", "RADEON"};
  std::set<std::string> words;
  std::string word;
  for (const char c : name + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    if (!word.empty() && !kMakers.contains(word)) words.insert(word);
    word.clear();
  }
  return words;
}

// A model's name has a letter and a digit, or is one: "A100", "H800", "3090".
bool names_model(const std::string& word) {
  return std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         !word.ends_with("GB");
}

// "H" and three digits: H100, H200, H800.
std::pair<std::string, std::size_t> series(const std::string& model) {
  const std::size_t digits = model.find_first_of("0123456789");
  const std::size_t end = model.find_first_not_of("0123456789", digits);
  return {model.substr(0, digits), (end == std::string::npos ? model.size() : end) - digits};
}

// 4090 of "RTX 4090", 325 of "MI325X".
int model_number(const std::string& model) {
  const auto [letters, digits] = series(model);
  return digits == 0 || digits > 6 ? 0 : std::stoi(model.substr(letters.size(), digits));
}

// How alike are two names of devices? `words` 0: no model in common. Of one series ("A100" and "A800") less than of one
// model; there the nearest number is the nearest generation.
struct Likeness {
  int words = 0;
  int apart = std::numeric_limits<int>::max();  // of the models' numbers
};

Likeness likeness(const std::string& a, const std::string& b) {
  const std::set<std::string> ours = model_words(a), theirs = model_words(b);
  Likeness alike;
  bool is_of_series = false;
  for (const std::string& word : ours) {
    if (theirs.contains(word)) alike.words += names_model(word) ? 100 : 1;
    for (const std::string& other : theirs) {
      if (word == other || !names_model(word) || !names_model(other) || series(word) != series(other)) continue;
      is_of_series = true;
      alike.apart = std::min(alike.apart, std::abs(model_number(word) - model_number(other)));
    }
  }
  if (is_of_series) alike.words += 10;
  return alike.words >= 10 ? alike : Likeness{};
}

}  // namespace

std::string nearest_machine_for_device(const std::string& device_name, Bytes total_memory) {
  std::string best;
  std::tuple<int, int, double> best_score{0, 0, 0};
  for (const Machine& machine : whole_machines()) {
    Likeness alike = likeness(device_name, machine.gpu.name);
    for (const std::string& alias : machine.gpu.aliases)
      if (const Likeness other = likeness(device_name, alias); other.words > alike.words) alike = other;
    if (alike.words == 0) continue;
    const double difference =
        total_memory > 0 ? std::abs(static_cast<double>(total_memory - machine.tiers.front().capacity)) : 0;
    const std::tuple score{alike.words, -alike.apart, -difference};
    if (best.empty() || score > best_score) best = machine.name, best_score = score;
  }
  return best;
}

}  // namespace memwall
