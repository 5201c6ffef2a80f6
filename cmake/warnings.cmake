# Warnings are errors, in our code only (dependencies are SYSTEM).
add_library(stepscope_warnings INTERFACE)
target_compile_options(stepscope_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Werror)
