# Libraries that are linked as archives where the system has these. A program loads every shared library that it names, and
# all that those name, each time it starts: of HDF5 as Debian builds it forty, down to curl and Kerberos, for reading files
# from the web. That took 4 of the 10 ms of `memwall --version`; Protobuf and SQLite took 1 together.
include(CheckCSourceCompiles)
include(CheckCXXSourceCompiles)
include(CMakePushCheckState)
find_package(Threads REQUIRED)

# Sets `variable` to the archive's path, beside the libraries in the list `beside`, if all of them are there.
function(memwall_find_archive variable name)
  set(folders "")
  foreach(library ${ARGN})
    if(IS_ABSOLUTE "${library}")
      cmake_path(GET library PARENT_PATH folder)
      list(APPEND folders ${folder})
    endif()
  endforeach()
  find_library(${variable} NAMES ${name} HINTS ${folders})
  mark_as_advanced(${variable})
endfunction()

# HDF5's archive with what it needs itself, but for the parts that nothing here calls.
memwall_find_archive(MEMWALL_HDF5_ARCHIVE libhdf5.a ${HDF5_C_LIBRARIES})
memwall_find_archive(MEMWALL_SZIP_ARCHIVE libsz.a ${HDF5_C_LIBRARIES})
memwall_find_archive(MEMWALL_AEC_ARCHIVE libaec.a ${HDF5_C_LIBRARIES})
if(MEMWALL_HDF5_ARCHIVE AND MEMWALL_SZIP_ARCHIVE AND MEMWALL_AEC_ARCHIVE)
  set(archives ${MEMWALL_HDF5_ARCHIVE} ${MEMWALL_SZIP_ARCHIVE} ${MEMWALL_AEC_ARCHIVE} ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES ${HDF5_C_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${archives})
  check_c_source_compiles("#include <hdf5.h>
    int main(void) {
      hid_t file = H5Fcreate(\"x\", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
      return H5Pset_deflate(H5P_DEFAULT, 1) + H5Dread(file, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, 0);
    }" MEMWALL_HDF5_LINKS_AS_ARCHIVE)
  cmake_pop_check_state()
  if(MEMWALL_HDF5_LINKS_AS_ARCHIVE)
    # A target, so that what the archive needs stands behind it in every link.
    list(POP_FRONT archives)
    add_library(memwall_hdf5_archive STATIC IMPORTED)
    set_target_properties(memwall_hdf5_archive PROPERTIES IMPORTED_LOCATION "${MEMWALL_HDF5_ARCHIVE}"
      INTERFACE_LINK_LIBRARIES "${archives}")
    set(HDF5_C_LIBRARIES memwall_hdf5_archive)
  endif()
endif()

# Lets `target`, a library that was found, stand for its archive with the libraries that follow, where `program` links with
# that.
function(memwall_link_as_archive target variable archive program)
  get_target_property(shared ${target} IMPORTED_LOCATION)
  memwall_find_archive(${variable}_ARCHIVE ${archive} ${shared})
  if(NOT ${variable}_ARCHIVE)
    return()
  endif()
  cmake_push_check_state(RESET)
  get_target_property(CMAKE_REQUIRED_INCLUDES ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set(CMAKE_REQUIRED_LIBRARIES ${${variable}_ARCHIVE} ${ARGN})
  check_cxx_source_compiles("${program}" ${variable}_LINKS_AS_ARCHIVE)
  cmake_pop_check_state()
  if(${variable}_LINKS_AS_ARCHIVE)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${variable}_ARCHIVE} IMPORTED_LOCATION_RELEASE
      ${${variable}_ARCHIVE})
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${ARGN})
  endif()
endfunction()

memwall_link_as_archive(protobuf::libprotobuf MEMWALL_PROTOBUF libprotobuf.a "#include <google/protobuf/text_format.h>
  int main() { return google::protobuf::TextFormat::Parser().ParseFromString(\"\", nullptr); }" ZLIB::ZLIB Threads::Threads)
memwall_link_as_archive(SQLite::SQLite3 MEMWALL_SQLITE libsqlite3.a "#include <sqlite3.h>
  int main() { return sqlite3_open(\"\", nullptr); }" ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m)
