# stepscope_hub_messages: the generated classes of src/hub/hub.proto, a library of their own so that our warnings do not
# apply to them. Includes as "hub/hub.pb.h".
set(hub_generated ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${hub_generated}/hub)
add_custom_command(
  OUTPUT ${hub_generated}/hub/hub.pb.cc ${hub_generated}/hub/hub.pb.h
  COMMAND protobuf::protoc --cpp_out=${hub_generated} -I${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/hub/hub.proto
  DEPENDS ${PROJECT_SOURCE_DIR}/src/hub/hub.proto
  VERBATIM)
add_library(stepscope_hub_messages STATIC ${hub_generated}/hub/hub.pb.cc ${hub_generated}/hub/hub.pb.h)
target_include_directories(stepscope_hub_messages SYSTEM PUBLIC ${hub_generated})
target_link_libraries(stepscope_hub_messages PUBLIC protobuf::libprotobuf-lite)
