# Libraries that are linked as archives where the system has these. A program loads every shared library that it names, and
# all that those name, each time it starts: of HDF5 as Debian builds it forty, down to curl and Kerberos, for reading files
# from the web. That took 4 of the 10 ms of `memwall --version`, and Protobuf 1.
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
    set(HDF5_C_LIBRARIES ${archives})
  endif()
endif()

memwall_find_archive(MEMWALL_PROTOBUF_ARCHIVE libprotobuf.a ${Protobuf_LIBRARIES})
if(MEMWALL_PROTOBUF_ARCHIVE)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES ${Protobuf_INCLUDE_DIRS})
  set(CMAKE_REQUIRED_LIBRARIES ${MEMWALL_PROTOBUF_ARCHIVE} ZLIB::ZLIB Threads::Threads)
  check_cxx_source_compiles("#include <google/protobuf/text_format.h>
    int main() { return google::protobuf::TextFormat::Parser().ParseFromString(\"\", nullptr); }"
    MEMWALL_PROTOBUF_LINKS_AS_ARCHIVE)
  cmake_pop_check_state()
  if(MEMWALL_PROTOBUF_LINKS_AS_ARCHIVE)
    set_target_properties(protobuf::libprotobuf PROPERTIES IMPORTED_LOCATION ${MEMWALL_PROTOBUF_ARCHIVE} IMPORTED_LOCATION_RELEASE
      ${MEMWALL_PROTOBUF_ARCHIVE})
    set_property(TARGET protobuf::libprotobuf APPEND PROPERTY INTERFACE_LINK_LIBRARIES ZLIB::ZLIB Threads::Threads)
  endif()
endif()
