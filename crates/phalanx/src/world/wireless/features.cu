// What linear policies and critics see of the wireless network, as `features.rs` has it.
#ifndef WIRELESS_NOBODY
#define WIRELESS_NOBODY 0xffffffffu

// The access point that a user addresses with an action, or -1. Users are numbered from WIRELESS_FIRST on here.
DEVICE int wireless_point(int agent, int action) {
    const int user = WIRELESS_FIRST + agent;
    const int row = user / WIRELESS_COLUMNS + (action - 1) / 2 - 1;
    const int column = user % WIRELESS_COLUMNS + (action - 1) % 2 - 1;
    const int exists = action > 0 && row >= 0 && row < WIRELESS_ROWS - 1 && column >= 0 && column < WIRELESS_COLUMNS - 1;
    return exists ? row * (WIRELESS_COLUMNS - 1) + column : -1;
}

// Steps in the numbering from the first of the four around an access point.
#define WIRELESS_AROUND(place) ((place) / 2 * WIRELESS_COLUMNS + (place) % 2)
#endif
