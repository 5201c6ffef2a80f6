#include "cli/identity.h"

#include <gtest/gtest.h>

namespace stepscope::cli {
namespace {

Identity of(const Environment& environment, const std::string& flag = "", uint64_t space = 1) {
  return choose_identity({.run_id_flag = flag,
                          .environment = environment,
                          .parent_pid = 77,
                          .parent_start = 5,
                          .pid_namespace = space,
                          .random = 0x1234});
}

TEST(Identity, FollowsTheOrderOfTheDesign) {
  Environment env = {{"TORCHELASTIC_RUN_ID", "job7"},
                     {"SLURM_JOB_ID", "12"},
                     {"SLURM_STEP_ID", "0"},
                     {"MASTER_ADDR", "host"},
                     {"MASTER_PORT", "29500"},
                     {"WORLD_SIZE", "4"},
                     {"RANK", "2"}};
  EXPECT_EQ(of(env, "mine").id, "mine");
  EXPECT_FALSE(of(env, "mine").launcher);
  EXPECT_EQ(of(env).id, "job7");
  env["TORCHELASTIC_RUN_ID"] = "none";
  EXPECT_EQ(of(env).id, "slurm-12.0");
  env.erase("SLURM_STEP_ID");  // a batch script is no step: two runs in it are two runs
  EXPECT_EQ(of(env).id, "host:29500");
  env.erase("MASTER_ADDR");
  EXPECT_EQ(of(env).id, "parent-77-5");
  env.erase("RANK");
  EXPECT_EQ(of(env).id, "0000000000001234");
  EXPECT_FALSE(of(env).shared);
}

TEST(Identity, OneProcessIsNotJoined) {
  EXPECT_FALSE(
      of({{"MASTER_ADDR", "host"}, {"MASTER_PORT", "1"}, {"WORLD_SIZE", "1"}, {"RANK", "0"}})
          .shared);
  EXPECT_FALSE(of({{"MASTER_ADDR", "host"}, {"WORLD_SIZE", "lots"}}).shared);
  EXPECT_FALSE(of({}).shared);
}

TEST(Identity, KeysAreFileNamesAndDiffer) {
  const std::string hostile = "../../etc/passwd\n" + std::string(300, 'x');
  const std::string key = of({}, hostile).key;
  EXPECT_LE(key.size(), 60u);
  EXPECT_EQ(key.find_first_of("/\n"), std::string::npos);
  EXPECT_NE(key.front(), '.');
  EXPECT_NE(key, of({}, hostile + "y").key);
  EXPECT_NE(of({}, "a:b").key, of({}, "a;b").key);
  EXPECT_EQ(of({}, "a").key, of({}, "a").key);
}

TEST(Identity, AContainerIsANodeOfItsOwn) {  // R14
  EXPECT_NE(of({}, "a", 1).key, of({}, "a", 2).key);
  EXPECT_EQ(of({}, "a", 1).id, of({}, "a", 2).id);
}

TEST(Identity, Rank) {
  EXPECT_EQ(rank_of({{"RANK", "3"}, {"SLURM_PROCID", "5"}}), 3);
  EXPECT_EQ(rank_of({{"SLURM_PROCID", "5"}}), 5);
  EXPECT_EQ(rank_of({{"RANK", "x"}}), 0);
  EXPECT_EQ(rank_of({}), 0);
}

}  // namespace
}  // namespace stepscope::cli
