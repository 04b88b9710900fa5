#include "heddle/backend/cuda/program/body_batch.h"

#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "heddle/backend/cuda/program/kernel_source.h"

namespace heddle::cuda {
namespace {

std::string prefix_of(size_t number) {
  return fmt::format("k{}_", number);
}

// Bodies of one group go into one text: those of steps of as many rows, or the whole kernels of one file.
using Group = std::tuple<std::string, i32, std::string>;
Group group_of(const WantedBody& body) {
  return {body.alone.arch, body.rows, body.kernel_of ? body.alone.name : ""};
}

std::string source_of(std::span<const WantedBody> bodies, const std::vector<size_t>& members) {
  const WantedBody& first = bodies[members.front()];
  std::vector<Opcode> opcodes;
  std::string head, own;
  for (size_t n = 0; n < members.size(); ++n) {
    const WantedBody& body = bodies[members[n]];
    if (!body.kernel_of) {
      opcodes.push_back(body.opcode);
      continue;
    }
    const KernelText text = kernel_text(*body.kernel_of, body.args.data(), body.plan, prefix_of(n));
    head = text.common;
    own += text.own;
  }
  return first.kernel_of ? head + own : calls_source(opcodes, traits_for(first.rows));
}

std::string names_of(std::span<const WantedBody> bodies, const std::vector<size_t>& members) {
  std::string names;
  for (size_t i : members) names += (names.empty() ? "" : ", ") + bodies[i].alone.name;
  return names;
}

// The kernels of member `number` of a text, and its share of the time.
Compiled part_of(const Compiled& all, size_t number, size_t members) {
  Compiled part{.cubin = {}, .kernels = {}, .log = {}, .from_cache = all.from_cache};
  part.seconds = all.seconds / double(members);
  for (const KernelUse& kernel : all.kernels)
    if (kernel.name.starts_with(prefix_of(number))) part.kernels.push_back(kernel);
  return part;
}

}  // namespace

KernelTraits traits_for(i32 rows) {
  KernelTraits traits{.rows = rows};
  for (const DTypeInfo& info : kDTypes) traits.types[size_t(info.type)] = is_wide_float(info.type);
  return traits;
}

std::vector<Result<Compiled>> compile_together(std::span<const WantedBody> bodies) {
  std::map<Group, std::vector<size_t>> groups;
  for (size_t i = 0; i < bodies.size(); ++i) groups[group_of(bodies[i])].push_back(i);
  std::vector<CompileRequest> requests;
  for (const auto& [group, members] : groups) {
    CompileRequest request = bodies[members.front()].alone;
    if (members.size() > 1) {
      request.name = fmt::format("{} bodies in one text: {}", members.size(), names_of(bodies, members));
      request.source = source_of(bodies, members);
    }
    requests.push_back(std::move(request));
  }
  const std::vector<Result<Compiled>> texts = try_compile(requests);
  std::vector<Result<Compiled>> results(bodies.size(), Failure{});
  std::vector<size_t> again;
  size_t text = 0;
  for (const auto& [group, members] : groups) {
    const Result<Compiled>& done = texts[text++];
    for (size_t n = 0; n < members.size(); ++n) {
      if (members.size() == 1)
        results[members[n]] = done;
      else if (done)
        results[members[n]] = part_of(done.value(), n, members.size());
      else
        again.push_back(members[n]), results[members[n]] = done;
    }
  }
  std::vector<CompileRequest> singles;
  for (size_t i : again) singles.push_back(bodies[i].alone);
  const std::vector<Result<Compiled>> alone = try_compile(singles);
  // Where each body compiles by itself, the message of the text stays: programs have several ops too.
  std::set<Group> explained;
  for (size_t i = 0; i < again.size(); ++i)
    if (!alone[i]) explained.insert(group_of(bodies[again[i]]));
  for (size_t i = 0; i < again.size(); ++i)
    if (explained.contains(group_of(bodies[again[i]]))) results[again[i]] = alone[i];
  return results;
}

}  // namespace heddle::cuda
