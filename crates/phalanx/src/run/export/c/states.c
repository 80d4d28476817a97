int phalanx_law(int agent, const unsigned char *states, double *probabilities)
{
    const struct agent *own;
    int k;
    if (!is_agent(agent))
        return -1;
    own = &agents[agent];
    for (k = 0; k < own->members; k++)
        if (states[k] >= members[own->first_member + k].states)
            return -1;
    switch (own->kind) {
