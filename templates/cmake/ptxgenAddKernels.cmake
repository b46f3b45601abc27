# Generates kernels as a build step of a target.
#
#     ptxgen_add_kernels(TARGET SPEC kernels.ini
#                        [PREFIX name] [TARGETS sm_80 sm_90 ...] [VALIDATE] [VERIFY])
#
# TARGET is an executable or a library. It and all targets that link to it can #include
# "PREFIX_kernels.h". To share one set of kernels among several targets, use an interface library:
#
#     add_library(kernels INTERFACE)
#     ptxgen_add_kernels(kernels SPEC kernels.ini)
#
# SPEC      relative to the current source folder
# PREFIX    prefix of the C names and the header, instead of the spec's. With it, CMake need not run
#           ptxgen to learn the header's name, nor run again when the spec changes. Required if the
#           spec's prefix is in an included file
# TARGETS   GPU architectures instead of the spec's
# VALIDATE  ptxas must accept every kernel, or the build fails
# VERIFY    every kernel must compute correct results on the emulator, or the build fails
#
# ptxgen runs when the spec, an included file or ptxgen itself has changed, or a header is missing. It
# writes only files that differ, so an unchanged header causes no compilation. The files are in
# ptxgen/PREFIX/ below the current binary folder.

cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.25)

# Run as a script by Makefiles. They know only the stamp as output, and would not generate a missing
# header again.
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  if(NOT EXISTS "${HEADER}")
    file(REMOVE "${STAMP}")
  endif()
  cmake_policy(POP)
  return()
endif()

function(ptxgen_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "VALIDATE;VERIFY" "SPEC;PREFIX" "TARGETS")
  if(NOT TARGET "${target}")
    message(FATAL_ERROR "ptxgen_add_kernels: there is no target '${target}'; "
                        "call add_executable or add_library first")
  elseif(NOT arg_SPEC)
    message(FATAL_ERROR "ptxgen_add_kernels(${target}): SPEC is missing")
  elseif(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "ptxgen_add_kernels(${target}): unknown or incomplete argument "
                        "'${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}'")
  endif()
  get_filename_component(spec "${arg_SPEC}" ABSOLUTE)

  if(NOT arg_PREFIX)
    ptxgen_read_prefix("${spec}" arg_PREFIX)
  endif()
  set(options --quiet --spec "${spec}" --prefix "${arg_PREFIX}")
  if(arg_TARGETS)
    list(JOIN arg_TARGETS "," targets)
    list(APPEND options --target "${targets}")
  endif()
  if(arg_VALIDATE)
    list(APPEND options --validate)
  endif()
  if(arg_VERIFY)
    list(APPEND options --verify)
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/ptxgen/${arg_PREFIX}")
  set(header "${folder}/${arg_PREFIX}_kernels.h")
  # The output is a stamp: with an unchanged header as output, Make would run this every time.
  add_custom_command(
    OUTPUT "${folder}/stamp"
    BYPRODUCTS "${header}" "${folder}/${arg_PREFIX}_kernels.json"
    COMMAND ptxgen::ptxgen ${options} --out "${folder}"
            --depfile "${folder}/depfile" --stamp "${folder}/stamp"
    DEPENDS "${spec}" "${PTXGEN_EXECUTABLE}"
    DEPFILE "${folder}/depfile"
    COMMENT "Generating ${arg_PREFIX}_kernels.h"
    VERBATIM)
  add_custom_target(${target}_${arg_PREFIX}_kernels DEPENDS "${folder}/stamp")
  set_property(TARGET ${target}_${arg_PREFIX}_kernels PROPERTY ADDITIONAL_CLEAN_FILES "${folder}")
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    add_custom_target(${target}_${arg_PREFIX}_stamp
      COMMAND "${CMAKE_COMMAND}" "-DHEADER=${header}" "-DSTAMP=${folder}/stamp"
              -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
      VERBATIM)
    add_dependencies(${target}_${arg_PREFIX}_kernels ${target}_${arg_PREFIX}_stamp)
  endif()

  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${folder}>")
  add_dependencies(${target} ${target}_${arg_PREFIX}_kernels)
endfunction()

# Sets variable to the spec's prefix, from the header's name, which ptxgen prints first. CMake runs
# again when the spec changes, since the prefix may change.
function(ptxgen_read_prefix spec variable)
  execute_process(
    COMMAND "${PTXGEN_EXECUTABLE}" --quiet --spec "${spec}" --print-outputs
    OUTPUT_VARIABLE outputs
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "ptxgen cannot use ${spec}; its messages are above")
  endif()
  string(REGEX REPLACE "_kernels\\.h\n.*" "" prefix "${outputs}")
  set(${variable} "${prefix}" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${spec}")
endfunction()

cmake_policy(POP)
