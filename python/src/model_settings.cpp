#include "python/src/model_settings.h"

#include <charconv>
#include <type_traits>

#include "heddle/base/error.h"
#include "heddle/engine/device_name.h"
#include "python/src/json_value.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

template <class T>
constexpr const char* kPythonType = "int";
template <>
constexpr const char* kPythonType<bool> = "bool";
template <>
constexpr const char* kPythonType<float> = "float";
template <>
constexpr const char* kPythonType<std::string> = "str";
template <>
constexpr const char* kPythonType<std::vector<std::string>> = "str | Sequence[str]";
template <>
constexpr const char* kPythonType<std::vector<i32>> = "int | Sequence[int]";
template <>
constexpr const char* kPythonType<std::vector<std::vector<i32>>> = "Sequence[Sequence[int]]";
template <>
constexpr const char* kPythonType<TokenBias> = "Mapping[int, float]";
template <>
constexpr const char* kPythonType<ResponseFormat> = "Mapping[str, object]";
template <>
constexpr const char* kPythonType<std::vector<SequenceBias>> = "Sequence[tuple[Sequence[int], float]]";

// Options that a caller of heddle.load has: those that commands have flags for, and how many sequences there may be.
template <class V>
void visit_offered(EngineOptions& options, V&& v) {
  EngineOptions::visit(options, [&](const std::string& name, auto& field, const Option& option) {
    if constexpr (PlainOption<std::remove_reference_t<decltype(field)>>)
      if (option.flag || name == "max_sequences") v(name, field, option);
  });
}

// A value that is no setting's is the caller's mistake here, not a file's.
template <class F>
auto as_argument(F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code() == ErrorCode::kIo ? ErrorCode::kInvalidArgument : error.code(), error.what());
  }
}

void take_device(EngineOptions& options, const std::string& device) {
  const DefaultExecutor chosen =
      device == kAutoExecutor ? default_executor() : executor_on(parse_device(device, "load"));
  options.executor = chosen.name, options.device = chosen.device;
}

}  // namespace

AnswerSettings settings_with(AnswerSettings settings, const nb::dict& given, const std::string& where) {
  return as_argument([&] {
    const Json all = json_value(given.ptr(), where);
    bool has_seed = false;
    JsonView(all, where).for_each_member([&](const std::string& name, const JsonView& value) {
      if (value.is_null()) return;
      has_seed |= name == "seed";
      require(read_setting(settings, name, value), "[{}] has no setting {}; there are {}", where, name,
              setting_names());
    });
    settings.validate();
    if (!has_seed && !settings.sampling.greedy()) settings.sampling.seed = random_seed();
    return settings;
  });
}

EngineOptions options_with(const std::string& device, const nb::dict& given) {
  EngineOptions options;
  take_device(options, device);
  const Json all = json_value(given.ptr(), "load");
  for (const auto& [name, value] : all.members()) {
    if (value.is_null()) continue;
    bool found = false;
    std::string names;
    visit_offered(options, [&, &name = name, &value = value]<class T>(const std::string& other, T& field,
                                                                      const Option& option) {
      names += (names.empty() ? "" : ", ") + other;
      if (name != other) return;
      found = true;
      require(value.is_string() == std::is_same_v<T, std::string> &&
                  read_option(value.is_string() ? value.as_string() : value.dump(), field),
              "[load] {} is {}; must be of type {}: {}", name, brief(value), kPythonType<T>, option.help());
    });
    require(found, "[load] has no option {}; there are device, {}", name, names);
  }
  return options;
}

std::vector<i32> tokens_with(nb::handle given, i32 vocab, const std::string& where, const char* also) {
  return as_argument([&] {
    const Json all = json_value(given.ptr(), where);
    require(all.is_array(), "[{}] {} is no list of tokens{}", where, brief(all), also);
    std::vector<i32> tokens;
    JsonView(all, where).for_each_item([&](const JsonView& token) {
      tokens.push_back(i32(token.as_int(0, vocab - 1)));
    });
    return tokens;
  });
}

nb::list describe_settings() {
  nb::list made;
  const AnswerSettings defaults;
  AnswerSettings::visit(defaults, [&]<class T>(const std::string& name, const T&, const SettingHelp& help) {
    made.append(nb::make_tuple(text(name), text(kPythonType<T>), text(help.with_range())));
  });
  return made;
}

nb::list describe_options() {
  nb::list made;
  EngineOptions defaults;
  visit_offered(defaults, [&]<class T>(const std::string& name, const T&, const Option& option) {
    made.append(nb::make_tuple(text(name), text(kPythonType<T>), text(option.help())));
  });
  return made;
}

}  // namespace heddle::python
