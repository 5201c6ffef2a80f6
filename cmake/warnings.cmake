# In our code only (dependencies are SYSTEM). Errors for us, not for whoever installs with a newer compiler.
add_library(stepscope_warnings INTERFACE)
target_compile_options(stepscope_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  $<$<BOOL:${STEPSCOPE_TESTS}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(stepscope_warnings INTERFACE -Wno-restrict)  # false alarms on "text" + string at -O2
endif()
