// What several verbs take as --onto.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace memwall {

// An empty value is refused: it is a shell variable without one, and would run the profile alone.
inline void add_onto_option(CLI::App& app, std::string& onto) {
  app.add_option("--onto", onto,
                 "A complete step of the same network, onto which the profile's times go: a capture of "
                 "memwall_capture, with or without a GPU, a trace, or a network's name with its settings. Every policy "
                 "can then be asked")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("it is empty; expected a capture, a trace or a network's name")
                            : std::string();
      });
}

}  // namespace memwall
