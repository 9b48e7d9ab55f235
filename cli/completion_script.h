// What a shell needs to complete the command line of memwall, from the options that the program has.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace memwall {

// A script to be sourced by `shell`: bash, zsh or fish. It offers verbs, options and, behind an option, what that
// takes: formats, machines and policies by name, files and folders. Names are those of the moment: of the folder of
// machines, too. Throws UsageError with the nearest name of another shell.
std::string completion_script(const CLI::App& program, const std::string& shell);

}  // namespace memwall
