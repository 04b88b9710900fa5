// CLI11's side of a command: what it keeps of its arguments, and how help shows them. Only what works on CLI11
// includes this.
#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "apps/heddle/support/argument.h"

namespace heddle {

class CommandApp : public CLI::App {
 public:
  CommandApp(const std::string& name, const std::string& about);

  std::map<const CLI::Option*, ArgumentTraits> traits;  // by argument; help flags have none
};

// Breaks lines of text at spaces, so that none is longer than `width` bytes where that is possible.
std::string wrapped(const std::string& text, size_t width);

// Help shows the options that most people need; the full help shows all, in groups. Long lines are broken.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string options(const CLI::App* app, bool all) const;
};

}  // namespace heddle
