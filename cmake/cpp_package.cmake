# What find_package(stepscope) finds: one header, one archive that holds the recorder and all below it, and the package
# files. In a wheel they lie inside the Python package (stepscope.cmake_prefix_path), else below the install prefix.
include(CMakePackageConfigHelpers)

add_library(stepscope_cpp STATIC
  $<TARGET_OBJECTS:stepscope_base> $<TARGET_OBJECTS:stepscope_model> $<TARGET_OBJECTS:stepscope_ring>
  $<TARGET_OBJECTS:stepscope_recorder>)
set_target_properties(stepscope_cpp PROPERTIES OUTPUT_NAME stepscope_recorder_all LINKER_LANGUAGE CXX)

if(SKBUILD)
  set(cpp_root stepscope)
else()
  set(cpp_root .)
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stepscope-config-version.cmake COMPATIBILITY SameMajorVersion)
install(TARGETS stepscope_cpp ARCHIVE DESTINATION ${cpp_root}/lib)
install(FILES include/stepscope/recorder.h DESTINATION ${cpp_root}/include/stepscope)
install(FILES cmake/stepscope-config.cmake ${PROJECT_BINARY_DIR}/stepscope-config-version.cmake
  DESTINATION ${cpp_root}/lib/cmake/stepscope)
