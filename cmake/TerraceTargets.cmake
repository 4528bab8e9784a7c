# terrace_library(name LINK public... PRIVATE_LINK private...): the library of src/<name>.
# terrace_tests(name dir library): one test program of every *_test.cc in dir.
#
# Files named *_simd.cc are compiled once for each instruction-set level, each time inside its own
# namespace (TERRACE_ISA), and chosen at run time (src/base/cpu.h). Everything else is built for the
# compiler's portable baseline.

set(TERRACE_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                     -Wimplicit-fallthrough -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND TERRACE_WARNINGS -Wthread-safety -Wthread-safety-beta)
endif()
# False in gcc 12 for "text" + std::to_string(n), which tests are full of (bugs 105329, 105651).
set(TERRACE_TEST_WARNINGS ${TERRACE_WARNINGS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND TERRACE_TEST_WARNINGS -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
       -Wno-array-bounds)
endif()
# A product and a sum are two roundings everywhere, so that a loop gives the same bits in its
# vector body and in its tail, and on every instruction set. Nobody reads errno or exception flags;
# giving them up changes no value and lets loops with roots and selections vectorise.
set(TERRACE_CODEGEN -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(TERRACE_SANITIZE)
  add_compile_options(-fsanitize=${TERRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TERRACE_SANITIZE})
endif()

set(TERRACE_ISA_LEVELS baseline)
set(TERRACE_ISA_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND TERRACE_ISA_LEVELS avx2 avx512)
  set(TERRACE_ISA_FLAGS_avx2 -march=x86-64-v3)
  set(TERRACE_ISA_FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  add_compile_definitions(TERRACE_HAVE_X86_ISA=1)
endif()

function(terrace_library name)
  cmake_parse_arguments(ARG "" "" "LINK;PRIVATE_LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "(_test|_simd|/main)\\.cc$")
  file(GLOB simd CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*_simd.cc)
  if(NOT sources)
    return()
  endif()
  set(target terrace_${name})
  set(objects "")
  if(simd)
    foreach(level ${TERRACE_ISA_LEVELS})
      add_library(${target}_${level} OBJECT ${simd})
      target_include_directories(${target}_${level} PRIVATE ${CMAKE_SOURCE_DIR}/src)
      target_compile_definitions(${target}_${level} PRIVATE TERRACE_ISA=isa_${level})
      target_compile_options(${target}_${level} PRIVATE ${TERRACE_WARNINGS} ${TERRACE_CODEGEN}
                             ${TERRACE_ISA_FLAGS_${level}})
      list(APPEND objects $<TARGET_OBJECTS:${target}_${level}>)
    endforeach()
  endif()
  add_library(${target} STATIC ${sources} ${objects})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE ${TERRACE_WARNINGS} ${TERRACE_CODEGEN})
  target_link_libraries(${target} PUBLIC Threads::Threads ${ARG_LINK} PRIVATE fmt::fmt
                        ${ARG_PRIVATE_LINK})
endfunction()

function(terrace_tests name dir link)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE ${link} fmt::fmt nlohmann_json::nlohmann_json
                        rapidcheck PkgConfig::ZSTD ZLIB::ZLIB GTest::gmock GTest::gtest_main)
  target_compile_options(${name}_test PRIVATE ${TERRACE_TEST_WARNINGS} ${TERRACE_CODEGEN})
  target_compile_definitions(${name}_test PRIVATE
    TERRACE_BINARY="$<TARGET_FILE:terrace>" TERRACE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_precompile_headers(${name}_test PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
  if(name MATCHES "^(e2e|cli|crash)$")
    add_dependencies(${name}_test terrace)
  endif()
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS ${name})
endfunction()
