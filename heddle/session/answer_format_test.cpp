// Answers of the shipped model that must have a form, next to others that need none.
#include "heddle/session/answer_format.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/model/build/family.h"
#include "heddle/session/answer.h"
#include "heddle/session/service.h"

namespace heddle {
namespace {

const std::string kHeldModel = HEDDLE_SOURCE_DIR "/models/storyteller";

ResponseFormat form_of(const std::string& schema) {
  const Json form = Json::object({{"type", "json_schema"}, {"schema", parse_json(schema, "schema")}});
  return read_response_format(JsonView(form, "form"));
}

const char* const kPointSchema =
    R"({"type": "object", "properties": {"x": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}},
        "required": ["x", "ok"], "additionalProperties": false})";

struct AnswerFormats : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kHeldModel + "/tokenizer.json");
  std::shared_ptr<const Model> model = open_model(kHeldModel);
  AnswerSettings settings = model_settings(kHeldModel);

  std::shared_ptr<Answer> ask(const std::string& prompt, u64 seed, const ResponseFormat& form = {},
                              i32 most = 0) const {
    AnswerSettings mine = settings;
    mine.sampling.temperature = 1;
    mine.sampling.seed = seed;
    mine.max_tokens = most > 0 ? most : form.grammar ? 250 : 60;
    mine.response_format = form;
    return std::make_shared<Answer>(mine, tokenizer.encode(prompt, true), tokenizer);
  }
};

void run_all(Service& service, const std::vector<std::shared_ptr<Answer>>& answers,
             std::vector<std::shared_ptr<Ticket>>* tickets = nullptr) {
  std::vector<Request> requests;
  for (const auto& answer : answers) requests.push_back({.job = answer});
  const auto all = service.submit(std::move(requests));
  for (const auto& ticket : all) ticket->wait();
  if (tickets) *tickets = all;
}

// All take as many steps, so that each step has the same rows with and without forms.
TEST_F(AnswerFormats, LeaveOthersAsTheyAre) {
  constexpr i32 kAnswers = 16;
  Engine engine(model, {.max_sequences = kAnswers});
  Service service(engine);
  settings.eos_token_id.clear();
  const ResponseFormat text = form_of(R"({"type": "string", "minLength": 400})");
  std::vector<std::shared_ptr<Answer>> free, held;
  for (i32 i = 0; i < kAnswers; ++i) {
    free.push_back(ask("Once upon a time", u64(i)));
    held.push_back(ask("Once upon a time", u64(i), i % 4 == 3 ? text : ResponseFormat{}, 60));
  }
  run_all(service, free);
  run_all(service, held);
  for (size_t i = 0; i < kAnswers; ++i)
    if (held[i]->is_constrained())
      EXPECT_EQ(held[i]->text().find('"'), held[i]->text().find_first_not_of(" \n")) << held[i]->text();
    else
      EXPECT_EQ(held[i]->tokens(), free[i]->tokens()) << i;
}

TEST_F(AnswerFormats, HoldAnswersThatEnd) {
  Engine engine(model, {.max_sequences = 4});
  Service service(engine);
  std::vector<std::shared_ptr<Answer>> answers;
  for (u64 seed = 0; seed < 4; ++seed) answers.push_back(ask("A point: ", seed, form_of(kPointSchema)));
  run_all(service, answers);
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->reason(), "eos") << answer->text();
    const Json made = parse_json(answer->text(), "answer");
    EXPECT_TRUE(made.at("x").to_int().value() <= 99 && made.at("ok").is_bool()) << answer->text();
  }
}

TEST_F(AnswerFormats, HoldWhereTheHostChooses) {
  Engine engine(model, {.max_sequences = 1});
  Service service(engine);
  const auto answer = [&] {
    AnswerSettings mine = settings;
    mine.sampling.no_repeat_ngram_size = 30;
    mine.max_tokens = 250;
    mine.response_format = form_of(kPointSchema);
    return std::make_shared<Answer>(mine, tokenizer.encode("A point: ", true), tokenizer);
  }();
  ASSERT_TRUE(answer->wants_logits());
  run_all(service, {answer});
  EXPECT_EQ(answer->reason(), "eos") << answer->text();
  EXPECT_TRUE(parse_json(answer->text(), "answer").find("ok")) << answer->text();
}

// Settings may leave nothing of what the form allows. That ends this answer alone.
TEST_F(AnswerFormats, WithoutATokenFailAlone) {
  Engine engine(model, {.max_sequences = 2});
  Service service(engine);
  const auto other = ask("Once upon a time", 1), again = ask("Once upon a time", 1);
  run_all(service, {again});
  AnswerSettings mine = settings;
  mine.response_format = form_of(R"({"type": "integer", "minimum": 0})");
  for (i32 id = 0; id < tokenizer.id_limit(); ++id)
    if (tokenizer.token_bytes(id).value_or("").find_first_of("0123456789 \n\t\r") != std::string::npos)
      mine.sampling.suppress_tokens.push_back(id);
  const auto answer = std::make_shared<Answer>(mine, tokenizer.encode("A number: ", true), tokenizer);
  std::vector<std::shared_ptr<Ticket>> tickets;
  run_all(service, {other, answer}, &tickets);
  EXPECT_EQ(tickets[0]->state(), TicketState::kFinished);
  EXPECT_EQ(other->tokens(), again->tokens());
  ASSERT_EQ(tickets[1]->state(), TicketState::kFailed);
  try {
    std::rethrow_exception(tickets[1]->error());
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("the answer's form and its settings leave no token"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(AnswerFormats, OfAVocabularyThatCannotWriteThemAreRefused) {
  const Tokenizer words = Tokenizer::parse(
      R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "[": 1}, "unk_token": "a"}, "decoder": {"type": "Fuse"}})",
      "words");
  AnswerSettings mine;
  mine.response_format = form_of(R"({"type": "array", "items": {"type": "null"}, "minItems": 1})");
  Answer answer(mine, {0}, words);
  try {
    answer.take(1);
    FAIL() << "nothing can follow";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no token of this model goes on"), std::string::npos)
        << error.what();
  }
  mine.response_format = form_of(R"({"type": "null"})");
  EXPECT_THROW(Answer(mine, {0}, words), Error);
}

const Json& called_functions() {
  static const Json made = parse_json(
      R"([{"name": "now", "parameters": {"type": "object", "properties": {}}},
          {"name": "weather", "parameters": {"type": "object", "properties":
            {"city": {"type": "string", "maxLength": 9}, "days": {"type": "integer", "minimum": 1, "maximum": 30},
             "kind": {"enum": ["wet", "dry"]}}, "required": ["days", "kind"], "additionalProperties": false}}])",
      "functions");
  return made;
}

// Each form's reader takes the call that its pieces and the schema force.
TEST_F(AnswerFormats, AreCallsOfEachForm) {
  Engine engine(model, {.max_sequences = 4});
  Service service(engine);
  const Json weather = Json::array({called_functions().items()[1]});
  Json tools = Json::array();
  for (const Json& one : called_functions().items()) tools.push_back(Json::object({{"function", one}}));
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<const CallForm*> forms;
  for (const CallForm& form : call_forms()) {
    if (!form.pieces) continue;
    forms.push_back(&form);
    answers.push_back(
        ask("Once upon a time", 1, call_format(form, JsonView(weather, "tools"), tokenizer, {})));
  }
  run_all(service, answers);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i]->reason(), "eos") << forms[i]->name << ' ' << answers[i]->text();
    const auto reader = forms[i]->reader(tools);
    std::vector<CallEvent> events = reader->push(answers[i]->text());
    for (CallEvent& event : reader->flush()) events.push_back(std::move(event));
    std::string arguments, text, names;
    for (const CallEvent& event : events)
      (event.kind == CallEvent::Kind::kBegin  ? names
       : event.kind == CallEvent::Kind::kText ? text
                                              : arguments) += event.text;
    EXPECT_EQ(names, "weather") << forms[i]->name << ' ' << answers[i]->text();
    EXPECT_EQ(text, "") << forms[i]->name << ' ' << answers[i]->text();
    const Json made = parse_json(arguments, "arguments");
    EXPECT_LE(made.at("days").to_int().value(), 30) << arguments;
    EXPECT_EQ(made.at("kind").as_string().size(), 3) << arguments;
  }
}

TEST_F(AnswerFormats, OfCallsThatAreNotForcedAreRefusedByName) {
  for (const CallForm& form : call_forms()) {
    if (form.pieces) continue;
    try {
      call_format(form, JsonView(called_functions(), "tools"), tokenizer, {});
      FAIL() << form.name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(form.name), std::string::npos) << error.what();
    }
  }
}

// A mark that is a special token is chosen as that, and is no part of a string.
TEST_F(AnswerFormats, HaveSpecialTokensAsMarks) {
  Json vocab = Json::object();
  for (char c = ' '; c <= '~'; ++c) vocab[std::string(1, c)] = c - ' ';
  Json added = Json::array();
  i32 count = 95;
  for (const char* mark : {"[TOOL_CALLS]", "[ARGS]"})
    added.push_back(Json::object({{"id", count++},
                                  {"content", mark},
                                  {"special", true},
                                  {"single_word", false},
                                  {"lstrip", false},
                                  {"rstrip", false},
                                  {"normalized", false}}));
  const Tokenizer letters = Tokenizer::parse(
      Json::object({{"model", Json::object({{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", " "}})},
                    {"added_tokens", added},
                    {"decoder", Json::object({{"type", "Fuse"}})}})
          .dump(),
      "letters");
  const auto form = std::ranges::find(call_forms(), "mistral-named", &CallForm::name);
  AnswerSettings mine;
  mine.response_format = call_format(*form, JsonView(called_functions(), "tools"), letters, {});
  Answer answer(mine, {0}, letters, {.after_prompt = false, .reasoning = {}, .prompt = "", .calls = &*form});
  const auto allows = [&](i32 token) { return (answer.mask()[size_t(token) / 32] >> (token % 32) & 1) != 0; };
  EXPECT_FALSE(allows('[' - ' '));
  ASSERT_TRUE(allows(95));
  answer.take(95);
  for (const char c : std::string("weather")) answer.take(c - ' ');
  EXPECT_FALSE(allows('[' - ' '));
  ASSERT_TRUE(allows(96));
  answer.take(96);
  for (const char c : std::string("{\"city\": \"")) answer.take(c - ' ');
  EXPECT_TRUE(allows('[' - ' '));
  EXPECT_FALSE(allows(95));
  EXPECT_EQ(answer.text(), "[TOOL_CALLS]weather[ARGS]{\"city\": \"");
}

// Reasoning that the prompt began is free, and must end before the answer does.
TEST_F(AnswerFormats, BeginAfterReasoning) {
  const ReasoningForm form{.begin = "<think>", .end = "</think>"};
  AnswerSettings mine = settings;
  mine.response_format = form_of(R"({"type": "null"})");
  Answer answer(mine, {0}, tokenizer, {.reasoning = &form, .prompt = "<think>"});
  const auto allows = [&](i32 token) { return (answer.mask()[size_t(token) / 32] >> (token % 32) & 1) != 0; };
  const auto say = [&](const std::string& text) {
    for (const i32 token : tokenizer.encode(text, false)) answer.take(token);
  };
  const i32 end = mine.eos_token_id.at(0), word = tokenizer.encode("fox", false).at(0);
  EXPECT_TRUE(allows(word));
  EXPECT_FALSE(allows(end));
  say("the fox</think>");
  EXPECT_FALSE(allows(word));
  say("null");
  EXPECT_TRUE(allows(end));
  answer.end(false);
  EXPECT_EQ(answer.text(), "null");
}

}  // namespace
}  // namespace heddle
