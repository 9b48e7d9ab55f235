// How the program holds memory: steps of a million ops take hundreds of MB in a few arrays that come and go.
//
// By default the C library gives every large array back to the system at once and asks for the next one anew, page by
// page of 4 KB: a fifth of the time of a long run. Here memory that was given back stays with the program for its next
// array, and arrays of several MB lie on huge pages where the system has them.
#pragma once

namespace memwall {

// Call first in main(). Changes no result; where the system has no such settings, nothing happens.
void keep_freed_memory();

// What was kept goes back to the system: for who is done with something large and keeps something small.
void give_back_freed_memory();

}  // namespace memwall
