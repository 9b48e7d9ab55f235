/* What a capture says about its process and its clocks. */
#ifndef MEMWALL_INJECT_PROCESS_H
#define MEMWALL_INJECT_PROCESS_H

/* Name, command line and versions. REQUIRES: the driver is up, which it is once there is a first record. */
void process_describe(void);
/* One instant in three clocks. */
void process_note_clock(void);

#endif
