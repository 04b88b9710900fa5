// Mistakes that people make with models, programs and files. See tests/support/misuse.h.
#include "tests/support/misuse.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "heddle/base/file.h"
#include "heddle/ir/program/program.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

Strings logits(const std::string& model = "@tiny", const std::string& tokens = "1,2,3",
               const std::string& out = "@out.safetensors") {
  return {"logits", model, "--tokens", tokens, "--out", out};
}

// Damages: functions without state, so that the table can hold them.
template <auto kKey, auto kValue>
void set_config(const std::string& folder) {
  edit_json(folder + "tiny/config.json", [](Json& json) { json[kKey()] = kValue(); });
}
#define CONFIG(key, value) set_config<[] { return key; }, [] { return Json(value); }>

template <auto kChange>
void change_weights(const std::string& folder) {
  edit_tensors(folder + "tiny/model.safetensors", kChange);
}
template <auto kChange>
void change_file(const std::string& folder) {
  edit(folder + "tiny/model.safetensors", kChange);
}
void set_float(EditableTensor& tensor, size_t index, float value) {
  std::memcpy(tensor.data.data() + 4 * index, &value, sizeof value);
}
// Bytes of a safetensors file with this header.
std::string with_header(const std::string& header, size_t data) {
  const u64 size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data, '\0');
}
template <auto kChange>
void make_program(const std::string& folder) {
  std::string bytes = read_file(HEDDLE_SOURCE_DIR "/tests/fuzz/program/llama3-tiny.heddle");
  kChange(bytes);
  write_file(folder + "p.heddle", bytes);
}

const char* const kQuery = "model.layers.1.self_attn.q_proj.weight";

const Misuse kCommands[] = {
    {"unknown_command", {"generte"}, kWrongArguments, {"'generte' is not a command; did you mean generate?"}},
    {"no_command_like_it", {"frobnicate"}, kWrongArguments, {"'frobnicate'", "generate, inspect", "--help"}},
    {"unknown_option",
     {"inspect", "@tiny", "--grpah"},
     kWrongArguments,
     {"unknown flag --grpah; did you mean --graph?"}},
    {"no_option_like_it",
     {"inspect", "@tiny", "--frob"},
     kWrongArguments,
     {"unknown flag --frob; see heddle inspect --help-all"}},
    {"no_model", {"inspect"}, kWrongArguments, {"model is required", "heddle inspect --help"}},
    {"temperature_negative",
     generate({"--temperature", "-1"}),
     kWrongArguments,
     {"temperature is -1", "0 to 100"}},
    {"temperature_nan",
     generate({"--temperature", "nan"}),
     kWrongArguments,
     {"temperature is nan", "0 to 100"}},
    {"top_p_above_one",
     generate({"--top-p", "2"}),
     kWrongArguments,
     {"top_p is 2", "0 (the likeliest token) to 1"}},
    {"top_k_negative", generate({"--top-k", "-3"}), kWrongArguments, {"top_k is -3", "0 (all)"}},
    {"min_p_one", generate({"--min-p", "1"}), kWrongArguments, {"min_p is 1", "below 1"}},
    {"penalty_zero", generate({"--repetition-penalty", "0"}), kWrongArguments, {"repetition_penalty is 0"}},
    {"seed_negative", generate({"--seed", "-1"}), kWrongArguments, {"--seed", "-1", "from 0 to"}},
    {"seed_of_65_bits",
     generate({"--seed", "18446744073709551616"}),
     kWrongArguments,
     {"--seed", "18446744073709551616", "to 18446744073709551615"}},
    {"seed_with_an_exponent",
     generate({"--seed", "1e3"}),
     kWrongArguments,
     {"--seed", "1e3", "whole number"}},
    {"top_k_of_33_bits", generate({"--top-k", "4294967301"}), kWrongArguments, {"--top-k", "to 2147483647"}},
    {"top_k_is_no_utf8", generate({"--top-k", "5\xff"}), kWrongArguments, {"--top-k", "\\ufffd"}},
    {"temperature_beyond_floats",
     generate({"--temperature", "1e99"}),
     kWrongArguments,
     {"--temperature", "1e99"}},
    {"stop_is_no_utf8", generate({"--stop", "a\xff"}), kWrongArguments, {"--stop", "UTF-8", "byte 1"}},
    {"ignored_setting_that_is_none",
     generate({"--ignore-generation", "beams"}),
     kWrongArguments,
     {"--ignore-generation", "'beams'", "num_beams"}},
    {"seed_is_no_number", generate({"--seed", "abc"}), kWrongArguments, {"--seed", "abc", "--help"}},
    {"max_tokens_zero", generate({"--max-tokens", "0"}), kWrongArguments, {"max_tokens is 0", "positive"}},
    {"empty_stop", generate({"--stop", ""}), kWrongArguments, {"stop", "empty"}},
    {"workers_too_many", generate({"--workers", "99999"}), kWrongArguments, {"workers = 99999", "4096"}},
    {"workers_negative", generate({"--workers", "-1"}), kWrongArguments, {"workers = -1", "4096"}},
    {"threads_negative", generate({"--threads", "-2"}), kWrongArguments, {"threads = -2", "1024"}},
    {"split_unit_negative", generate({"--split-unit", "-1"}), kWrongArguments, {"split_unit = -1", "65536"}},
    {"splits_too_many", generate({"--max-splits", "2000"}), kWrongArguments, {"max_splits = 2000", "1024"}},
    {"unknown_executor", generate({"--executor", "gpu9"}), kWrongArguments, {"gpu9", "threads, reference"}},
    {"unknown_scheduler", generate({"--scheduler", "best"}), kWrongArguments, {"best", "level_batched"}},
    {"context_past_the_model",
     generate({"--max-context", "1000000"}),
     kWrongArguments,
     {"1000000", "the model allows 1 to"}},
    {"check_of_nothing", {"check"}, kWrongArguments, {"MODEL or --arch", "heddle check --help"}},
    {"check_for_an_unknown_gpu", {"check", "--arch", "sm_80,sm_1"}, kWrongArguments, {"sm_1 ", "sm_90a"}},
    {"check_of_an_unknown_op",
     {"check", "--arch", "sm_80", "--ops", "linnear"},
     kWrongArguments,
     {"linnear", "did you mean linear?"}},
    {"check_of_names_of_nothing",
     {"check", "@story", "--names"},
     kWrongArguments,
     {"--names", "--arch", "--json"}},
    {"check_of_ops_of_a_model", {"check", "@story", "--ops", "linear"}, kWrongArguments, {"--ops", "--arch"}},
    {"no_share_to_bench",
     {"bench", "@story", "--top-p", "2"},
     kWrongArguments,
     {"top_p is 2", "0 (the likeliest token) to 1"}},
    {"no_sequences_to_bench", {"bench", "@story", "--sequences", "0"}, kWrongArguments, {"--sequences is 0"}},
    {"check_of_a_model_and_bodies",
     {"check", "@story", "--arch", "sm_80"},
     kWrongArguments,
     {"takes no model", "story"}},
    {"rows_of_no_class", {"inspect", "@tiny", "--rows", "100000"}, kWrongArguments, {"100000 rows", "512"}},
    {"graph_of_a_program",
     {"inspect", "@p.heddle", "--graph"},
     kWrongArguments,
     {"p.heddle", "--graph takes a model folder"},
     make_program<[](std::string&) {}>},
};

const Misuse kInputs[] = {
    {"prompt_too_long",
     generate({"--max-context", "4", "--prompt", "Once upon a time"}),
     kWrongArguments,
     {"prompt has", "holds 4", "--max-context"}},
    {"prompt_is_not_utf8",
     generate({"--prompt", "a\xff\xfe"}),
     kWrongArguments,
     {"prompt", "UTF-8", "byte 1"}},
    {"stdin_is_not_utf8",
     {"tokenize", "@story"},
     kWrongArguments,
     {"stdin", "UTF-8", "byte 2"},
     nullptr,
     {.input = "ab\xc0"}},
    {"token_past_the_vocabulary", logits("@tiny", "1,131"), kWrongArguments, {"token 131", "0 to 130"}},
    {"token_negative", logits("@tiny", "-5,1"), kWrongArguments, {"token -5", "0 to 130"}},
    {"tokens_not_numbers", logits("@tiny", "1,two"), kWrongArguments, {"--tokens", "'two'", "whole numbers"}},
    {"token_past_32_bits",
     logits("@tiny", "99999999999"),
     kWrongArguments,
     {"--tokens", "99999999999", "below 2^31"}},
    {"no_tokens", logits("@tiny", ""), kWrongArguments, {"--tokens", "such as 1,2,3"}},
    {"more_tokens_than_context",
     {"logits", "@tiny", "--tokens", "1,2,3,4,5", "--out", "@o", "--max-context", "3"},
     kWrongArguments,
     {"--tokens has 5", "holds 3", "--max-context"}},
    {"diff_of_unknown_token",
     {"diff", "@tiny", "--tokens", "500"},
     kWrongArguments,
     {"token 500", "0 to 130"}},
    {"decode_of_words",
     {"tokenize", "@story", "--decode"},
     kWrongArguments,
     {"'two'"},
     nullptr,
     {.input = "1 two"}},
    {"decode_of_what_is_no_id",
     {"tokenize", "@story", "--decode"},
     kWrongArguments,
     {"-5"},
     nullptr,
     {.input = "-5"}},
    {"json_lines_that_are_none",
     {"tokenize", "@story", "--json-lines"},
     kWrongArguments,
     {"line 1", "JSON string"},
     nullptr,
     {.input = "{oops"}},
};

const Misuse kModels[] = {
    {"no_folder",
     generate({}),
     kFailed,
     {"story", "no such folder", "save_pretrained"},
     [](const std::string& folder) { std::filesystem::remove_all(folder + "story"); }},
    {"folder_is_a_file",
     logits("@out"),
     kFailed,
     {"out", "not a folder"},
     [](const std::string& folder) { write_file(folder + "out", "x"); }},
    {"no_config",
     logits(),
     kFailed,
     {"tiny/config.json", "No such file"},
     [](const std::string& folder) { std::filesystem::remove(folder + "tiny/config.json"); }},
    {"config_is_no_json",
     logits(),
     kFailed,
     {"tiny/config.json"},
     [](const std::string& folder) { replace(folder + "tiny/config.json", "{\"model_type\": "); }},
    {"config_is_a_pipe",
     logits(),
     kFailed,
     {"tiny/config.json", "not a regular file"},
     [](const std::string& folder) {
       std::filesystem::remove(folder + "tiny/config.json");
       ASSERT_EQ(::mkfifo((folder + "tiny/config.json").c_str(), 0600), 0);
     }},
    {"no_weights",
     logits(),
     kFailed,
     {"tiny", "model.safetensors"},
     [](const std::string& folder) { std::filesystem::remove(folder + "tiny/model.safetensors"); }},
    {"weights_are_a_folder",
     logits(),
     kFailed,
     {"model.safetensors", "not a regular file"},
     [](const std::string& folder) {
       std::filesystem::remove(folder + "tiny/model.safetensors");
       std::filesystem::create_directory(folder + "tiny/model.safetensors");
     }},
    {"weights_cut",
     logits(),
     kFailed,
     {"model.safetensors", "bytes"},
     change_file<[](std::string& file) { file.resize(file.size() / 2); }>},
    {"header_cut",
     logits(),
     kFailed,
     {"model.safetensors", "header"},
     change_file<[](std::string& file) { file.resize(100); }>},
    {"header_of_2_to_64_bytes",
     logits(),
     kFailed,
     {"model.safetensors", "header"},
     change_file<[](std::string& file) { file.replace(0, 8, 8, '\xff'); }>},
    {"tensors_overlap",
     logits(),
     kFailed,
     {"model.safetensors", "b", "overlap"},
     change_file<[](std::string& file) {
       file = with_header(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                          R"("b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})",
                          24);
     }>},
    {"tensor_of_2_to_80_elements",
     logits(),
     kFailed,
     {"model.safetensors", "shape"},
     change_file<[](std::string& file) {
       file = with_header(
           R"({"a":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,16]}})", 16);
     }>},
    {"shard_missing",
     logits("@shards"),
     kFailed,
     {"model-00002-of-00003.safetensors", "is missing", "hf download"},
     [](const std::string& folder) {
       std::filesystem::remove(folder + "shards/model-00002-of-00003.safetensors");
     }},
    {"tensor_missing",
     logits(),
     kFailed,
     {kQuery, "another model"},
     change_weights<[](EditableTensors& tensors) { tensors.erase(kQuery); }>},
    {"tensor_of_another_shape",
     logits(),
     kFailed,
     {kQuery, "[40, 39]", "[40, 40]"},
     change_weights<[](EditableTensors& tensors) {
       tensors[kQuery].shape = {40, 39}, tensors[kQuery].data.resize(40 * 39 * 4);
     }>},
    {"tensor_of_integers",
     logits(),
     kFailed,
     {kQuery, "I32", "must be F32, F16, BF16 or F64"},
     change_weights<[](EditableTensors& tensors) { tensors[kQuery].dtype = DType::kI32; }>},
    {"weight_is_nan",
     logits(),
     kFailed,
     {kQuery, "is nan", "finite"},
     change_weights<[](EditableTensors& tensors) { set_float(tensors[kQuery], 57, NAN); }>},
    {"weight_is_infinite",
     logits(),
     kFailed,
     {"model.norm.weight", "is inf", "finite"},
     change_weights<[](EditableTensors& tensors) { set_float(tensors["model.norm.weight"], 3, INFINITY); }>},
    {"no_heads",
     logits(),
     kFailed,
     {"config.json", "num_attention_heads", "0"},
     CONFIG("num_attention_heads", 0)},
    {"negative_size", logits(), kFailed, {"config.json", "hidden_size", "-40"}, CONFIG("hidden_size", -40)},
    {"a_billion_layers",
     logits(),
     kFailed,
     {"num_hidden_layers", "1000000000"},
     CONFIG("num_hidden_layers", 1000000000)},
    {"more_layers_than_weights",
     logits(),
     kFailed,
     {"layers.3.", "another model"},
     CONFIG("num_hidden_layers", 90)},
    {"heads_that_do_not_group",
     logits(),
     kFailed,
     {"num_key_value_heads", "3"},
     CONFIG("num_key_value_heads", 3)},
    {"vocabulary_of_another_model",
     logits(),
     kFailed,
     {"embed_tokens", "[131, 40]", "[7, 40]"},
     CONFIG("vocab_size", 7)},
    {"a_size_that_is_text", logits(), kFailed, {"hidden_size", "forty"}, CONFIG("hidden_size", "forty")},
    {"unknown_family",
     logits(),
     kFailed,
     {"config.json", "model_type", "mamba", "gpt2, gpt_neox"},
     CONFIG("model_type", "mamba")},
    {"inspect_a_file_that_is_cut_short",
     {"inspect", "@m.gguf"},
     kFailed,
     {"m.gguf", "ends at byte 4", "download it again"},
     [](const std::string& folder) { write_file(folder + "m.gguf", "GGUF"); }},
    {"unsupported_activation",
     logits(),
     kFailed,
     {"config.json", "hidden_act", "softplus"},
     CONFIG("hidden_act", "softplus")},
    {"unsupported_rope",
     logits(),
     kFailed,
     {"config.json", "rope_type", "proportional", "yarn, longrope or llama3"},
     CONFIG("rope_parameters", (Json::object({{"rope_type", "proportional"}, {"rope_theta", 1e4}})))},
    {"positions_past_32_bits",
     logits(),
     kFailed,
     {"max_position_embeddings"},
     CONFIG("max_position_embeddings", 99999999999)},
    {"memory_too_small",
     {"logits", "@tiny", "--tokens", "1,2", "--out", "@o", "--max-context", "1000000000"},
     kFailed,
     {"[memory]", "are needed and", "are free", "KV cache", "1 sequence of 1000000000 positions",
      "--max-context"},
     CONFIG("max_position_embeddings", 1000000000)},
    {"tokenizer_missing",
     generate({}),
     kFailed,
     {"tokenizer.json", "neither"},
     [](const std::string& folder) { std::filesystem::remove(folder + "story/tokenizer.json"); }},
    {"tokenizer_cut",
     generate({}),
     kFailed,
     {"tokenizer.json"},
     [](const std::string& folder) {
       edit(folder + "story/tokenizer.json", [](std::string& file) { file.resize(5000); });
     }},
    {"tokenizer_of_another_model",
     {"generate", "@tiny", "--prompt", "\u017elu\u0165ou\u010dk\u00fd"},
     kFailed,
     {"tiny/tokenizer.json", "makes token", "0 to 130", "another model"},
     [](const std::string& folder) {
       std::filesystem::copy_file(kGoldens + "tokenizer/gpt2/tokenizer.json", folder + "tiny/tokenizer.json");
     }},
    {"beams",
     generate({}),
     kFailed,
     {"generation_config.json", "num_beams is 4", "--ignore-generation num_beams"},
     [](const std::string& folder) {
       replace(folder + "story/generation_config.json", R"({"num_beams": 4})");
     }},
    {"generation_config_is_no_json",
     generate({}),
     kFailed,
     {"generation_config.json"},
     [](const std::string& folder) { replace(folder + "story/generation_config.json", "nonsense"); }},
};

const Misuse kPrograms[] = {
    {"program_cut",
     {"check", "@p.heddle"},
     kFailed,
     {"p.heddle", "cut or changed"},
     make_program<[](std::string& file) { file.resize(file.size() - 100); }>},
    {"program_changed",
     {"inspect", "@p.heddle"},
     kFailed,
     {"p.heddle", "checksum"},
     make_program<[](std::string& file) { file[file.size() / 2] ^= 1; }>},
    {"program_of_another_version",
     {"check", "@p.heddle"},
     kFailed,
     {"version 7", "version 4"},
     make_program<[](std::string& file) { file[8] = 7; }>},
    {"not_a_program",
     {"check", "@p.heddle"},
     kFailed,
     {"p.heddle", "not a program"},
     [](const std::string& folder) { write_file(folder + "p.heddle", std::string(100, 'x')); }},
    {"program_with_another_op",
     {"check", "@p.heddle"},
     kFailed,
     {"p.heddle", "linear", "made with other arguments"},
     make_program<[](std::string& file) {
       Program program = parse_program(file, "p");
       std::string fields = file.substr(32);
       const u64 hash = program.opcodes[2].hash;
       fields[fields.find(std::string(reinterpret_cast<const char*>(&hash), 8))] ^= 1;
       file = frame_program(fields);
     }>},
    {"program_that_would_hang",
     {"check", "@p.heddle"},
     kFailed,
     {"rejected: deadlock", "worker 0 #"},
     make_program<[](std::string& file) {
       Program program = parse_program(file, "p");
       for (auto& stream : program.workers)
         for (Instruction& instruction : stream) instruction.set_previous(0, false);
       file = serialise_program(program);
     }>},
};

const Misuse kOutputs[] = {
    {"out_in_no_folder",
     logits("@tiny", "1,2", "@none/out"),
     kFailed,
     {"none/out", "No such file", "folder"}},
    {"out_is_a_folder", logits("@tiny", "1,2", "@tiny"), kFailed, {"tiny", "directory"}},
    {"out_is_full", logits("@tiny", "1,2", "/dev/full"), kFailed, {"/dev/full", "No space left"}},
    {"disk_full_while_writing",
     logits("@tiny", "1,2,3,4,5,6,7"),
     kFailed,
     {"out.safetensors", "too large"},
     nullptr,
     {.largest_file = 1024}},
    {"program_on_a_full_disk",
     {"inspect", "@tiny", "--save", "@p.heddle"},
     kFailed,
     {"p.heddle", "too large"},
     nullptr,
     {.largest_file = 4096}},
    {"text_on_a_full_disk",
     generate({}),
     kFailed,
     {"stdout", "No space left"},
     nullptr,
     {.output = "/dev/full"}},
    {"tokens_on_a_full_disk",
     {"tokenize", "@story"},
     kFailed,
     {"stdout", "No space left"},
     nullptr,
     {.input = "a", .output = "/dev/full"}},
    {"graph_on_a_full_disk",
     {"inspect", "@tiny", "--graph"},
     kFailed,
     {"stdout", "No space left"},
     nullptr,
     {.output = "/dev/full"}},
};

TEST_P(Misuses, EndsWithAMessage) {
  run();
}
INSTANTIATE_TEST_SUITE_P(Commands, Misuses, testing::ValuesIn(kCommands), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Inputs, Misuses, testing::ValuesIn(kInputs), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Models, Misuses, testing::ValuesIn(kModels), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Programs, Misuses, testing::ValuesIn(kPrograms), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Outputs, Misuses, testing::ValuesIn(kOutputs), name_of_misuse);

}  // namespace
}  // namespace heddle
