#include "apps/heddle/support/line_editor.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <string_view>

#include <histedit.h>
#include <unistd.h>

#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/invariant.h"

namespace heddle {
namespace {

constexpr int kRemembered = 1000;  // lines
constexpr char kCtrlD = '\x04';    // if pressed on an empty line, it arrives as a zero

}  // namespace

struct LineEditor::State {
  StdinReader& input;
  const char* prompt = "";
  History* history = nullptr;
  HistEvent event{};
  EditLine* editor = nullptr;

  static State& of(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return *state;
  }
  static char* prompt_of(EditLine* editor) { return const_cast<char*>(of(editor).prompt); }
  static int next_character(EditLine* editor, wchar_t* character);
};

// The next character for libedit: 1, 0 at the end, -1 when Ctrl-C was pressed. libedit's own reader would
// continue after a signal.
int LineEditor::State::next_character(EditLine* editor, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    char byte = 0;
    size_t count = 0;
    const StdinReader::Kind kind = of(editor).input.read({&byte, 1}, count);
    if (kind != StdinReader::Kind::kBytes) return kind == StdinReader::Kind::kEnd ? 0 : -1;
    if (byte == '\0') byte = kCtrlD;
    const size_t done = std::mbrtowc(character, &byte, 1, &state);
    if (done == size_t(-2)) continue;  // the character has more bytes
    if (done == size_t(-1)) {
      state = {};
      *character = L'\xfffd';
    }
    return 1;
  }
}

bool LineEditor::can_edit() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb" &&
         ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

LineEditor::LineEditor(StdinReader& input) : state_(std::make_unique<State>(input)) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  State& s = *state_;
  s.history = history_init();
  s.editor = el_init("heddle", stdin, stdout, stderr);
  HEDDLE_CHECK(s.history != nullptr && s.editor != nullptr);
  history(s.history, &s.event, H_SETSIZE, kRemembered);
  history(s.history, &s.event, H_SETUNIQUE, 1);
  el_set(s.editor, EL_CLIENTDATA, state_.get());
  el_set(s.editor, EL_PROMPT, &State::prompt_of);
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_HIST, history, s.history);
  el_set(s.editor, EL_GETCFN, &State::next_character);
}

LineEditor::~LineEditor() {
  el_end(state_->editor);
  history_end(state_->history);
}

LineEditor::Kind LineEditor::read(const char* prompt, std::string& line) {
  State& s = *state_;
  s.prompt = prompt;
  int count = 0;
  const char* typed = el_gets(s.editor, &count);
  if (interrupted()) {
    el_reset(s.editor);
    print("\n");
    return Kind::kInterrupted;
  }
  if (typed == nullptr || count <= 0) return Kind::kEnd;
  line.assign(typed, size_t(count));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) history(s.history, &s.event, H_ENTER, line.c_str());
  return Kind::kLine;
}

}  // namespace heddle
