# find_package(stepscope): gives the target stepscope::recorder. Lies in PREFIX/lib/cmake/stepscope.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(stepscope_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET stepscope::recorder)
  add_library(stepscope::recorder STATIC IMPORTED)
  set_target_properties(stepscope::recorder PROPERTIES
    IMPORTED_LOCATION "${stepscope_prefix}/lib/libstepscope_recorder_all.a"
    INTERFACE_INCLUDE_DIRECTORIES "${stepscope_prefix}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()
unset(stepscope_prefix)
