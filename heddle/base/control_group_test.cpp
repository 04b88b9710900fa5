#include "heddle/base/control_group.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "heddle/base/file.h"

namespace heddle {
namespace {

// A folder with the files that the system would show.
class Groups : public testing::Test {
 protected:
  Groups() : folder(testing::TempDir() + "heddle_groups_" + std::to_string(::getpid())) {
    files = {folder + "/list", folder + "/mount"};
  }
  ~Groups() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder + "/" + name).parent_path());
    write_file(folder + "/" + name, text);
  }
  void expect(double cores, const std::string& group) {
    const CpuQuota quota = cpu_quota(files);
    EXPECT_EQ(quota.cores, cores);
    EXPECT_EQ(quota.group, cores > 0 ? files.mount + group : "");
  }

  std::string folder;
  ControlGroupFiles files;
};

TEST_F(Groups, AreMissing) {
  expect(0, "");
  write("list", "nonsense\n0:\n0::relative\n");
  expect(0, "");
}

TEST_F(Groups, OfVersion2HaveTheTightestQuotaOfAllParents) {
  write("list", "0::/outer/inner\n");
  write("mount/outer/inner/cpu.max", "max 100000\n");
  expect(0, "");
  write("mount/outer/cpu.max", "150000 100000\n");
  expect(1.5, "/outer");
  write("mount/outer/inner/cpu.max", "400000 100000\n");
  expect(1.5, "/outer");
  write("mount/outer/inner/cpu.max", "50000 100000\n");
  expect(0.5, "/outer/inner");
  write("mount/cpu.max", "10000 100000\n");  // a container sees its own group as the root
  expect(0.1, "");
}

TEST_F(Groups, OfVersion1AreFoundByTheirController) {
  write("list", "5:memory:/m\n4:cpu,cpuacct:/outer/inner\n3:cpuset:/s\n");
  write("mount/cpu,cpuacct/outer/inner/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu,cpuacct/outer/inner/cpu.cfs_period_us", "100000\n");
  write("mount/cpuset/s/cpu.cfs_quota_us", "1\n");
  write("mount/cpuset/s/cpu.cfs_period_us", "100000\n");
  expect(0, "");
  write("mount/cpu,cpuacct/outer/cpu.cfs_quota_us", "300000\n");
  write("mount/cpu,cpuacct/outer/cpu.cfs_period_us", "100000\n");
  expect(3, "/cpu,cpuacct/outer");
  EXPECT_EQ(control_groups("memory", files).version1,
            (std::vector<std::string>{files.mount + "/memory/m", files.mount + "/memory"}));
}

}  // namespace
}  // namespace heddle
