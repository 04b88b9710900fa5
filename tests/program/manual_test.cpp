// Help, manual pages and completion come from one description of the commands, and are right for the tools that read
// them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

size_t lines_of(const std::string& text) {
  return size_t(std::ranges::count(text, '\n'));
}

// The lines of a help text that begin an option, by its long name.
std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("--");
    if (!line.starts_with("  -") || at == std::string::npos) continue;
    names.push_back(line.substr(at, line.find_first_of(" ,={", at) - at));
  }
  return names;
}

std::vector<std::string> commands() {
  std::vector<std::string> names;
  std::istringstream lines(output({"--help"}));
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Subcommands:") listed = true;
    if (listed && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (listed && line.empty()) break;
  }
  return names;
}

TEST(Help, IsAScreenOfWhatMostPeopleNeed) {
  const std::string help = output({"generate", "--help"});
  EXPECT_LE(lines_of(help), 40u) << help;
  const std::vector<std::string> wanted = {
      "--help", "--help-all",   "--prompt", "--chat", "--temperature", "--top-k",  "--top-p",
      "--seed", "--max-tokens", "--stop",   "--json", "--executor",    "--device", "--threads"};
  EXPECT_EQ(options_in(help), wanted);
  EXPECT_NE(help.find("heddle generate --help-all shows "), std::string::npos);
  for (const std::string command : {"chat", "bench", "profile", "eval", "compile"})
    EXPECT_LE(lines_of(output({command, "--help"})), 40u) << command;
}

// A line break of the source in the middle of a sentence is none of the text.
TEST(Help, IsFilledForTheColumnsThatThereAre) {
  const std::string help = output({"eval", "--help"});
  EXPECT_NE(help.find("Windows and their"), std::string::npos) << help;
}

TEST(Help, OfAllOptionsHasThemAllInGroups) {
  for (const std::string& command : commands()) {
    const std::string some = output({command, "--help"}), all = output({command, "--help-all"});
    const std::vector<std::string> few = options_in(some), every = options_in(all);
    for (const std::string& name : few)
      EXPECT_NE(std::ranges::find(every, name), every.end()) << command << " " << name;
    const bool says_so = some.find("--help-all shows " + std::to_string(every.size() - few.size()) +
                                   " more") != std::string::npos;
    EXPECT_EQ(says_so, every.size() > few.size()) << command;
    for (const std::string* text : {&some, &all}) {
      std::istringstream lines(*text);
      for (std::string line; std::getline(lines, line);)
        EXPECT_LE(line.size(), 115u) << command << ": " << line;
    }
  }
  const std::string all = output({"generate", "--help-all"});
  for (const char* group : {"More on how tokens are chosen:", "Where an answer ends:", "What is printed:",
                            "The program and its executor:", "With --chat:", "Many answers:"})
    EXPECT_NE(all.find(group), std::string::npos) << group;
}

// The files of an installation's share folder.
struct Manual : testing::Test {
  Scratch scratch;
  std::string folder = scratch.path("share");

  Manual() { output({"manual", folder}); }
  std::string text(const std::string& file) const { return read_file(folder + "/" + file); }
  // Runs a line of bash; "" and a message if it fails.
  std::string bash(const std::string& script) const {
    const std::string file = scratch.path("script"), out = scratch.path("out");
    write_file(file, script);
    EXPECT_EQ(std::system(fmt::format("bash '{}' > '{}' 2>&1", file, out).c_str()), 0)
        << script << read_file(out);
    return read_file(out);
  }
  static bool is_installed(const char* tool) {
    if (std::system(fmt::format("command -v {} > /dev/null", tool).c_str()) == 0) return true;
    std::printf("%s is not installed: nothing to ask it\n", tool);
    return false;
  }
};

TEST_F(Manual, HasAPageForEveryCommandWithAllItsOptions) {
  EXPECT_NE(text("man/man1/heddle.1").find(".SH NAME"), std::string::npos);
  size_t pages = 1;
  for (const std::string& command : commands()) {
    const std::string page = text("man/man1/heddle-" + command + ".1");
    ++pages;
    for (std::string name : options_in(output({command, "--help-all"}))) {
      for (size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) name.insert(at, "\\");
      EXPECT_NE(page.find("\\fB" + name + "\\fR"), std::string::npos) << command << " " << name;
    }
  }
  EXPECT_EQ(size_t(std::distance(std::filesystem::directory_iterator(folder + "/man/man1"), {})), pages);
}

TEST_F(Manual, PagesHaveNoWarnings) {
  const bool groff = is_installed("groff"), mandoc = is_installed("mandoc");
  for (const auto& page : std::filesystem::directory_iterator(folder + "/man/man1")) {
    if (groff) {
      EXPECT_EQ(
          bash(fmt::format("LC_ALL=C.UTF-8 groff -man -ww -Tutf8 -K utf8 -z '{}'", page.path().string())),
          "");
    }
    if (mandoc) {  // a date would make each build another
      EXPECT_EQ(bash(fmt::format("mandoc -T lint -W warning '{}' | grep -v 'missing date' || true",
                                 page.path().string())),
                "");
    }
  }
  if (!is_installed("man")) return;
  const std::string shown = bash(
      fmt::format("MANPAGER=cat MANWIDTH=100 man -l '{}/man/man1/heddle-generate.1' 2>&1 || true", folder));
  if (shown.find("minimized") != std::string::npos) GTEST_SKIP() << "man is a stub that shows no pages";
  EXPECT_NE(shown.find("--max-tokens"), std::string::npos) << shown;
}

TEST_F(Manual, CompletionsAreScripts) {
  const std::pair<const char*, const char*> checks[] = {{"bash", "bash-completion/completions/heddle"},
                                                        {"zsh", "zsh/site-functions/_heddle"},
                                                        {"fish", "fish/vendor_completions.d/heddle.fish"}};
  for (const auto& [shell, file] : checks) {
    EXPECT_NE(text(file).find("generate"), std::string::npos);
    if (is_installed(shell)) {
      EXPECT_EQ(bash(fmt::format("{} -n '{}/{}'", shell, folder, file)), "");
    }
  }
}

TEST_F(Manual, BashCompletesCommandsOptionsChoicesAndFiles) {
  std::filesystem::create_directories(scratch.path("here/models"));
  write_file(scratch.path("here/prompts.jsonl"), "");
  const auto completed = [&](const std::string& words) {
    const std::string made =
        bash(fmt::format("cd '{}/here'; source '{}/bash-completion/completions/heddle'\n"
                         "COMP_WORDS=({}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _heddle; printf '%s ' "
                         "\"${{COMPREPLY[@]}}\"",
                         scratch.path(""), folder, words));
    return made.substr(0, made.find_last_not_of(' ') + 1);
  };
  EXPECT_EQ(completed("heddle gen"), "generate");
  EXPECT_EQ(completed("heddle man"), "manual");
  EXPECT_EQ(completed("heddle generate --exec"), "--executor");
  EXPECT_EQ(completed("heddle generate m --executor meg"), "megakernel");
  EXPECT_EQ(completed("heddle generate m --executor ''"), "threads reference launches megakernel auto");
  EXPECT_EQ(completed("heddle generate m --executor = meg"), "megakernel");
  EXPECT_EQ(completed("heddle generate m --executor ="), "threads reference launches megakernel auto");
  EXPECT_EQ(completed("heddle chat m --context-full s"), "stop slide");
  EXPECT_EQ(completed("heddle generate m"), "models") << "folders only";
  EXPECT_EQ(completed("heddle generate m --prompts p"), "prompts.jsonl");
  EXPECT_EQ(completed("heddle generate m --prompts ''").size(), std::string("models prompts.jsonl").size());
  EXPECT_EQ(completed("heddle check pr"), "prompts.jsonl") << "a file or a folder";
  EXPECT_EQ(completed("heddle generate m --max-tokens ''"), "");
  EXPECT_EQ(completed("heddle compile m --device h2"), "h200");
  EXPECT_EQ(completed("heddle tune matm"), "matmul");
  EXPECT_EQ(completed("heddle tune mod"), "models") << "a model's folder";
  EXPECT_EQ(completed("heddle check softm"), "softmax softmax_backward");
  EXPECT_EQ(completed("heddle layout wg"), "wgmma.m64n64k16.bf16");
  EXPECT_EQ(completed("heddle tune m --back"), "") << "it has another name now";
}

}  // namespace
}  // namespace heddle
