// What linear policies and critics see of an epidemic, as `features.rs` has it.
#ifndef EPIDEMIC_LEVELS
#define EPIDEMIC_LEVELS 4
#define EPIDEMIC_OWN 0
#define EPIDEMIC_CONTACT 1
#define EPIDEMIC_FAR 2

DEVICE u32 epidemic_level(u32 infected) {
    return infected < EPIDEMIC_LEVELS - 1 ? infected : EPIDEMIC_LEVELS - 1;
}

// What an agent does that matters to what comes next.
DEVICE u32 epidemic_conduct(u32 state, u32 action) {
    return state == 1 ? 2 + (action == 2) : state == 2 ? 4 : action == 1;
}
#endif
